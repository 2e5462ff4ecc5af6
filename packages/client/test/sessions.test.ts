import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { someone } from '../../server/test/support/flows.ts'
import { Service } from '../../server/test/support/service.ts'
import type { RingwireErrorShape, SessionStorage } from '../src/types.ts'
import { backOnline, next, online, type Person, person, ringing, stateOf, talk, until } from './support/people.ts'
import { type Network, startNetwork } from './support/proxy.ts'

/** The SDK against the service as its own process: sockets that die, a service that restarts, tokens that run out. */
let service: Service
let network: Network
let everybody: Person[] = []

beforeAll(async () => {
  service = await new Service().start()
  network = await startNetwork(() => service.url)
})
afterEach(() => {
  for (const { client } of everybody) client.close()
  everybody = []
  network.mend()
})
afterAll(async () => {
  await network.close()
  await service.dispose()
})

function add(userId: string, role: Person['role'], options: Parameters<typeof person>[3] = {}): Person {
  const it = person(service, userId, role, options)
  everybody.push(it)
  return it
}

/** The caller is directly connected, the callee through the network that fails. */
async function two(options: Parameters<typeof person>[3] = {}): Promise<{ caller: Person; callee: Person }> {
  const caller = add(someone('caller'), 'customer')
  const callee = add(someone('callee'), 'agent', { url: network.url, ...options })
  await Promise.all([online(caller), online(callee)])
  return { caller, callee }
}

async function failure(promise: Promise<unknown>): Promise<RingwireErrorShape> {
  try {
    await promise
  } catch (error) {
    return error as RingwireErrorShape
  }
  throw new Error('it did not fail')
}

function memory(): SessionStorage & { readonly items: Map<string, string> } {
  const items = new Map<string, string>()
  return {
    items,
    getItem: (key) => items.get(key) ?? null,
    setItem: (key, value) => void items.set(key, value),
    removeItem: (key) => void items.delete(key),
  }
}

const candidate = (name: string) => ({ candidate: name, sdpMid: '0', sdpMLineIndex: 0 })

async function recordsOf(it: Person) {
  return (await service.history(await service.token({ user_id: it.userId, role: it.role }))).data
}

describe('a socket that dies', () => {
  test('[RES1] the session goes on: what came meanwhile comes once, in order, and no token is asked for', async () => {
    const { caller, callee } = await two()
    const calls = await talk(caller, callee)
    const heard: string[] = []
    const last = Promise.withResolvers<void>()
    calls.in.on('candidate', ({ candidate }) => {
      heard.push(candidate)
      if (candidate === 'last') last.resolve()
    })
    let resyncs = 0
    calls.in.on('resynced', () => resyncs++)
    const before = callee.client.state
    network.refuse()
    await until('a loss', callee.client, () => callee.client.state.name === 'waiting')
    const sent = Array.from({ length: 50 }, (_, i) => `c${i}`)
    await Promise.all([...sent, 'last'].map((name) => calls.out.sendCandidate(candidate(name))))
    network.mend()
    const after = await backOnline(callee)
    expect(after.recovered).toBe(true)
    expect(before.name === 'online' && after.sessionId === before.sessionId).toBe(true)
    await last.promise
    expect(heard).toEqual([...sent, 'last'])
    expect(resyncs).toBe(0)
    expect(callee.tokens).toEqual(['first'])
    await calls.in.end()
    expect(await stateOf(calls.out, 'over')).toMatchObject({ reason: 'hangup', by: { userId: callee.userId } })
  })

  test('[EXT4] requests on a socket that dies take effect once, in order', async () => {
    const { caller, callee } = await two()
    const calls = await talk(caller, callee)
    const heard: string[] = []
    calls.out.on('candidate', ({ candidate }) => heard.push(candidate))
    const sent = Array.from({ length: 100 }, (_, i) => `c${i}`)
    const asked: Promise<void>[] = []
    for (const [i, name] of sent.entries()) {
      asked.push(calls.in.sendCandidate(candidate(name)))
      // Cuts at every moment of the conversation: in a request, in a reply, in a handshake.
      if (i % 10 === 9) network.cut()
      if (i % 5 === 4) await Promise.race([asked[i - 2], backOnline(callee)])
    }
    await Promise.all(asked)
    await calls.in.end()
    await stateOf(calls.out, 'over')
    expect(heard).toEqual(sent)
    const sockets = callee.states.flatMap((state) => (state.name === 'online' ? [state] : []))
    expect(sockets.length).toBeGreaterThan(3)
    expect(sockets.slice(1).every(({ recovered }) => recovered)).toBe(true)
  })

  test('silence is noticed by a request without a reply, and the request is not lost', async () => {
    const { caller, callee } = await two({ heartbeatTimeoutMs: 300 })
    const calls = await talk(caller, callee)
    network.silence()
    const connected = calls.in.connected()
    const lost = await until(
      'a loss',
      callee.client,
      () => callee.client.state.name === 'waiting' && callee.client.state,
    )
    expect(lost.why).toEqual({ cause: 'silent' })
    await connected
    expect(calls.in.state.name).toBe('connected')
    await stateOf(calls.out, 'connected')
    expect(callee.client.state).toMatchObject({ name: 'online', recovered: true })
  })

  test('silence is noticed when nothing is asked at all: the heartbeat', async () => {
    const { callee } = await two({ heartbeatMs: 200, heartbeatTimeoutMs: 300 })
    const first = callee.client.state
    // The heartbeat itself keeps a live socket open.
    await Bun.sleep(700)
    expect(callee.client.state).toBe(first)
    network.silence()
    const lost = await until(
      'a loss',
      callee.client,
      () => callee.client.state.name === 'waiting' && callee.client.state,
    )
    expect(lost.why).toEqual({ cause: 'silent' })
    expect((await backOnline(callee)).recovered).toBe(true)
    expect(callee.tokens).toEqual(['first'])
  })

  test('wake asks a socket that may be dead, and does not wait for the heartbeat', async () => {
    const { callee } = await two({ heartbeatTimeoutMs: 300 })
    network.silence()
    callee.client.wake()
    await until('a loss', callee.client, () => callee.client.state.name === 'waiting')
    await backOnline(callee)
  })

  test('an invite that was made without a network goes out when it is back', async () => {
    const caller = add(someone('caller'), 'customer', { url: network.url })
    const callee = add(someone('callee'), 'agent')
    await Promise.all([online(caller), online(callee)])
    network.refuse()
    await until('a loss', caller.client, () => caller.client.state.name === 'waiting')
    const out = caller.client.call({ userId: callee.userId, role: 'agent' })
    network.mend()
    await out.invited
    await ringing(callee, out.callUuid)
  })

  test('an invite that was made without a network and taken back was never made', async () => {
    const caller = add(someone('caller'), 'customer', { url: network.url })
    await online(caller)
    network.refuse()
    await until('a loss', caller.client, () => caller.client.state.name === 'waiting')
    const out = caller.client.call({ userId: someone('callee'), role: 'agent' })
    await out.cancel()
    network.mend()
    await backOnline(caller)
    expect(await recordsOf(caller)).toEqual([])
  })

  test('TIMEOUT: an invite that nobody waits for rings nobody', async () => {
    const callee = add(someone('callee'), 'agent')
    const caller = add(someone('caller'), 'customer', { url: network.url, requestTimeoutMs: 200 })
    await Promise.all([online(caller), online(callee)])
    network.silence()
    network.refuse()
    const sent = caller.client.call({ userId: callee.userId, role: 'agent' })
    expect(await failure(sent.invited)).toMatchObject({ code: 'TIMEOUT', retryable: true })
    expect(sent.state).toMatchObject({ name: 'over', reason: 'sdk.failed' })
    const unsent = caller.client.call({ userId: callee.userId, role: 'agent' })
    await failure(unsent.invited)
    network.mend()
    await backOnline(caller)
    const probe = caller.client.call({ userId: callee.userId, role: 'agent' })
    await probe.invited
    expect((await recordsOf(caller)).map((it: { call_uuid: string }) => it.call_uuid)).not.toContain(unsent.callUuid)
    await ringing(callee, probe.callUuid)
    expect(callee.client.calls.map(({ callUuid }) => callUuid)).toEqual([probe.callUuid])
  })

  test('an incoming call of before rings on, and can be answered', async () => {
    const { caller, callee } = await two()
    const out = caller.client.call({ userId: callee.userId, role: 'agent' })
    const incoming = await ringing(callee)
    network.cut()
    await incoming.accept()
    await stateOf(out, 'accepted')
    expect(callee.incoming).toEqual([incoming])
  })

  test('hanging up without a network arrives when it is back', async () => {
    const { caller, callee } = await two({ requestTimeoutMs: 100 })
    const calls = await talk(caller, callee)
    network.refuse()
    await until('a loss', callee.client, () => callee.client.state.name === 'waiting')
    const error = await failure(calls.in.end())
    expect(error.code).toBe('TIMEOUT')
    network.mend()
    expect(await stateOf(calls.out, 'over')).toMatchObject({ reason: 'hangup', by: { userId: callee.userId } })
  })
})

describe('a session that cannot go on', () => {
  test('[RES2] the window is over: a new session takes the place, and media hears of it', async () => {
    const brief = await new Service({ RINGWIRE_RESUME_WINDOW_MS: '100' }).start()
    const way = await startNetwork(() => brief.url)
    const caller = person(brief, someone('caller'), 'customer')
    const callee = person(brief, someone('callee'), 'agent', { url: way.url })
    everybody.push(caller, callee)
    await Promise.all([online(caller), online(callee)])
    const calls = await talk(caller, callee)
    const resynced = next(calls.in, 'resynced')
    way.refuse()
    await until('a loss', callee.client, () => callee.client.state.name === 'waiting')
    const offer = calls.in.sendOffer({ type: 'offer', sdp: 'v=0 too late' })
    await Bun.sleep(600)
    way.mend()
    expect((await backOnline(callee)).recovered).toBe(false)
    expect(await resynced).toEqual({ restored: false })
    expect(await failure(offer)).toMatchObject({ code: 'CONNECTION_CLOSED', retryable: true })
    const again = next(calls.out, 'offer')
    await calls.in.sendOffer({ type: 'offer', sdp: 'v=0 again' })
    expect((await again).sdp).toBe('v=0 again')
    await calls.in.end()
    await stateOf(calls.out, 'over')
    await way.close()
    await brief.dispose()
  })

  test('a call that ended meanwhile is over here, with a reason of the SDK', async () => {
    const brief = await new Service({ RINGWIRE_RESUME_WINDOW_MS: '100' }).start()
    const way = await startNetwork(() => brief.url)
    const caller = person(brief, someone('caller'), 'customer')
    const callee = person(brief, someone('callee'), 'agent', { url: way.url })
    everybody.push(caller, callee)
    await Promise.all([online(caller), online(callee)])
    const calls = await talk(caller, callee)
    way.refuse()
    await until('a loss', callee.client, () => callee.client.state.name === 'waiting')
    await calls.out.end()
    await Bun.sleep(600)
    way.mend()
    expect(await stateOf(calls.in, 'over')).toMatchObject({ reason: 'sdk.lost', status: undefined, by: null })
    await way.close()
    await brief.dispose()
  })
})

describe('the service', () => {
  test('[RES3] killed and started again: an answered call goes on, and ends with a right history', async () => {
    const mortal = await new Service().start()
    const caller = person(mortal, someone('caller'), 'customer')
    const callee = person(mortal, someone('callee'), 'agent')
    everybody.push(caller, callee)
    await Promise.all([online(caller), online(callee)])
    const calls = await talk(caller, callee)
    await calls.out.connected()
    await stateOf(calls.in, 'connected')
    const resynced = Promise.all([next(calls.out, 'resynced'), next(calls.in, 'resynced')])
    await mortal.kill()
    await mortal.start()
    expect(await resynced).toEqual([{ restored: false }, { restored: false }])
    expect(calls.out.state.name).toBe('connected')
    const offer = next(calls.in, 'offer')
    await calls.out.sendOffer({ type: 'offer', sdp: 'v=0 restart' })
    await offer
    await calls.in.end()
    expect(await stateOf(calls.out, 'over')).toMatchObject({ status: 'ended', reason: 'hangup' })
    const { data } = await mortal.history(await mortal.token({ user_id: caller.userId, role: 'customer' }))
    expect(data).toMatchObject([{ call_uuid: calls.out.callUuid, status: 'ended', end_reason: 'hangup' }])
    expect([caller.tokens, callee.tokens]).toEqual([['first'], ['first']])
    await mortal.dispose()
  })

  test('[RES3] killed while it rings: it rings on, and can be answered', async () => {
    const mortal = await new Service().start()
    const caller = person(mortal, someone('caller'), 'customer')
    const callee = person(mortal, someone('callee'), 'agent')
    everybody.push(caller, callee)
    await Promise.all([online(caller), online(callee)])
    const out = caller.client.call({ userId: callee.userId, role: 'agent' })
    const incoming = await ringing(callee)
    await out.invited
    await mortal.kill()
    await mortal.start()
    await Promise.all([backOnline(caller), backOnline(callee)])
    await incoming.accept()
    await stateOf(out, 'accepted')
    expect(callee.incoming).toEqual([incoming])
    await mortal.dispose()
  })

  test('killed before it has answered: the invite is asked again, and there is one call', async () => {
    const mortal = await new Service().start()
    const caller = person(mortal, someone('caller'), 'customer')
    const callee = person(mortal, someone('callee'), 'agent')
    everybody.push(caller, callee)
    await Promise.all([online(caller), online(callee)])
    mortal.signal('SIGSTOP')
    const out = caller.client.call({ userId: callee.userId, role: 'agent' })
    await mortal.kill()
    await mortal.start()
    await out.invited
    const incoming = await ringing(callee, out.callUuid)
    await incoming.accept()
    await stateOf(out, 'accepted')
    await mortal.dispose()
  })

  test('[CLOSE] drained: everybody comes back within the jitter, with the token they have, and meets no 429', async () => {
    const people = 150
    const drained = await new Service({ RINGWIRE_TOKEN_RATE_IP: `${people}/600` }).start()
    const crowd = Array.from({ length: people }, () => person(drained, someone('one'), 'customer'))
    everybody.push(...crowd)
    await Promise.all(crowd.map(online))
    await drained.terminate()
    await Promise.all(crowd.map((it) => until('a loss', it.client, () => it.client.state.name !== 'online')))
    const waits = crowd.map(({ states }) => states.find((state) => state.name === 'waiting'))
    expect(waits.every((state) => state?.name === 'waiting' && state.why.cause === 'socket')).toBe(true)
    expect(waits[0]).toMatchObject({ why: { code: 1012, reason: `restart, jitter_ms=${people * 2}` } })
    await drained.start()
    await Promise.all(crowd.map((it) => until('online', it.client, () => it.client.state.name === 'online')))
    expect(crowd.flatMap(({ tokens }) => tokens)).toEqual(crowd.map(() => 'first'))
    for (const { client } of crowd) client.close()
    await drained.dispose()
  })

  test('4401: a token that it does not take any more is replaced', async () => {
    const secrets = (byte: number) => `k${byte}:${Buffer.alloc(32, byte).toString('base64url')}`
    const changed = await new Service({ RINGWIRE_JWT_SECRETS: secrets(1) }).start()
    const it = person(changed, someone('one'), 'customer')
    everybody.push(it)
    await online(it)
    await changed.kill()
    await changed.start({ RINGWIRE_JWT_SECRETS: secrets(2) })
    await backOnline(it)
    expect(it.tokens).toEqual(['first', 'refused'])
    expect(
      it.states.some((state) => state.name === 'waiting' && state.why.cause === 'socket' && state.why.code === 4401),
    ).toBe(true)
    it.client.close()
    await changed.dispose()
  })

  test('[WS5] a socket outlives its token: the next one is shown before the end', async () => {
    const short = await new Service({ RINGWIRE_TOKEN_TTL_S: '2', RINGWIRE_TOKEN_GRACE_MS: '500' }).start()
    const reasons: string[] = []
    const twice = Promise.withResolvers<void>()
    const userId = someone('one')
    const it = person(short, userId, 'customer', {
      getToken: (reason) => {
        if (reasons.push(reason) === 3) twice.resolve()
        return short.issue({ user_id: userId, role: 'customer' })
      },
    })
    everybody.push(it)
    const first = await online(it)
    await twice.promise
    expect(reasons).toEqual(['first', 'expiring', 'expiring'])
    expect(it.client.state).toBe(first)
    await it.client.call({ userId: someone('callee'), role: 'agent' }).invited
    it.client.close()
    await short.dispose()
  })
})

describe('a page that is loaded again', () => {
  test('[RES1] finds its session in the storage, and its live call in the session', async () => {
    const storage = memory()
    const { caller, callee } = await two({ storage })
    const calls = await talk(caller, callee)
    const before = await online(callee)
    const kept = new Map(storage.items)

    // The page goes without a word, and the next one has what it left in the storage.
    network.refuse()
    await until('a loss', callee.client, () => callee.client.state.name === 'waiting')
    const left = callee.client
    everybody = everybody.filter(({ client }) => client !== left)
    const missed = calls.out.sendCandidate(candidate('meanwhile'))
    await missed
    left.close()
    for (const [key, value] of kept) storage.items.set(key, value)
    network.mend()

    const page = add(callee.userId, 'agent', { storage, url: network.url })
    const heard: string[] = []
    page.client.on('restored', (call) => {
      call.on('candidate', ({ candidate }) => heard.push(candidate))
      call.on('resynced', ({ restored }) => heard.push(`restored ${restored}`))
    })
    const after = await online(page)
    expect(after).toMatchObject({ recovered: true, sessionId: before.sessionId })
    const [call] = page.client.calls
    expect(page.restored).toEqual([call!])
    expect(call).toMatchObject({ callUuid: calls.out.callUuid, direction: 'incoming', callType: 'audio' })
    expect(call!.peer).toEqual({ userId: caller.userId, role: 'customer', displayName: caller.userId })
    expect(call!.state.name).toBe('accepted')
    const answer = next(calls.out, 'answer')
    await call!.sendAnswer({ type: 'answer', sdp: 'v=0 new page' })
    await answer
    expect(heard).toEqual(['restored true', 'meanwhile'])
    await call!.end()
    expect(await stateOf(calls.out, 'over')).toMatchObject({ reason: 'hangup' })
  })

  test('a call that rings for it rings for the next page, too', async () => {
    const storage = memory()
    const { caller, callee } = await two({ storage })
    const out = caller.client.call({ userId: callee.userId, role: 'agent' })
    await ringing(callee)
    const kept = new Map(storage.items)
    network.refuse()
    await until('a loss', callee.client, () => callee.client.state.name === 'waiting')
    callee.client.close()
    for (const [key, value] of kept) storage.items.set(key, value)
    network.mend()
    const page = add(callee.userId, 'agent', { storage, url: network.url })
    await online(page)
    const incoming = await ringing(page, out.callUuid)
    await incoming.accept()
    await stateOf(out, 'accepted')
  })

  test('4409: the newest page has the session, the older one stays away', async () => {
    const storage = memory()
    const { callee } = await two({ storage })
    const twin = add(callee.userId, 'agent', { storage, url: network.url })
    expect((await online(twin)).recovered).toBe(true)
    const closed = await until(
      'closed',
      callee.client,
      () => callee.client.state.name === 'closed' && callee.client.state,
    )
    expect(closed.why).toMatchObject({ cause: 'socket', code: 4409 })
    expect(twin.client.state.name).toBe('online')
  })

  test('close ends the session: nobody goes on with it', async () => {
    const storage = memory()
    const { callee } = await two({ storage })
    const kept = new Map(storage.items)
    expect(kept.size).toBe(1)
    callee.client.close()
    expect(storage.items.size).toBe(0)
    for (const [key, value] of kept) storage.items.set(key, value)
    const page = add(callee.userId, 'agent', { storage, url: network.url })
    expect((await online(page)).recovered).toBe(false)
    expect(storage.items.size).toBe(1)
  })

  test('a storage that refuses, or holds something else, is no reason to stay away', async () => {
    const errors: RingwireErrorShape[] = []
    const refusing = add(someone('one'), 'customer', {
      storage: {
        getItem: () => Promise.reject(new Error('no')),
        setItem: () => {
          throw new Error('full')
        },
        removeItem: () => Promise.reject(new Error('no')),
      },
    })
    refusing.client.on('error', (error) => errors.push(error))
    await online(refusing)
    expect(errors[0]).toMatchObject({ code: 'REQUEST_FAILED' })
    const storage = memory()
    storage.items.set('ringwire', '{"id":7}')
    const other = add(someone('one'), 'customer', { storage })
    expect((await online(other)).recovered).toBe(false)
  })
})

test('[EXT5] ICE servers come with the token, and can be fetched', async () => {
  const turn = await new Service({
    RINGWIRE_TURN_URLS: 'turn:127.0.0.1:3478',
    RINGWIRE_TURN_SECRET: 'a'.repeat(32),
  }).start()
  const it = person(turn, someone('one'), 'customer')
  everybody.push(it)
  await online(it)
  expect(it.client.iceServers).toMatchObject([{ urls: ['turn:127.0.0.1:3478'] }])
  expect(await it.client.freshIceServers()).toBe(it.client.iceServers)
  it.client.close()

  const bare = person(turn, it.userId, 'customer', {
    getToken: async () => {
      const { token, expires_at, ws_url } = await turn.issue({ user_id: it.userId, role: 'customer' })
      return { token, expires_at, ws_url }
    },
  })
  everybody.push(bare)
  await online(bare)
  expect(bare.client.iceServers).toEqual([])
  expect(await bare.client.freshIceServers()).toMatchObject([{ urls: ['turn:127.0.0.1:3478'] }])
  expect(bare.client.iceServers).toHaveLength(1)
  bare.client.close()
  await turn.dispose()
})
