import { expect, test } from 'bun:test'
import { candidate, someone } from '@ringwire/testkit/flows'
import { soon } from '@ringwire/testkit/patience'
import type { Service } from '@ringwire/testkit/service'
import { answeredCall, connectExtended, connectedCall, ringingCall } from '../support/extended-flows.ts'
import { inviteOf } from '../support/sessions.ts'
import { hangUp, historyOf, isAskedToComeLater, numbersTo, pairOn, stopAll } from './people.ts'
import {
  ask,
  becomesReady,
  becomesUnready,
  expectRefusal,
  insist,
  inTime,
  saysLostAndBack,
  toldOf,
  type World,
} from './world.ts'

export interface DatabaseOutage {
  /** It takes its time to begin, on a busy machine more. */
  readonly isSlow?: boolean
  begin(world: World): Promise<void> | void
  end(world: World): Promise<void> | void
}

/** Enough until both nodes say that the database is back. The outage is longer, so that a clock that ran on would have run out. */
const peerLostMs = 8_000
export const outageEnv = {
  RINGWIRE_PEER_LOST_MS: String(peerLostMs),
  // What rings through an outage rings on afterwards.
  RINGWIRE_RING_TIMEOUT_MS: '180000',
}

/** Over in the outage, and not before it. */
const ringTimeout = ({ isSlow = false }: DatabaseOutage) => (isSlow ? Math.round(Math.min(soon(8_000), 60_000)) : 8_000)

const aboutCall =
  (callUuid: string) =>
  ({ data }: { data: { call_uuid?: string } }) =>
    data?.call_uuid === callUuid

/** What holds while the database is away, however it went, and once it is back. Needs `outageEnv`. */
export function registerDatabaseOutage(name: string, world: () => World, outage: DatabaseOutage): void {
  test(`[END3] [EXT3] [RING1] [HEALTH1] PostgreSQL ${name}: calls go on, nothing is acknowledged that is not written, and all is well by itself`, async () => {
    const { one, two } = world()
    const [apart, answering, ending, losing, ringing] = await Promise.all([
      pairOn(one, two),
      pairOn(one, two),
      pairOn(two, one),
      pairOn(one, two),
      pairOn(two, one),
    ])
    const stranger = await connectExtended(two, { user_id: someone('caller'), role: 'customer' })
    const token = await one.token({ user_id: someone('late'), role: 'customer' })
    const call = await connectedCall(apart)
    for (const client of [apart.caller, apart.callee]) {
      await client.request('webrtc.ice_candidate', candidate(call, 0))
    }
    const over = await connectedCall(ending)
    const lost = await connectedCall(losing)
    const unanswered = await ringingCall(answering)
    const ringMs = ringTimeout(outage)
    const missed = await ringingCall(ringing, { ring_timeout_ms: ringMs })
    const beganAt = performance.now()

    await outage.begin(world())
    await becomesUnready('database', one, two)
    // One that goes while nobody can write that down.
    await losing.callee.die()
    const diedAt = performance.now()
    // Relays need no database, on whichever nodes the peers are.
    for (let n = 1; n <= 3; n++) {
      expect((await ask(apart.caller, 'webrtc.ice_candidate', candidate(call, n))).data).toEqual({
        call_uuid: call,
        status: 'connected',
      })
    }
    await apart.callee.next('webrtc.ice_candidate', ({ data }) => data.candidate.candidate.endsWith(':3'))
    const wanted = crypto.randomUUID()
    await Promise.all([
      expectRefusal(answering.callee, 'call.accept', { call_uuid: unanswered }),
      expectRefusal(ending.caller, 'call.end', { call_uuid: over }),
      expectRefusal(stranger, 'call.invite', inviteOf(apart.calleeId, { call_uuid: wanted })),
      refusesTokens(one),
      isAskedToComeLater(two, token),
    ])
    // By then a ring has run out, and with an earlier start a lost place would have.
    const goOnAt = Math.max(beganAt + ringMs, diedAt + peerLostMs) + 1_500
    await Bun.sleep(Math.max(0, goOnAt - performance.now()))
    expect(toldOf(ringing.caller, 'call.missed', missed)).toBe(0)

    await outage.end(world())
    await becomesReady(one, two)
    await saysLostAndBack('database', one, two)
    const backAt = performance.now()
    // Its clock starts now, in full.
    const coming = losing.callee.connect()
    await Promise.all([ringing.caller, ringing.callee].map((client) => client.next('call.missed', aboutCall(missed))))
    expect(performance.now() - backAt).toBeLessThan(soon(1_500))
    const hello = await coming
    expect(hello.data).toMatchObject({ recovered: true, active_calls: [{ call_uuid: lost, holds_place: true }] })
    // Sent again, whatever became of it the first time.
    await insist(answering.callee, 'call.accept', { call_uuid: unanswered })
    await answering.caller.next('call.accepted', aboutCall(unanswered))
    await insist(ending.caller, 'call.end', { call_uuid: over })
    await ending.callee.next('call.ended', aboutCall(over))
    await insist(stranger, 'call.invite', inviteOf(apart.calleeId, { call_uuid: wanted }))
    await apart.callee.next('call.ringing', aboutCall(wanted))
    await hangUp(one, losing, lost)
    await hangUp(two, apart, call)
    await hangUp(one, answering, unanswered)
    expect(numbersTo(apart.callee, call)).toEqual([0, 1, 2, 3])
    expect(await historyOf(two, ending, over)).toMatchObject({ status: 'ended', end_reason: 'hangup' })
    expect(await historyOf(two, ringing, missed)).toMatchObject({ status: 'missed' })
    for (const [client, event, uuid] of [
      [answering.caller, 'call.accepted', unanswered],
      [ending.callee, 'call.ended', over],
      [apart.callee, 'call.ringing', wanted],
      [ringing.caller, 'call.missed', missed],
    ] as const) {
      expect([event, toldOf(client, event, uuid)]).toEqual([event, 1])
    }
    await ask(stranger, 'call.cancel', { call_uuid: wanted })
    // That no heartbeat was written is not the nodes' fault.
    expect(one.log + two.log).not.toContain('a node is gone')
    stopAll(apart, answering, ending, losing, ringing)
    stranger.stop()
  }, 240_000)

  test(`[END3] PostgreSQL ${name}: who does not come back is lost afterwards`, async () => {
    const { one, two } = world()
    const pair = await pairOn(one, two)
    const call = await answeredCall(pair)
    await outage.begin(world())
    await becomesUnready('database', one, two)
    await pair.callee.die()
    await outage.end(world())
    await becomesReady(one, two)
    const ended = await pair.caller.next('call.ended', aboutCall(call))
    expect(ended.data).toMatchObject({ reason: 'peer_lost' })
    stopAll(pair)
  }, 240_000)
}

async function refusesTokens(service: Service): Promise<void> {
  const refused = await inTime(service.token({ user_id: someone('late') }).catch((error) => String(error)))
  expect(refused).toContain('503')
  expect(refused).toContain('SERVICE_UNAVAILABLE')
}
