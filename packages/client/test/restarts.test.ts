import { describe, expect, test } from 'bun:test'
import { someone } from '@ringwire/testkit/flows'
import { inTime, soon } from '@ringwire/testkit/patience'
import { Service } from '@ringwire/testkit/service'
import { backOnline, next, online, person, ringing, stateOf, talk, until } from './support/people.ts'
import { createStage, failure } from './support/stage.ts'

/** The SDK against the service as its own process: a service that restarts, tokens that run out. */
const stage = createStage()

describe('the service', () => {
  test('[RES3] killed and started again: an answered call goes on, and ends with a right history', async () => {
    const mortal = await new Service().start()
    const caller = person(mortal, someone('caller'), 'customer')
    const callee = person(mortal, someone('callee'), 'agent')
    stage.keep(caller, callee)
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

  test('[END1] hung up while it is away: over at once here, and ended with its status there when it is back', async () => {
    const mortal = await new Service().start()
    const caller = person(mortal, someone('caller'), 'customer', { requestTimeoutMs: soon(2_000) })
    const callee = person(mortal, someone('callee'), 'agent')
    stage.keep(caller, callee)
    await Promise.all([online(caller), online(callee)])
    const answered = await talk(caller, callee)
    await mortal.kill()
    const asked = answered.out.end('battery')
    expect(answered.out.state).toMatchObject({ name: 'over', status: 'ended', reason: 'battery' })
    expect(await failure(asked)).toMatchObject({ code: 'TIMEOUT', retryable: true })
    await mortal.start()
    const by = { userId: caller.userId, role: 'customer' }
    expect(await stateOf(answered.in, 'over')).toMatchObject({ status: 'ended', reason: 'battery', by })
    const { data } = await mortal.history(await mortal.token({ user_id: caller.userId, role: 'customer' }))
    expect(data).toMatchObject([{ call_uuid: answered.out.callUuid, status: 'ended', end_reason: 'battery' }])
    await mortal.dispose()
  })

  test('[RES3] killed while it rings: it rings on, and can be answered', async () => {
    const mortal = await new Service().start()
    const caller = person(mortal, someone('caller'), 'customer')
    const callee = person(mortal, someone('callee'), 'agent')
    stage.keep(caller, callee)
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
    stage.keep(caller, callee)
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
    stage.keep(...crowd)
    await Promise.all(crowd.map(online))
    await drained.terminate()
    await Promise.all(crowd.map((it) => until('a loss', it.client, () => it.client.state.name !== 'online')))
    const waits = crowd.map(({ states }) => states.find((state) => state.name === 'waiting'))
    expect(waits.every((state) => state?.name === 'waiting' && state.why.code === 'socket_closed')).toBe(true)
    expect(waits[0]).toMatchObject({ why: { closeCode: 1012, reason: `restart, jitter_ms=${people * 2}` } })
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
    stage.keep(it)
    await online(it)
    await changed.kill()
    await changed.start({ RINGWIRE_JWT_SECRETS: secrets(2) })
    await backOnline(it)
    expect(it.tokens).toEqual(['first', 'refused'])
    expect(it.states.some((state) => state.name === 'waiting' && state.why.closeCode === 4401)).toBe(true)
    it.client.close()
    await changed.dispose()
  })

  async function outlivesToken(short: Service): Promise<void> {
    const reasons: string[] = []
    const twice = Promise.withResolvers<void>()
    const userId = someone('one')
    const it = person(short, userId, 'customer', {
      getToken: (reason) => {
        if (reasons.push(reason) === 3) twice.resolve()
        return short.issue({ user_id: userId, role: 'customer' })
      },
    })
    stage.keep(it)
    const first = await online(it)
    await twice.promise
    expect(reasons).toEqual(['first', 'expiring', 'expiring'])
    expect(it.client.state).toBe(first)
    await it.client.call({ userId: someone('callee'), role: 'agent' }).invited
    it.client.close()
  }

  test('[WS5] a socket outlives its token: the next one is shown before the end', async () => {
    const short = await new Service({ RINGWIRE_TOKEN_TTL_S: '2', RINGWIRE_TOKEN_GRACE_MS: '500' }).start()
    try {
      await inTime(() => outlivesToken(short))
    } finally {
      await short.dispose()
    }
  })
})

test('[EXT5] ICE servers come with the token; fresh ones with the next one', async () => {
  const turn = await new Service({
    RINGWIRE_TURN_URLS: 'turn:127.0.0.1:3478',
    RINGWIRE_TURN_SECRET: 'a'.repeat(32),
  }).start()
  const userId = someone('one')
  let asked = 0
  const it = person(turn, userId, 'customer', {
    getToken: async () => {
      const given = await turn.issue({ user_id: userId, role: 'customer' })
      // The first one is as good as over.
      return ++asked > 1 ? given : { ...given, expires_at: new Date(Date.now() + 1).toISOString() }
    },
  })
  stage.keep(it)
  await online(it)
  const first = it.client.iceServers
  expect(first).toMatchObject([{ urls: ['turn:127.0.0.1:3478'] }])
  // Until the pause after a token is over, the client uses it again.
  let fresh = await it.client.freshIceServers()
  while (fresh === first) {
    await new Promise(setImmediate)
    fresh = await it.client.freshIceServers()
  }
  expect(asked).toBe(2)
  expect(fresh).toBe(it.client.iceServers)
  expect(fresh).not.toBe(first)
  expect(await it.client.freshIceServers()).toBe(fresh)
  it.client.close()
  await turn.dispose()
})
