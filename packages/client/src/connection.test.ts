import { describe, expect, test } from 'bun:test'
import { createCallClient, createClient } from './client.ts'
import {
  active,
  agent,
  createFake,
  failure,
  fakeClient,
  invited,
  onlineFake,
  rings,
  start,
  tokenFor,
  turn,
  uuid,
} from './environment.fixture.ts'
import type { Environment } from './environment.ts'
import type { RingwireError } from './error.ts'
import type { Call, ConnectionState, RingwireErrorShape, SessionToken, WebSocketConstructor } from './types.ts'

describe('a socket that was given up', () => {
  test('is heard no more, whatever it still says', async () => {
    const fake = await onlineFake()
    const old = fake.socket
    const { onmessage, onclose } = old
    const incoming: Call[] = []
    fake.client.on('incoming', (call) => incoming.push(call))
    old.ends(1006)
    await fake.pass(500)
    expect(fake.sockets).toHaveLength(2)
    ;(onmessage as (event: object) => void)({ data: JSON.stringify(rings(1)) })
    fake.socket.ok({ recovered: true })
    ;(onmessage as (event: object) => void)({ data: JSON.stringify(rings(1)) })
    ;(onclose as (event: object) => void)({ code: 4409, reason: '' })
    expect(incoming).toEqual([])
    expect(fake.client.state.name).toBe('online')
    fake.socket.says(rings(1))
    expect(incoming).toHaveLength(1)
  })

  test('[EXT1] a gap in the numbers is a reason to give it up; the resume names the last push without a gap', async () => {
    const fake = await onlineFake()
    fake.socket.says(rings(1))
    fake.socket.says({ event: 'some.news', data: {}, seq: 2 })
    fake.socket.says(rings(2, uuid(2)))
    fake.socket.says(rings(4, uuid(4)))
    expect(fake.client.calls.map(({ callUuid }) => callUuid)).toEqual([uuid(1)])
    expect(fake.client.state).toMatchObject({ name: 'waiting', why: { code: 'silent' } })
    expect(fake.sockets[0]!.closedWith).toBe(4408)
    await fake.pass(500)
    expect(fake.socket.url).toBe('ws://service/v1/ws?ext=1&resume=s1&epoch=e1&seq=2&n=0')
  })
})

test('a client that is closed and connected again signs in as whoever is there then', async () => {
  const fake = await onlineFake()
  fake.client.close()
  fake.client.connect()
  await turn()
  expect(fake.asked).toEqual(['first', 'first'])
  expect(fake.socket.protocols[1]).toBe('token 2')
})

describe('coming back', () => {
  const waiting = (state: ConnectionState) => (state.name === 'waiting' ? state.retryAt - start : undefined)

  test('the pauses grow until a connection was stable for 10 s', async () => {
    const fake = await onlineFake()
    const pauses: number[] = []
    for (let i = 0; i < 4; i++) {
      const now = fake.env.now() - start
      fake.socket.ends(1006)
      pauses.push(waiting(fake.client.state)! - now)
      await fake.pass(500)
      fake.socket.ok({ recovered: true })
      await fake.pass(10_000)
    }
    expect(pauses).toEqual([250, 250, 250, 250])
    fake.socket.ends(1006)
    for (let i = 0; i < 3; i++) {
      const now = fake.env.now() - start
      await fake.pass(waiting(fake.client.state)! - now)
      fake.socket.ok({ recovered: true })
      await fake.pass(9_000)
      fake.socket.ends(1006)
      pauses.push(waiting(fake.client.state)! - (fake.env.now() - start))
    }
    expect(pauses.slice(4)).toEqual([500, 1_000, 2_000])
  })

  test('[CLOSE] 1012 says within which time; a network that comes back does not shorten it', async () => {
    const fake = await onlineFake()
    fake.socket.ends(1012, 'restart, jitter_ms=8000')
    expect(fake.client.state).toMatchObject({ name: 'waiting', attempt: 1, why: { closeCode: 1012 } })
    expect(waiting(fake.client.state)).toBe(4_000)
    await fake.pass(2_000)
    fake.client.wake()
    await turn()
    expect(fake.sockets).toHaveLength(1)
    await fake.pass(2_000)
    expect(fake.sockets).toHaveLength(2)
    expect(fake.asked).toEqual(['first'])
    expect(fake.socket.protocols).toEqual(['jwt', 'token 1'])
  })

  test('retry_after_ms of a refusal is kept', async () => {
    const fake = fakeClient()
    fake.client.connect()
    await turn()
    fake.socket.fails('RATE_LIMITED', { retry_after_ms: 7_000, retryable: true })
    fake.socket.ends(4429)
    expect(waiting(fake.client.state)).toBe(7_250)
  })

  test('retry_after_ms that an open socket is told before it is closed is kept, and only for that close', async () => {
    const fake = await onlineFake()
    const error = { code: 'RATE_LIMITED', message: 'Too many requests.', retry_after_ms: 7_000 }
    fake.socket.says({ event: 'call.error', error, data: { error } })
    fake.socket.ends(4429)
    expect(waiting(fake.client.state)).toBe(7_250)

    const other = await onlineFake()
    other.socket.says({ event: 'call.error', error, data: { error } })
    other.socket.says({ event: 'call.error', error: { code: 'X', message: 'X' }, data: {} })
    other.socket.ends(1006)
    expect(waiting(other.client.state)).toBe(250)
  })

  test('the network comes back: at once, but not twice in a second', async () => {
    const fake = await onlineFake()
    await fake.pass(5_000)
    fake.random = 1
    fake.socket.ends(1006)
    await turn()
    fake.signal('online')
    await turn()
    expect(fake.sockets).toHaveLength(2)
    fake.socket.ends(1006)
    fake.signal('visible')
    fake.signal('online')
    await turn()
    expect(fake.sockets).toHaveLength(2)
    await fake.pass(1_000)
    expect(fake.sockets).toHaveLength(3)
  })

  test('4401 asks for a new token first', async () => {
    const fake = await onlineFake()
    fake.socket.ends(4401, 'token expired')
    await fake.pass(500)
    expect(fake.asked).toEqual(['first', 'refused'])
    expect(fake.socket.protocols[1]).toBe('token 2')
  })

  test('4400, 4403, 4409: for good; connect begins a new session', async () => {
    for (const code of [4400, 4403, 4409, 1008]) {
      const fake = await onlineFake()
      fake.socket.says(rings(1))
      const [call] = fake.client.calls
      const asked = failure(call!.alerting())
      fake.socket.ends(code, 'why')
      const name = code === 4409 ? 'replaced' : 'socket_closed'
      const message = `Closed with ${code} why`
      expect(fake.client.state).toEqual({
        name: 'closed',
        why: { code: name, message, closeCode: code, reason: 'why', error: undefined },
      })
      expect(call!.state).toMatchObject({ name: 'over', reason: 'sdk.closed' })
      expect((await asked).code).toBe('UNKNOWN_OUTCOME')
      await fake.pass(100_000)
      expect(fake.sockets).toHaveLength(1)
      expect(fake.timers).toBe(0)
      fake.client.connect()
      await turn()
      expect(fake.socket.url).toBe('ws://service/v1/ws?ext=1')
    }
  })

  test('a handshake that never ends is given up', async () => {
    const fake = fakeClient()
    fake.client.connect()
    await fake.pass(10_000)
    expect(fake.client.state).toMatchObject({ name: 'waiting', why: { code: 'silent' } })
    await fake.pass(500)
    expect(fake.sockets).toHaveLength(2)
  })

  describe('[RES1] 4409', () => {
    /** Its next attempts, one at least, have no answer and are given up; the one after them resumes. */
    async function afterLateAttempt(attempts = 1) {
      const fake = await onlineFake({ heartbeatMs: 1e9 })
      fake.socket.ends(1006)
      await fake.pass(500)
      for (let lost = 0; lost < attempts; lost++) await fake.pass(11_000)
      fake.socket.ok({ recovered: true })
      expect([fake.sockets.length, fake.client.state.name]).toEqual([attempts + 2, 'online'])
      return fake
    }

    test('by an attempt of this page that was given up and arrives late: it comes back, once', async () => {
      const fake = await afterLateAttempt()
      fake.socket.ends(4409)
      expect(fake.client.state).toMatchObject({ name: 'waiting', why: { code: 'replaced', closeCode: 4409 } })
      await fake.pass(5_000)
      expect(fake.socket.url).toContain('resume=s1')
      fake.socket.ok({ recovered: true })
      fake.socket.ends(4409)
      expect(fake.client.state).toMatchObject({ name: 'closed', why: { closeCode: 4409 } })
    })

    test('by two of them, one after the other: it comes back twice, and no third time', async () => {
      const fake = await afterLateAttempt(2)
      for (let late = 0; late < 2; late++) {
        fake.socket.ends(4409)
        expect(fake.client.state).toMatchObject({ name: 'waiting', why: { code: 'replaced' } })
        await fake.pass(5_000)
        fake.socket.ok({ recovered: true })
      }
      fake.socket.ends(4409)
      expect(fake.client.state.name).toBe('closed')
    })

    test('long after it: another page has the session', async () => {
      const fake = await afterLateAttempt()
      await fake.pass(120_000)
      fake.socket.ends(4409)
      expect(fake.client.state).toMatchObject({ name: 'closed', why: { closeCode: 4409 } })
    })

    test('after an attempt that is known to be closed, or a socket that fell silent: another page, too', async () => {
      const refused = await onlineFake()
      refused.socket.ends(1006)
      await refused.pass(500)
      refused.socket.ends(1006)
      await refused.pass(1_000)
      const silent = await onlineFake({ heartbeatTimeoutMs: 1_000 })
      silent.client.wake()
      await silent.pass(2_000)
      for (const fake of [refused, silent]) {
        expect(fake.sockets.length).toBeGreaterThan(1)
        fake.socket.ok({ recovered: true })
        fake.socket.ends(4409)
        expect(fake.client.state.name).toBe('closed')
      }
    })
  })

  test('a failing getToken is a bad moment, unless it says that it is not', async () => {
    const fake = createFake()
    let retryable: boolean | undefined
    const getToken = () => Promise.reject(Object.assign(new Error('no'), { retryable }))
    const client = createClient({ getToken }, fake.env)
    client.connect()
    await turn()
    expect(client.state).toMatchObject({
      name: 'waiting',
      why: { code: 'token_failed', error: { code: 'TOKEN_FAILED' } },
    })
    retryable = false
    await fake.pass(500)
    expect(client.state).toMatchObject({ name: 'closed', why: { code: 'token_failed', error: { retryable: false } } })
    expect(fake.timers).toBe(0)
  })

  test('a service without extended mode: closed, and it says why', async () => {
    const base = fakeClient()
    base.client.connect()
    await turn()
    base.socket.says({ event: 'auth.ok', success: true, data: { user_id: 'me', role: 'r', socket_id: 's' } })
    expect(base.client.state).toMatchObject({ name: 'closed', why: { code: 'not_extended' } })
  })

  test('a runtime without WebSocket is told so; one that gets it later connects', async () => {
    const fake = createFake()
    let WebSocket: Environment['WebSocket']
    const env = Object.defineProperty({ ...fake.env }, 'WebSocket', { get: () => WebSocket })
    const client = createClient({ getToken: async () => tokenFor(fake, 3_600_000) }, env)
    const message = 'WebSocket must be given: this runtime has none.'
    expect(() => client.connect()).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT', message }))
    expect(client.state.name).toBe('idle')
    WebSocket = fake.env.WebSocket
    client.connect()
    await turn()
    fake.socket.ok()
    expect(client.state.name).toBe('online')
  })

  test('[WS2] why the service closed the socket is in the state, and an error event', async () => {
    const fake = fakeClient()
    const errors: RingwireErrorShape[] = []
    fake.client.on('error', (error) => errors.push(error))
    fake.client.connect()
    await turn()
    fake.socket.fails('AUTH_TOKEN_INVALID')
    fake.socket.ends(4401, 'token invalid')
    const why = { code: 'socket_closed', closeCode: 4401, reason: 'token invalid', message: 'AUTH_TOKEN_INVALID' }
    expect(fake.client.state).toMatchObject({ name: 'waiting', why: { ...why, error: { code: 'AUTH_TOKEN_INVALID' } } })
    expect(errors.map(({ code }) => code)).toEqual(['AUTH_TOKEN_INVALID'])
    await fake.pass(500)
    expect(fake.client.state).toMatchObject({ name: 'connecting', attempt: 2, why })
    fake.socket.ok()
    expect(fake.client.state).toMatchObject({ name: 'online', why: { code: 'authenticated' } })
    fake.socket.ends(1006)
    expect(fake.client.state.why).toMatchObject({ closeCode: 1006, error: undefined })
    expect(errors).toHaveLength(1)
  })
})

test('a tab that was duplicated leaves the session alone; one that was left goes on with it', async () => {
  for (const visit of ['copy', 'return', 'reload'] as const) {
    const left = JSON.stringify({ id: 'theirs', epoch: 'e1', seq: 3, replied: 2 })
    const storage = { getItem: () => left, setItem: () => {}, removeItem: () => {} }
    const fake = createFake()
    const env = { ...fake.env, visit: () => visit }
    const client = createClient({ getToken: async () => tokenFor(fake, 3_600_000), storage }, env)
    // As React does in its strict mode.
    client.connect()
    client.close()
    client.connect()
    await turn()
    const resume = visit !== 'copy' ? '&resume=theirs&epoch=e1&seq=3&n=2' : ''
    expect(fake.sockets.map(({ url }) => url)).toEqual([`ws://service/v1/ws?ext=1${resume}`])
  }
})

describe('what is handed over wrongly is said at once', () => {
  const thrown = (run: () => unknown) => {
    try {
      run()
    } catch (error) {
      const { name, code, field, message } = error as RingwireErrorShape
      return [name, code, field, message]
    }
    return 'nothing'
  }
  const invalid = (field: string, rule: string) => [
    ...['RingwireError', 'INVALID_ARGUMENT', field],
    `${field} must be ${rule}.`,
  ]

  test('to createCallClient: a getToken that is no function', () => {
    const make = createCallClient as (options?: unknown) => unknown
    for (const options of [undefined, null, {}, { getToken: '/call-token' }])
      expect(thrown(() => make(options))).toEqual(invalid('getToken', 'a function'))
  })

  test('to on: an event that there is not, and a listener that is no function', async () => {
    const fake = await onlineFake()
    fake.socket.says(rings(1))
    const [call] = fake.client.calls
    const events = 'state,incoming,restored,restorable,calls,iceServers,error'
    const callEvents = 'state,offer,answer,candidate,peer,alerting,status,resynced,glare,held'
    expect(thrown(() => fake.client.on('incomming' as 'incoming', () => {}))).toEqual(
      invalid('event', `one of ${events}`),
    )
    expect(thrown(() => call!.on('ended' as 'state', () => {}))).toEqual(invalid('event', `one of ${callEvents}`))
    for (const event of events.split(',')) fake.client.on(event as 'state', () => {})()
    for (const event of callEvents.split(',')) call!.on(event as 'state', () => {})()
    expect(thrown(() => fake.client.on('state', undefined as never))).toEqual(invalid('listener', 'a function'))
  })

  test('[INV1] to call: nobody, or a callType that no rule allows; nothing is sent', async () => {
    const fake = await onlineFake()
    const call = fake.client.call as (options?: unknown) => unknown
    for (const options of [undefined, null, {}, { userId: 'ben' }, { userId: '', role: 'agent' }])
      expect(thrown(() => call(options))).toEqual(invalid('role, and userId or group', 'given'))
    for (const callType of ['', 'Video', 'a b', 'x'.repeat(33), 7.5])
      expect(thrown(() => call({ ...agent, callType }))).toEqual(invalid('callType', '/^[a-z0-9_-]{1,32}$/'))
    expect([fake.client.calls, fake.socket.sent]).toEqual([[], []])
    call({ ...agent, callType: 'x_1-video' })
    expect(fake.socket.sent).toMatchObject([{ event: 'call.invite', data: { call_type: 'x_1-video' } }])
  })

  test('a hang-up takes no click for a reason', async () => {
    const fake = await onlineFake()
    fake.socket.says(rings(1))
    const [call] = fake.client.calls
    const click = { type: 'click', target: {} }
    click.target = click
    void (call!.end as (event: unknown) => Promise<void>)(click)
    expect(call!.state).toMatchObject({ name: 'over', reason: 'declined' })
    expect(fake.socket.sent).toMatchObject([{ event: 'call.reject', data: { call_uuid: call!.callUuid } }])
  })

  test('the cause of the end of the client is that of its calls', async () => {
    const fake = fakeClient()
    fake.client.connect()
    await turn()
    const call = fake.client.call(agent)
    const invite = failure(call.invited)
    fake.socket.fails('FORBIDDEN')
    fake.socket.ends(4403, 'origin not allowed')
    const { error } = fake.client.state.why
    expect(error).toMatchObject({ code: 'FORBIDDEN' })
    expect(fake.client.state.why).toMatchObject({ code: 'socket_closed', closeCode: 4403 })
    expect(call.state).toMatchObject({ name: 'over', reason: 'sdk.closed', error })
    expect(await invite).toBe(error as RingwireError)
    const after = await failure(call.connected())
    expect([after.code, after.cause]).toEqual(['CALL_OVER', error])
  })
})

describe('a token that cannot be used', () => {
  test('is asked for again, with growing pauses, and each failure is an error event', async () => {
    const fake = createFake()
    const answers = [
      () => new Response('{"error":"Sign in first."}', { status: 401 }),
      () => new Response('<html><title>Oops</title></html>', { status: 500 }),
      () => ({ error: 'no session' }),
      () => Promise.reject(new TypeError('Failed to fetch')),
      // It is not a subprotocol, which a real WebSocket refuses at once.
      () => ({ ...tokenFor(fake, 3_600_000), ws_url: 'bad' }),
    ]
    let asked = 0
    const getToken = async () => (answers[asked++]?.() ?? tokenFor(fake, 3_600_000)) as SessionToken
    const Real = fake.env.WebSocket as WebSocketConstructor
    const Picky = class {
      constructor(url: string, protocols: string[]) {
        if (url.startsWith('bad')) throw new SyntaxError('no URL')
        // biome-ignore lint/correctness/noConstructorReturn: the fake records what it is given.
        return new Real(url, protocols)
      }
    } as unknown as WebSocketConstructor
    const client = createClient({ getToken }, { ...fake.env, WebSocket: Picky })
    const errors: RingwireErrorShape[] = []
    const pauses: number[] = []
    client.on('error', (error) => errors.push(error))
    client.connect()
    await turn()
    for (let state = client.state; state.name === 'waiting'; state = client.state) {
      expect(state.why).toMatchObject({ code: 'token_failed', error: errors.at(-1)!, message: errors.at(-1)!.message })
      pauses.push(state.retryAt - fake.env.now())
      await fake.pass(pauses.at(-1)!)
    }
    expect(pauses).toEqual([250, 500, 1_000, 2_000, 4_000])
    expect(errors.every(({ code, retryable }) => code === 'TOKEN_FAILED' && retryable)).toBe(true)
    expect(errors.map(({ message, httpStatus }) => [message, httpStatus])).toEqual([
      ['getToken gave no token: 401 {"error":"Sign in first."}', 401],
      ['getToken gave no token: 500 Oops', 500],
      ['getToken gave no token: {"error":"no session"}', undefined],
      ['getToken failed: Failed to fetch', undefined],
      ['No WebSocket takes this URL and token.', undefined],
    ])
    expect(errors[3]!.cause).toBeInstanceOf(TypeError)
    expect(errors[4]!.cause).toBeInstanceOf(SyntaxError)
    fake.socket.ok()
    expect(client.state.name).toBe('online')
  })

  test('of another participant: its session is over at once, and the one of before goes on with the right token', async () => {
    const fake = await onlineFake()
    fake.socket.says(rings(1))
    const errors: RingwireErrorShape[] = []
    fake.client.on('error', (error) => errors.push(error))
    fake.socket.ends(1006)
    await fake.pass(500)
    fake.socket.ok({ session_id: 's2', user_id: 'somebody else' })
    expect(fake.socket.closedWith).toBe(1000)
    expect(fake.client.state).toMatchObject({ name: 'waiting', why: { code: 'token_failed' } })
    expect(errors.map(({ message }) => message)).toEqual(['The token is that of customer somebody else.'])
    expect(fake.client.calls).toHaveLength(1)
    await fake.pass(1_000)
    expect(fake.asked).toEqual(['first', 'refused'])
    expect(fake.socket.url).toContain('resume=s1&epoch=e1&seq=1')
    fake.socket.ok({ recovered: true })
    expect(fake.client.state.name).toBe('online')
    fake.client.close()
    fake.client.connect()
    await turn()
    fake.socket.ok({ session_id: 's3', user_id: 'somebody else' })
    expect(fake.client.state).toMatchObject({ name: 'online', self: { userId: 'somebody else' } })
  })
})

describe('close', () => {
  test('in any state leaves no socket and no timer', async () => {
    const idle = fakeClient()
    idle.client.close()
    expect(idle.client.state.name).toBe('closed')
    const asking = fakeClient()
    asking.client.connect()
    asking.client.close()
    await turn()
    expect(asking.sockets).toEqual([])
    const connecting = fakeClient()
    connecting.client.connect()
    await turn()
    connecting.client.close()
    expect(connecting.socket.closedWith).toBe(1000)
    const waiting = await onlineFake()
    waiting.socket.ends(1006)
    waiting.client.close()
    const online = await onlineFake()
    online.client.close()
    expect(online.socket.closedWith).toBe(1000)
    for (const fake of [idle, asking, connecting, waiting, online]) {
      await fake.pass(100_000)
      expect(fake.timers).toBe(0)
      expect(fake.sockets.length).toBeLessThan(2)
    }
  })

  test('by a listener, in the middle of auth.ok', async () => {
    const fake = await onlineFake()
    const call = fake.client.call(agent)
    fake.socket.replies('call.invited', { ...invited, call_uuid: call.callUuid })
    fake.socket.ends(1006)
    call.on('state', () => fake.client.close())
    await fake.pass(500)
    fake.socket.ok({ session_id: 's2', active_calls: [active(call.callUuid)] })
    expect(fake.client.state).toMatchObject({ name: 'closed', why: { code: 'client_closed' } })
    expect(fake.timers).toBe(0)
    expect(fake.socket.closedWith).toBe(1000)
  })
})

test('state and calls are the same object until they change: snapshots of an external store', async () => {
  const fake = fakeClient()
  const states: ConnectionState[] = [fake.client.state]
  fake.client.on('state', (state) => {
    expect(state).toBe(fake.client.state)
    states.push(state)
  })
  fake.client.connect()
  await turn()
  fake.socket.ok()
  expect(states.map(({ name }) => name)).toEqual(['idle', 'connecting', 'online'])
  const before = fake.client.calls
  expect(fake.client.calls).toBe(before)
  fake.socket.says({ event: 'news', data: {}, seq: 1 })
  expect(fake.client.calls).toBe(before)
  fake.socket.says(rings(2))
  expect(fake.client.calls).not.toBe(before)
})
