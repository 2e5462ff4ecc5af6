import { afterEach, expect, test } from 'bun:test'
import { candidate, someone } from '@ringwire/testkit/flows'
import { answeredCall, connectExtended, connectedCall, ringingCall } from '../support/extended-flows.ts'
import { inviteOf } from '../support/sessions.ts'
import { cannotResume, hangUp, historyOf, isAskedToComeLater, numbersTo, pairOn, stopAll } from './people.ts'
import {
  ask,
  becomesReady,
  becomesUnready,
  expectRefusal,
  insist,
  inTime,
  limitMs,
  saysLostAndBack,
  toldOf,
  type World,
} from './world.ts'

export interface Outage {
  begin(world: World): Promise<void> | void
  end(world: World): Promise<void> | void
}

const aboutCall =
  (callUuid: string) =>
  ({ data }: { data: { call_uuid?: string } }) =>
    data?.call_uuid === callUuid

/** What holds while Redis is away, however it went, and after it came back, with whatever data. */
export function registerOutage(name: string, world: () => World, outage: Outage): void {
  let isAway = false
  const begin = async () => {
    isAway = true
    await outage.begin(world())
  }
  const end = async () => {
    isAway = false
    await outage.end(world())
    await becomesReady(world().one, world().two)
    await saysLostAndBack('redis', world().one, world().two)
  }
  // A test that fails leaves Redis as the next one needs it.
  afterEach(async () => {
    if (isAway) await end()
  })

  test(`[EXT3] [END1] [RES4] [HEALTH1] Redis ${name}: calls go on, people can hang up, nothing is acknowledged that is not so`, async () => {
    const { one, two } = world()
    const [together, apart, leaving, declining, answering] = await Promise.all([
      pairOn(one, one),
      pairOn(one, two),
      pairOn(one, two),
      pairOn(two, one),
      pairOn(one, two),
    ])
    const stranger = await connectExtended(one, { user_id: someone('caller'), role: 'customer' })
    const call = await connectedCall(together)
    const far = await connectedCall(apart)
    const over = await answeredCall(leaving)
    const unwanted = await ringingCall(declining)
    const answered = await ringingCall(answering)
    const token = await two.token({ user_id: someone('late') })
    for (const [pair, uuid] of [
      [together, call],
      [apart, far],
    ] as const) {
      // Both settle their places: what they relay from now on is no matter of the database.
      await pair.caller.request('webrtc.ice_candidate', candidate(uuid, 1))
      await pair.callee.request('webrtc.ice_candidate', candidate(uuid, 1))
    }

    await begin()
    await becomesUnready('redis', one, two)
    // A connection that is there and silent is believed for as long as a command may take.
    await insist(together.caller, 'webrtc.ice_candidate', candidate(call, 2))

    // Peers on one node.
    const relayed = await ask(together.caller, 'webrtc.ice_candidate', candidate(call, 3))
    expect(relayed).toMatchObject({ event: 'call.ack', data: { call_uuid: call, volatile: true } })
    const volatile = await together.callee.next('webrtc.ice_candidate', ({ data }) =>
      data.candidate.candidate.endsWith(':3'),
    )
    expect(volatile.seq).toBeGreaterThan(0)
    // Peers on two, and new calls.
    await expectRefusal(apart.caller, 'webrtc.ice_candidate', candidate(far, 2))
    const wanted = crypto.randomUUID()
    await expectRefusal(stranger, 'call.invite', inviteOf(apart.calleeId, { call_uuid: wanted }))
    // Nobody comes in.
    await isAskedToComeLater(two, token)
    // Answering and hanging up.
    expect((await ask(answering.callee, 'call.accept', { call_uuid: answered })).event).toBe('call.ack')
    expect((await ask(leaving.caller, 'call.end', { call_uuid: over })).event).toBe('call.ack')
    expect((await ask(declining.callee, 'call.reject', { call_uuid: unwanted })).event).toBe('call.ack')
    expect(await historyOf(one, leaving, over)).toMatchObject({ status: 'ended', end_reason: 'hangup' })
    expect(toldOf(leaving.callee, 'call.ended', over)).toBe(0)

    await end()
    // A client that has not heard of it yet hears it now, once.
    await leaving.callee.next('call.ended', aboutCall(over))
    await declining.caller.next('call.rejected', aboutCall(unwanted))
    await answering.caller.next('call.accepted', aboutCall(answered))
    // The same request again, and what was refused took no effect.
    expect(await insist(apart.caller, 'webrtc.ice_candidate', candidate(far, 3))).toBe(0)
    await apart.callee.next('webrtc.ice_candidate', ({ data }) => data.candidate.candidate.endsWith(':3'))
    expect(numbersTo(apart.callee, far).filter((n) => n > 1)).toEqual([3])
    const stored = await ask(together.caller, 'webrtc.ice_candidate', candidate(call, 4))
    expect(stored.data).not.toHaveProperty('volatile')
    await insist(stranger, 'call.invite', inviteOf(apart.calleeId, { call_uuid: wanted }))
    await apart.callee.next('call.ringing', aboutCall(wanted))
    await ask(stranger, 'call.cancel', { call_uuid: wanted })
    await apart.callee.next('call.cancelled', aboutCall(wanted))

    await hangUp(one, together, call)
    await hangUp(two, apart, far)
    await hangUp(two, answering, answered)
    expect(numbersTo(together.callee, call)).toEqual([1, 2, 3, 4])
    // Each log is where its socket is.
    for (const { caller, callee } of [together, apart, answering])
      for (const client of [caller, callee]) expect(client.events()).not.toContain('session.reset')
    expect(toldOf(leaving.callee, 'call.ended', over)).toBe(1)
    expect(toldOf(declining.caller, 'call.rejected', unwanted)).toBe(1)
    expect(toldOf(apart.callee, 'call.ringing', wanted)).toBe(1)
    expect(toldOf(answering.caller, 'call.accepted', answered)).toBe(1)
    stopAll(together, apart, leaving, declining, answering)
    stranger.stop()
  }, 240_000)

  test(`[RES1] [RES2] [HIST1] [TOK5] Redis ${name}: nobody is left to wait, and who lost the socket comes back afterwards`, async () => {
    const { one, two } = world()
    const [staying, before, during] = await Promise.all([pairOn(one, two), pairOn(one, two), pairOn(two, one)])
    const [call, lostBefore, lostDuring] = await Promise.all([staying, before, during].map(connectedCall))
    const token = await two.token({ user_id: someone('late') })
    const isServedInTime = async () => {
      const [history] = await Promise.all([
        inTime(historyOf(one, staying, call ?? '')),
        inTime(two.token({ user_id: someone('late') }), limitMs),
        isAskedToComeLater(two, token),
        cannotResume(before.callee, one),
        cannotResume(during.callee, two),
      ])
      expect(history).toMatchObject({ status: 'connected' })
    }
    await before.callee.die()
    await begin()
    await during.callee.die()
    await Promise.all([becomesUnready('redis', one, two), isServedInTime()])
    // The same when it is known.
    await isServedInTime()

    await end()
    for (const [pair, uuid] of [
      [before, lostBefore ?? ''],
      [during, lostDuring ?? ''],
    ] as const) {
      const hello = await pair.callee.connect()
      expect(hello.data).toMatchObject({
        recovered: true,
        active_calls: [{ call_uuid: uuid, status: 'connected', holds_place: true }],
      })
      await insist(pair.caller, 'webrtc.ice_candidate', candidate(uuid, 1))
      await pair.callee.next('webrtc.ice_candidate')
      await hangUp(one, pair, uuid)
    }
    await hangUp(two, staying, call ?? '')
    stopAll(staying, before, during)
  }, 240_000)
}
