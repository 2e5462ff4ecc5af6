import { expect, test } from 'bun:test'
import { candidate } from '@ringwire/testkit/flows'
import { inTime, until } from '@ringwire/testkit/patience'
import { about, answeredCall, connectedCall, ringingCall } from '../support/extended-flows.ts'
import { flush } from './lost-keys.ts'
import { hangUp, historyOf, numbersTo, pairOn, stopAll } from './people.ts'
import { toldOf, type World, worldFor } from './world.ts'

const lostMs = 4_000
const world = worldFor({ env: { RINGWIRE_CALLER_LOST_MS: String(lostMs), RINGWIRE_PEER_LOST_MS: String(lostMs) } })

/** Nobody owes anybody anything: only sessions have what a call has yet to tell. */
async function everybodyIsTold({ postgres, databaseUrl }: World): Promise<void> {
  await until('everybody was told', async () => {
    const [left] = await postgres.query('SELECT count(*)::int AS count FROM outbox', databaseUrl)
    return left?.count === 0
  })
}

/** The power fails: all nodes at once, and what Redis had. They are back at the same moment. */
async function powerCut({ one, two, redis }: World): Promise<void> {
  await Promise.all([one.kill(), two.kill()])
  await flush(redis)
  await Promise.all([one.start(), two.start()])
}

/** Each client that comes back does so within `lostMs` of the start. */
async function surviveCut(round: number): Promise<void> {
  const { one, two } = world()
  const [talking, ringing, ending, gone] = await Promise.all([
    pairOn(one, two),
    pairOn(two, one),
    pairOn(one, two),
    pairOn(two, one),
  ])
  const talks = await connectedCall(talking)
  const rings = await ringingCall(ringing)
  const toEnd = await answeredCall(ending)
  const lost = await connectedCall(gone)
  await ending.callee.die()
  await ending.caller.request('call.end', { call_uuid: toEnd })
  await everybodyIsTold(world())
  await powerCut(world())

  // The one is back before the other: what it says waits.
  const back = await Promise.all([talking.caller, ringing.callee, gone.caller].map((client) => client.connect()))
  for (const { data } of back) expect(data).toMatchObject({ recovered: false })
  const relayed = await talking.caller.request('webrtc.ice_candidate', candidate(talks, round))
  expect(relayed.event).toBe('call.ack')
  await talking.callee.connect()
  await talking.callee.next('webrtc.ice_candidate', about(talks))
  expect(numbersTo(talking.callee, talks)).toEqual([round])
  await talking.callee.request('webrtc.ice_candidate', candidate(talks, 10 + round))
  await talking.caller.next('webrtc.ice_candidate', about(talks))

  // Before and after.
  await until('it rings again', () => toldOf(ringing.callee, 'call.ringing', rings) === 2)
  await ringing.caller.connect()
  await ringing.callee.request('call.accept', { call_uuid: rings })
  await ringing.caller.next('call.accepted', about(rings))
  await hangUp(one, ringing, rings)

  await ending.callee.connect()
  await ending.callee.next('call.ended', about(toEnd))
  await ending.callee.settle()
  expect(toldOf(ending.callee, 'call.ended', toEnd)).toBe(1)

  await gone.caller.next('call.ended', about(lost))
  expect(await historyOf(two, gone, lost)).toMatchObject({ status: 'ended', end_reason: 'peer_lost' })
  await hangUp(two, talking, talks)
  await Promise.all([talking.caller, talking.callee].map((client) => client.settle()))
  expect(toldOf(talking.caller, 'call.ended', talks)).toBe(1)
  expect(numbersTo(talking.callee, talks)).toEqual([round])
  stopAll(talking, ringing, ending, gone)
}

for (const round of [1, 2, 3])
  test(
    `[RES3] [WS4] [END3] power cut ${round}: all nodes die, Redis is empty, and all start at once`,
    () => inTime(() => surviveCut(round)),
    240_000,
  )
