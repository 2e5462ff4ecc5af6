import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { someone } from '@ringwire/testkit/flows'
import { createClient } from '../src/client.ts'
import { globalEnvironment } from '../src/environment.ts'
import type { CallClient, RingwireErrorShape } from '../src/types.ts'
import { backOnline, online, type Person, type PersonOptions, ringing, stateOf, talk, until } from './support/people.ts'
import { createStage, failure } from './support/stage.ts'

/** The SDK against the service and a token backend, each as real as it can be: a backend that answers badly. */
const stage = createStage()

type Answer = (userId: string) => Response | Promise<Response>

let backend: ReturnType<typeof Bun.serve>
/** What the backend answers, one after another; then it gives tokens. */
let answers: Answer[] = []
beforeAll(() => {
  backend = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch(request) {
      const [role = '', userId = '', isBrief] = new URL(request.url).pathname.slice(1).split('/')
      return answers.shift()?.(userId) ?? give(userId, role, isBrief === 'brief')
    },
  })
})
beforeEach(() => {
  answers = []
})
afterAll(() => backend.stop(true))

async function give(userId: string, role: string, isBrief: boolean): Promise<Response> {
  const given = await stage.service.issue({ user_id: userId, role })
  return Response.json(isBrief ? soon(given) : given)
}

/** A token that lasts for 50 s, so that a device which slept for 45 s needs another one. */
function soon<T>(given: T): T & { expires_at: string } {
  return { ...given, expires_at: new Date(Date.now() + 50_000).toISOString() }
}

const down = () => new Response('Down', { status: 503 })

function add(role: Person['role'], { isBrief = false, ...options }: PersonOptions & { isBrief?: boolean } = {}) {
  const userId = someone(role)
  const getToken = () => fetch(`${backend.url}${role}/${userId}/${isBrief ? 'brief' : ''}`)
  let sleptMs = 0
  const it = stage.add(userId, role, { getToken, now: () => Date.now() + sleptMs, ...options })
  const errors: RingwireErrorShape[] = []
  it.client.on('error', (error) => errors.push(error))
  const sleep = () => {
    sleptMs += 45_000
  }
  return { ...it, errors, sleep }
}

describe('a backend', () => {
  test('that answers 401, 500, HTML, JSON without a token, nothing: the client comes online when it gives one', async () => {
    const hangs = Promise.withResolvers<Response>()
    answers = [
      () => Response.json({ error: { code: 'SIGN_IN', message: 'Sign in first.' } }, { status: 401 }),
      () => new Response('Internal Server Error', { status: 500 }),
      () => new Response('<!doctype html><title>Wrong page</title>', { headers: { 'Content-Type': 'text/html' } }),
      () => Response.json({ ok: true, secret: 'hunter2' }),
      () => new Response(null, { status: 204 }),
      () => hangs.promise,
    ]
    // Long enough for each of the others on a busy machine.
    const it = add('customer', { connectTimeoutMs: 5_000 })
    await online(it)
    hangs.resolve(new Response())
    expect(it.errors.map(({ code, httpStatus, message }) => [code, httpStatus, message])).toEqual([
      ['TOKEN_FAILED', 401, expect.stringContaining('Sign in first.')],
      ['TOKEN_FAILED', 500, 'getToken gave no token: 500 Internal Server Error'],
      ['TOKEN_FAILED', 200, 'getToken gave no token: 200 Wrong page'],
      ['TOKEN_FAILED', 200, 'getToken gave no token: 200 {"ok":true,"secret":…'],
      ['TOKEN_FAILED', 204, 'getToken gave no token: 204'],
      ['TOKEN_FAILED', undefined, 'getToken gave nothing in 5000 ms.'],
    ])
    const waits = it.states.flatMap((state) => (state.name === 'waiting' ? [state.why] : []))
    expect(waits.map(({ error }) => error)).toEqual(it.errors)
  })

  test('that is gone when a token is needed in a call: the call goes on, and ends where it is hung up', async () => {
    const caller = add('customer')
    const callee = add('agent', { url: stage.network.wsUrl, isBrief: true })
    await Promise.all([online(caller), online(callee)])
    const calls = await talk(caller, callee)
    answers = [down, down, down]
    callee.sleep()
    stage.network.cut()
    expect((await backOnline(callee)).recovered).toBe(true)
    expect(callee.errors.map(({ httpStatus }) => httpStatus)).toEqual([503, 503, 503])
    expect(calls.in.state.name).toBe('accepted')
    await calls.in.end()
    expect(await stateOf(calls.out, 'over')).toMatchObject({ status: 'ended', reason: 'hangup' })
  })

  test('[WS2] that gives tokens of another service: they are refused, and asked for again', async () => {
    const forged = (jwt: string) => `${jwt.slice(0, -5)}AAAAA`
    answers = [
      async (userId) => {
        const given = await stage.service.issue({ user_id: userId, role: 'customer' })
        return Response.json({ ...given, token: forged(given.token) })
      },
    ]
    const it = add('customer')
    await online(it)
    expect(it.errors).toMatchObject([{ code: 'AUTH_TOKEN_INVALID' }])
    expect(it.states.find(({ name }) => name === 'waiting')?.why).toMatchObject({ closeCode: 4401 })
  })

  test('[RES2] that gives the token of another user: nobody rings there, and the session of before goes on', async () => {
    const caller = add('customer')
    const callee = add('agent', { url: stage.network.wsUrl, isBrief: true })
    await Promise.all([online(caller), online(callee)])
    const calls = await talk(caller, callee)
    const other = someone('other')
    answers = [async () => Response.json(soon(await stage.service.issue({ user_id: other, role: 'agent' })))]
    const back = backOnline(callee)
    callee.sleep()
    stage.network.cut()
    expect(await back).toMatchObject({ recovered: true, self: { userId: callee.userId } })
    expect(callee.errors.map(({ message }) => message)).toEqual([`The token is that of agent ${other}.`])
    const out = caller.client.call({ userId: other, role: 'agent' })
    await out.invited
    expect(out.state).toMatchObject({ delivered: false })
    await calls.in.end()
    await stateOf(calls.out, 'over')
  })
})

describe('the clock of the device', () => {
  for (const days of [-1, 1]) {
    test(`is ${days} day off: it connects, resumes and calls with one token, and knows when a ring ends`, async () => {
      const userId = someone('customer')
      const asked: string[] = []
      const now = () => Date.now() + days * 86_400_000
      const getToken = (reason: string) => {
        asked.push(reason)
        return fetch(`${backend.url}customer/${userId}`)
      }
      const quick = { reconnectBaseMs: 20, reconnectMaxMs: 200 }
      const client: CallClient = createClient(
        { getToken, url: stage.network.wsUrl, ...quick },
        { ...globalEnvironment(undefined), now },
      )
      const it: Person = { userId, role: 'customer', client, tokens: [], states: [], incoming: [], restored: [] }
      stage.keep(it)
      const callee = add('agent')
      await Promise.all([online(it), online(callee)])
      const back = backOnline(it)
      stage.network.cut()
      expect((await back).recovered).toBe(true)
      const out = client.call({ userId: callee.userId, role: 'agent' })
      await out.invited
      const { state } = out
      const left = state.name === 'ringing' ? (state.expiresAt ?? 0) - now() : 0
      expect(left).toBeGreaterThan(30_000)
      expect(left).toBeLessThan(60_000)
      await (await ringing(callee)).accept()
      await stateOf(out, 'accepted')
      expect(asked).toEqual(['first'])
    })
  }
})

test('a getToken that says that it is for good ends it', async () => {
  const signedOut = Object.assign(new Error('signed out'), { retryable: false })
  const it = add('customer', { getToken: () => Promise.reject(signedOut) })
  it.client.connect()
  const closed = await until('the end', it.client, () => it.client.state.name === 'closed' && it.client.state)
  expect(closed.why).toMatchObject({ code: 'token_failed', error: { cause: signedOut } })
  expect(await failure(it.client.freshIceServers())).toMatchObject({ code: 'TOKEN_FAILED', cause: signedOut })
})
