import { describe, expect, test } from 'bun:test'
import { ExtendedClient } from '@ringwire/testkit/extended-client'
import type { ResumePoint } from '@ringwire/testkit/extended-trace'
import { candidate, someone } from '@ringwire/testkit/flows'
import type { Service } from '@ringwire/testkit/service'
import {
  about,
  answeredCall,
  candidatesOf,
  connectExtended,
  connectExtendedPair,
  connectedCall,
  type ExtendedPair,
  ringingCall,
} from '../../support/extended-flows.ts'
import { finish, type Start, serviceFor } from '../calls/composition.ts'

const upTo = (count: number) => Array.from({ length: count }, (_, n) => n)

/** Sessions that come back: exactly where they were, or honestly as new ones [RES1, RES2, RES3]. */
export function registerResume(name: string, start: Start, areSessionsKept = false): void {
  describe(`sessions that come back, ${name}`, () => {
    const service = serviceFor(start)
    registerWhole(service)
    registerRefused(service)
    registerSlow(service)
  })
  describe(`sessions that come back late, ${name}`, () => {
    registerLate(serviceFor(start, { RINGWIRE_RESUME_WINDOW_MS: '300' }))
  })
  describe(`sessions that come back to a service that was restarted, ${name}`, () => {
    registerRestarts(start, areSessionsKept)
  })
}

/** Relays numbered `from` to `to`, each acknowledged. */
async function relay(pair: ExtendedPair, callUuid: string, from: number, to: number): Promise<void> {
  for (let n = from; n <= to; n++) await pair.caller.request('webrtc.ice_candidate', candidate(callUuid, n))
}

/** The call can be ended by either, and both histories say so. */
async function expectGoodEnd(service: Service, pair: ExtendedPair, callUuid: string): Promise<void> {
  await pair.callee.request('call.end', { call_uuid: callUuid })
  const ended = await pair.caller.next('call.ended', about(callUuid))
  expect(ended.data).toMatchObject({ status: 'ended', reason: 'hangup', by: { user_id: pair.calleeId, role: 'agent' } })
  for (const [user_id, role] of [
    [pair.callerId, 'customer'],
    [pair.calleeId, 'agent'],
  ] as const) {
    const { data } = await service.history(await service.token({ user_id, role }))
    expect(data.filter((record: { call_uuid: string }) => record.call_uuid === callUuid)).toMatchObject([
      { status: 'ended', end_reason: 'hangup' },
    ])
  }
}

function registerWhole(service: () => Service): void {
  test('[RES1] everything since, once and in order, however often and wherever it was cut', async () => {
    const pair = await connectExtendedPair(service())
    const callUuid = await answeredCall(pair)
    for (let round = 0; round < 20; round++) {
      await relay(pair, callUuid, 10 * round, 10 * round + 4)
      await pair.callee.die()
      await relay(pair, callUuid, 10 * round + 5, 10 * round + 9)
      const hello = await pair.callee.connect()
      expect(hello.data).toMatchObject({ recovered: true, session_id: pair.callee.hello?.data.session_id })
    }
    await pair.callee.settle()
    expect(candidatesOf(pair.callee, callUuid)).toEqual(upTo(200))
    expect(pair.callee.pushes.map(({ seq }) => seq)).toEqual(pair.callee.pushes.map((_, index) => index + 1))
    await expectGoodEnd(service(), pair, callUuid)
  })

  test('[RES1] it may ask again for what it has had: the log is still there', async () => {
    const pair = await connectExtendedPair(service())
    const callUuid = await answeredCall(pair)
    await relay(pair, callUuid, 0, 9)
    // An acknowledged message is in the log, and may still be on its way.
    await pair.callee.next('webrtc.ice_candidate', ({ data }) => data.candidate.candidate.endsWith(':9'))
    await pair.callee.die()
    const before = pair.callee.pushes.length
    await pair.callee.connect({ ...(pair.callee.point as ResumePoint), seq: 0 })
    await pair.callee.settle()
    const again = pair.callee.pushes.slice(before)
    expect(again.map(({ seq, event }) => [seq, event])).toEqual(
      pair.callee.pushes.slice(0, before).map(({ seq, event }) => [seq, event]),
    )
  })

  test('[RES1] a socket of before that comes in late takes nothing from the one that its client has by now', async () => {
    const pair = await connectExtendedPair(service())
    const callUuid = await answeredCall(pair)
    await relay(pair, callUuid, 0, 4)
    await pair.callee.next('webrtc.ice_candidate', ({ data }) => data.candidate.candidate.endsWith(':4'))
    const point = pair.callee.point as ResumePoint
    await pair.callee.die()
    // That says what it has.
    await pair.callee.connect()
    const late = new ExtendedClient({ userId: pair.calleeId, url: service().nextUrl(), token: pair.callee.token })
    late.connect({ ...point, seq: (point.seq as number) - 1 }).catch(() => {})
    expect(await late.closed).toMatchObject({ code: 4409 })
    await relay(pair, callUuid, 5, 9)
    await pair.callee.settle()
    expect(candidatesOf(pair.callee, callUuid)).toEqual(upTo(10))
    expect(late.all).toEqual([])
    // It could come back as ever.
    await pair.callee.die()
    expect((await pair.callee.connect()).data).toMatchObject({ recovered: true })
    await expectGoodEnd(service(), pair, callUuid)
  })

  test('[RES1] a call that began, rang and ended meanwhile: all of it comes, in order', async () => {
    const pair = await connectExtendedPair(service())
    await pair.callee.die()
    const callUuid = crypto.randomUUID()
    const data = { callee_user_id: pair.calleeId, callee_role: 'agent', call_uuid: callUuid }
    await pair.caller.request('call.invite', data)
    await pair.caller.request('call.cancel', { call_uuid: callUuid })
    await pair.callee.connect()
    await pair.callee.settle()
    // It never rang there, so there is nothing to end.
    const events = pair.callee.events()
    expect([[], ['call.ringing', 'call.cancelled']]).toContainEqual(events)
    expect(pair.callee.hello?.data).toMatchObject({ recovered: true, active_calls: [] })
  })

  test('[RES1] 512 events are kept: one more is a new session', async () => {
    for (const [count, recovered] of [
      [511, true],
      [513, false],
    ] as const) {
      const pair = await connectExtendedPair(service())
      const callUuid = await answeredCall(pair)
      await pair.callee.settle()
      await pair.callee.die()
      for (let n = 0; n < count; n++) {
        pair.caller.send('webrtc.ice_candidate', candidate(callUuid, n))
        if (n % 100 === 99) await pair.caller.settle()
      }
      await pair.caller.settle()
      expect((await pair.callee.connect()).data.recovered).toBe(recovered)
      await pair.callee.settle()
      const came = candidatesOf(pair.callee, callUuid)
      // Never a part of it that claims to be the whole.
      expect(recovered ? came : came.length <= count).toEqual(recovered ? upTo(count) : true)
    }
  })
}

function registerRefused(service: () => Service): void {
  /** What a client may say that is not so. */
  const lies: Record<string, (point: ResumePoint, stranger: ExtendedClient) => ResumePoint> = {
    'an unknown session': (point) => ({ ...point, session_id: 'AAAAAAAAAAAAAAAAAAAAAA' }),
    'a stranger’s session': (_, stranger) => stranger.point as ResumePoint,
    'an old epoch': (point) => ({ ...point, epoch: 'old' }),
    'a seq from the future': (point) => ({ ...point, seq: 1_000 }),
    'a seq that is no number': (point) => ({ ...point, seq: '1e3' }),
    'a negative seq': (point) => ({ ...point, seq: -1 }),
  }
  for (const [what, lie] of Object.entries(lies)) {
    test(`[RES2] ${what}: a new session, with the truth, and the call goes on`, async () => {
      const pair = await connectExtendedPair(service(), {})
      const { caller: stranger } = await connectExtendedPair(service())
      const callUuid = await connectedCall(pair)
      const point = pair.callee.point as ResumePoint
      await pair.callee.die()
      const hello = await pair.callee.connect(lie(point, stranger))
      expect(hello.data.recovered).toBe(false)
      expect(hello.data.session_id).not.toBe(point.session_id)
      expect(hello.data.active_calls).toMatchObject([{ call_uuid: callUuid, status: 'connected', holds_place: true }])
      // The numbers of a new session begin again.
      await pair.caller.request('webrtc.ice_candidate', candidate(callUuid, 7))
      await pair.callee.next('webrtc.ice_candidate', ({ data }) => data.candidate.candidate === 'candidate:7')
      await pair.callee.settle()
      const relays = pair.callee.pushes.filter(({ event }) => event === 'webrtc.ice_candidate')
      expect(relays.map(({ data }) => data.candidate.candidate)).toEqual(['candidate:7'])
      await expectGoodEnd(service(), pair, callUuid)
      // The stranger has noticed nothing.
      await stranger.settle()
    })
  }

  test('[RES2] with the token of another user, or of another device: a session of one’s own, and nothing of the other', async () => {
    const pair = await connectExtendedPair(service(), { device_id: 'phone' })
    const callUuid = await answeredCall(pair)
    await relay(pair, callUuid, 0, 4)
    const point = pair.callee.point as ResumePoint
    await pair.callee.die()
    for (const wish of [
      { user_id: someone('eve'), role: 'agent', device_id: 'phone' },
      { user_id: pair.calleeId, role: 'agent', device_id: 'tablet' },
    ]) {
      const eve = await connectExtended(service(), wish)
      await eve.die()
      const hello = await eve.connect({ ...point, seq: 0 })
      expect(hello.data).toMatchObject({ recovered: false, handled: 0 })
      await eve.settle()
      expect(eve.events()).toEqual([])
      expect(hello.data.active_calls.some(({ holds_place }: { holds_place: boolean }) => holds_place)).toBe(false)
    }
    // Its own client still has it.
    expect((await pair.callee.connect(point)).data.recovered).toBe(true)
  })
}

function registerSlow(service: () => Service): void {
  test('[WS7] [RES2] who stops reading loses its socket, and comes back to the truth', async () => {
    const pair = await connectExtendedPair(service())
    const callUuid = await answeredCall(pair)
    await pair.callee.settle()
    pair.callee.pause()
    const sdp = { type: 'offer', sdp: 'v=0\r\n'.padEnd(40_000, 'x') }
    // More than the kernel's buffers and the service's bound hold; no more at a time than may wait for its turn [ORD1].
    for (let n = 0; n < 600; n++) {
      pair.caller.send('webrtc.offer', { call_uuid: callUuid, sdp })
      if (n % 4 === 3) await pair.caller.settle()
    }
    await pair.caller.settle()
    await pair.callee.die()
    const hello = await pair.callee.connect()
    // 1 MiB of the log is far less than what was sent.
    expect(hello.data.recovered).toBe(false)
    expect(hello.data.active_calls).toMatchObject([{ call_uuid: callUuid, holds_place: true }])
    await pair.caller.request('webrtc.ice_candidate', candidate(callUuid, 1))
    await pair.callee.next('webrtc.ice_candidate', ({ data }) => data.candidate.candidate === 'candidate:1')
    await pair.callee.settle()
    expect(candidatesOf(pair.callee, callUuid)).toEqual([1])
    await expectGoodEnd(service(), pair, callUuid)
  })
}

function registerLate(service: () => Service): void {
  test('[RES1] [RES2] after the window it is a new session, which takes the place of the old one', async () => {
    const pair = await connectExtendedPair(service())
    const callUuid = await answeredCall(pair)
    const point = pair.callee.point as ResumePoint
    await pair.callee.die()
    // The window begins when the service sees the loss, and the peer hears of that.
    await pair.caller.next('call.peer_away', about(callUuid))
    // Time is what this is about: a resume after the window, and not a moment before.
    await Bun.sleep(400)
    const hello = await pair.callee.connect(point)
    expect(hello.data.recovered).toBe(false)
    expect(hello.data.active_calls).toMatchObject([{ call_uuid: callUuid, holds_place: true }])
    await expectGoodEnd(service(), pair, callUuid)
  })
}

function registerRestarts(start: Start, areSessionsKept: boolean): void {
  for (const how of ['SIGTERM', 'SIGKILL'] as const) {
    test(`[RES3] ${how} in mid-call: both come back, relays go on, and the call ends as any other`, async () => {
      const service = await start()
      try {
        const pair = await connectExtendedPair(service)
        const callUuid = await connectedCall(pair)
        await relay(pair, callUuid, 0, 2)
        if (how === 'SIGTERM') expect(await service.terminate()).toBe(0)
        else await service.kill()
        await service.start()
        // A node that has just started may have too much to do, and says so [CLOSE 1013].
        const hellos = await Promise.all([pair.caller.comeBack(), pair.callee.comeBack()])
        for (const { data } of hellos) {
          expect(data.recovered).toBe(areSessionsKept)
          expect(data.active_calls).toMatchObject([{ call_uuid: callUuid, status: 'connected', holds_place: true }])
        }
        await relay(pair, callUuid, 10, 12)
        await pair.callee.settle()
        expect(candidatesOf(pair.callee, callUuid).slice(-3)).toEqual([10, 11, 12])
        await expectGoodEnd(service, pair, callUuid)
      } finally {
        await finish(service)
      }
    }, 240_000)
  }

  test('[EXT3] a reply to a transition: it is there after kill -9 directly after the reply', async () => {
    const service = await start()
    try {
      const pair = await connectExtendedPair(service)
      const callUuid = await ringingCall(pair)
      await pair.callee.request('call.accept', { call_uuid: callUuid })
      await service.kill()
      await service.start()
      const token = await service.token({ user_id: pair.callerId, role: 'customer' })
      expect((await service.history(token)).data).toMatchObject([{ call_uuid: callUuid, status: 'accepted' }])
      // Its caller had perhaps not heard of it; now it has.
      await pair.caller.connect()
      await pair.caller.settle()
      const isKnown = pair.caller.events().includes('call.accepted')
      expect(isKnown || pair.caller.hello?.data.active_calls[0].status === 'accepted').toBe(true)
    } finally {
      await finish(service)
    }
  }, 240_000)

  test('[RES3] 2,000 sessions in 100 calls come back at once after kill -9: every call is alive', async () => {
    const service = await start({ RINGWIRE_PEER_LOST_MS: '60000' })
    try {
      const pairs = await Promise.all(upTo(100).map(() => connectExtendedPair(service)))
      const calls = await Promise.all(pairs.map((pair) => answeredCall(pair)))
      const idle: ExtendedClient[] = []
      for (let batch = 0; batch < 18; batch++) {
        const wishes = upTo(100).map(() => ({ user_id: someone('idle'), role: 'customer' }))
        idle.push(...(await Promise.all(wishes.map((wish) => connectExtended(service, wish)))))
      }
      await service.kill()
      await service.start()
      const all = [...pairs.flatMap(({ caller, callee }) => [caller, callee]), ...idle]
      const hellos = await Promise.all(all.map((client) => client.comeBack()))
      expect(hellos.filter(({ data }) => data.recovered !== areSessionsKept)).toEqual([])
      for (const [index, pair] of pairs.entries()) {
        for (const { hello } of [pair.caller, pair.callee]) {
          expect(hello?.data.active_calls).toMatchObject([{ call_uuid: calls[index], holds_place: true }])
        }
      }
      await Promise.all(pairs.map((pair, index) => relay(pair, calls[index]!, 0, 1)))
      await Promise.all(pairs.map(({ callee }) => callee.settle()))
      for (const [index, { callee }] of pairs.entries()) expect(candidatesOf(callee, calls[index]!)).toEqual([0, 1])
      await Promise.all(pairs.map((pair, index) => expectGoodEnd(service, pair, calls[index]!)))
      for (const client of all) client.stop()
    } finally {
      await finish(service)
    }
  }, 240_000)
}
