import { describe, expect, test } from 'bun:test'
import { someone } from '@ringwire/testkit/flows'
import { soon } from '@ringwire/testkit/patience'
import { Service } from '@ringwire/testkit/service'
import { TcpProxy } from '@ringwire/testkit/tcp-proxy'
import { backOnline, next, online, type Person, person, ringing, stateOf, talk, until } from './support/people.ts'
import { candidate, createStage, failure } from './support/stage.ts'

/** The SDK against the service as its own process: sockets that die. */
const stage = createStage()

async function recordsOf(it: Person) {
  return (await stage.service.history(await stage.service.token({ user_id: it.userId, role: it.role }))).data
}

describe('a socket that dies', () => {
  test('[RES1] the session goes on: what came meanwhile comes once, in order, and no token is asked for', async () => {
    const { caller, callee } = await stage.two()
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
    stage.network.refuse()
    await until('a loss', callee.client, () => callee.client.state.name === 'waiting')
    const sent = Array.from({ length: 50 }, (_, i) => `c${i}`)
    await Promise.all([...sent, 'last'].map((name) => calls.out.sendCandidate(candidate(name))))
    stage.network.mend()
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
    const { caller, callee } = await stage.two()
    const calls = await talk(caller, callee)
    const heard: string[] = []
    calls.out.on('candidate', ({ candidate }) => heard.push(candidate))
    const sent = Array.from({ length: 100 }, (_, i) => `c${i}`)
    const asked: Promise<void>[] = []
    for (const [i, name] of sent.entries()) {
      asked.push(calls.in.sendCandidate(candidate(name)))
      // Cuts at every moment of the conversation: in a request, in a reply, in a handshake.
      if (i % 10 === 9) stage.network.cut()
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

  test('[END1] what was sent before the end and reaches the service after it is no success', async () => {
    const { caller, callee } = await stage.two()
    const calls = await talk(caller, callee)
    const heard: string[] = []
    calls.out.on('candidate', ({ candidate }) => heard.push(candidate))
    stage.network.stall()
    const late = calls.in.sendCandidate(candidate('late'))
    await calls.out.end()
    stage.network.mend()
    expect(await failure(late)).toMatchObject({ code: 'CALL_OVER' })
    expect(await stateOf(calls.in, 'over')).toMatchObject({ reason: 'hangup' })
    expect(heard).toEqual([])
  })

  test('[END1] what was passed on is a success, also if this side has hung up before it hears so', async () => {
    const { caller, callee } = await stage.two()
    const calls = await talk(caller, callee)
    const heard = next(calls.out, 'candidate')
    const last = calls.in.sendCandidate(candidate('last'))
    const ended = calls.in.end()
    expect(calls.in.state.name).toBe('over')
    await last
    await ended
    expect((await heard).candidate).toContain('last')
  })

  test('silence is noticed by a request without a reply, and the request is not lost', async () => {
    const { caller, callee } = await stage.two({ heartbeatTimeoutMs: 300 })
    const calls = await talk(caller, callee)
    stage.network.silence()
    const connected = calls.in.connected()
    const lost = await until(
      'a loss',
      callee.client,
      () => callee.client.state.name === 'waiting' && callee.client.state,
    )
    expect(lost.why).toMatchObject({ code: 'silent' })
    await connected
    expect(calls.in.state.name).toBe('connected')
    await stateOf(calls.out, 'connected')
    // A busy machine may answer so late that it is lost once more.
    expect((await online(callee)).recovered).toBe(true)
  })

  test('silence is noticed when nothing is asked at all: the heartbeat', async () => {
    // Longer than a machine may stand still.
    const { callee } = await stage.two({ heartbeatMs: 200, heartbeatTimeoutMs: 8_000 })
    const first = callee.client.state
    // The heartbeat itself keeps a live socket open.
    await Bun.sleep(700)
    expect(callee.client.state).toBe(first)
    stage.network.silence()
    const lost = await until(
      'a loss',
      callee.client,
      () => callee.client.state.name === 'waiting' && callee.client.state,
    )
    expect(lost.why).toMatchObject({ code: 'silent' })
    expect((await backOnline(callee)).recovered).toBe(true)
    expect(callee.tokens).toEqual(['first'])
  })

  test('wake asks a socket that may be dead, and does not wait for the heartbeat', async () => {
    const { callee } = await stage.two({ heartbeatTimeoutMs: 300 })
    stage.network.silence()
    callee.client.wake()
    await until('a loss', callee.client, () => callee.client.state.name === 'waiting')
    await backOnline(callee)
  })

  test('an invite that was made without a network goes out when it is back', async () => {
    const caller = stage.add(someone('caller'), 'customer', { url: stage.network.wsUrl })
    const callee = stage.add(someone('callee'), 'agent')
    await Promise.all([online(caller), online(callee)])
    stage.network.refuse()
    await until('a loss', caller.client, () => caller.client.state.name === 'waiting')
    const out = caller.client.call({ userId: callee.userId, role: 'agent' })
    stage.network.mend()
    await out.invited
    await ringing(callee, out.callUuid)
  })

  test('an invite that was made without a network and taken back was never made', async () => {
    const caller = stage.add(someone('caller'), 'customer', { url: stage.network.wsUrl })
    await online(caller)
    stage.network.refuse()
    await until('a loss', caller.client, () => caller.client.state.name === 'waiting')
    const out = caller.client.call({ userId: someone('callee'), role: 'agent' })
    await out.cancel()
    stage.network.mend()
    await backOnline(caller)
    expect(await recordsOf(caller)).toEqual([])
  })

  test('TIMEOUT: an invite that nobody waits for rings nobody', async () => {
    const callee = stage.add(someone('callee'), 'agent')
    const caller = stage.add(someone('caller'), 'customer', { url: stage.network.wsUrl, requestTimeoutMs: soon(2_000) })
    await Promise.all([online(caller), online(callee)])
    stage.network.silence()
    stage.network.refuse()
    const sent = caller.client.call({ userId: callee.userId, role: 'agent' })
    expect(await failure(sent.invited)).toMatchObject({ code: 'TIMEOUT', retryable: true })
    expect(sent.state).toMatchObject({ name: 'over', reason: 'sdk.failed' })
    const unsent = caller.client.call({ userId: callee.userId, role: 'agent' })
    await failure(unsent.invited)
    stage.network.mend()
    await backOnline(caller)
    const probe = caller.client.call({ userId: callee.userId, role: 'agent' })
    await probe.invited
    const records: { call_uuid: string; status: string }[] = await recordsOf(caller)
    const statuses = Object.fromEntries(records.map(({ call_uuid, status }) => [call_uuid, status]))
    expect(statuses).toEqual({ [sent.callUuid]: 'cancelled', [probe.callUuid]: 'ringing' })
    await ringing(callee, probe.callUuid)
    expect(callee.client.calls.map(({ callUuid }) => callUuid)).toEqual([probe.callUuid])
  })

  test('an incoming call of before rings on, and can be answered', async () => {
    const { caller, callee } = await stage.two()
    const out = caller.client.call({ userId: callee.userId, role: 'agent' })
    const incoming = await ringing(callee)
    stage.network.cut()
    await incoming.accept()
    await stateOf(out, 'accepted')
    expect(callee.incoming).toEqual([incoming])
  })

  test('hanging up without a network arrives when it is back', async () => {
    const { caller, callee } = await stage.two({ requestTimeoutMs: soon(2_000) })
    const calls = await talk(caller, callee)
    stage.network.refuse()
    await until('a loss', callee.client, () => callee.client.state.name === 'waiting')
    const error = await failure(calls.in.end())
    expect(error.code).toBe('TIMEOUT')
    stage.network.mend()
    const by = { userId: callee.userId }
    expect(await stateOf(calls.out, 'over')).toMatchObject({ status: 'ended', reason: 'hangup', by })
  })
})

test('[RES1] an attempt that was given up and arrives late takes the session only for a moment', async () => {
  const { caller, callee } = await stage.two({ connectTimeoutMs: 500 })
  const calls = await talk(caller, callee)
  const arrive = stage.network.holdNext()
  stage.network.cut()
  const before = stage.network.attempts
  await backOnline(callee)
  expect(stage.network.attempts).toBeGreaterThanOrEqual(before + 2)
  arrive()
  const lost = await until('a loss', callee.client, () => callee.client.state.name === 'waiting' && callee.client.state)
  expect(lost.why).toMatchObject({ code: 'replaced', closeCode: 4409 })
  expect(await backOnline(callee)).toMatchObject({ recovered: true })
  const heard = next(calls.in, 'candidate')
  await calls.out.sendCandidate(candidate('after all'))
  expect((await heard).candidate).toBe('after all')
})

describe('a place that another session took meanwhile', () => {
  for (const device_id of [undefined, 'one device']) {
    for (const isOver of [false, true]) {
      const how = `${device_id ?? 'no device'}, the call ${isOver ? 'has ended there' : 'goes on there'}`
      test(`[PLACE2] its session that comes back hears of it: ${how}`, async () => {
        const wish = device_id === undefined ? {} : { device_id }
        const { caller, callee } = await stage.two({ wish })
        const calls = await talk(caller, callee)
        await calls.in.connected()
        stage.network.refuse()
        await until('a loss', callee.client, () => callee.client.state.name === 'waiting')
        const other = stage.add(callee.userId, 'agent', { wish })
        await online(other)
        const restored = await until('the call', other.client, () => other.restored[0])
        await restored.connected()
        if (isOver) await restored.end()
        stage.network.mend()
        expect((await backOnline(callee)).recovered).toBe(true)
        const over = await stateOf(calls.in, 'over')
        if (isOver) expect(over).toMatchObject({ status: 'ended', reason: 'hangup' })
        else {
          expect(over).toMatchObject({ status: 'accepted', reason: 'sdk.elsewhere' })
          expect([restored.state.name, calls.out.state.name]).toEqual(['connected', 'connected'])
        }
      })
    }
  }
})

describe('a session that cannot go on', () => {
  test('[RES2] the window is over: a new session takes the place, and media hears of it', async () => {
    const brief = await new Service({ RINGWIRE_RESUME_WINDOW_MS: '100' }).start()
    const way = await new TcpProxy(() => brief.url).start()
    const caller = person(brief, someone('caller'), 'customer')
    const callee = person(brief, someone('callee'), 'agent', { url: way.wsUrl })
    stage.keep(caller, callee)
    await Promise.all([online(caller), online(callee)])
    const calls = await talk(caller, callee)
    const resynced = next(calls.in, 'resynced')
    way.refuse()
    await until('a loss', callee.client, () => callee.client.state.name === 'waiting')
    const offer = calls.in.sendOffer({ type: 'offer', sdp: 'v=0 too late' })
    // The window begins when the service sees the loss.
    await until('the other side hears of it', caller.client, () => calls.out.peerState.away !== null)
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
    await way.stop()
    await brief.dispose()
  })

  test('[END4] a call that ended meanwhile is over here, as it ended there', async () => {
    const brief = await new Service({ RINGWIRE_RESUME_WINDOW_MS: '100' }).start()
    const way = await new TcpProxy(() => brief.url).start()
    const caller = person(brief, someone('caller'), 'customer')
    const callee = person(brief, someone('callee'), 'agent', { url: way.wsUrl })
    stage.keep(caller, callee)
    await Promise.all([online(caller), online(callee)])
    const calls = await talk(caller, callee)
    way.refuse()
    await until('a loss', callee.client, () => callee.client.state.name === 'waiting')
    await calls.out.end()
    await Bun.sleep(600)
    way.mend()
    expect(await stateOf(calls.in, 'over')).toMatchObject({
      reason: 'hangup',
      status: 'ended',
      by: { role: 'customer' },
    })
    await way.stop()
    await brief.dispose()
  })
})
