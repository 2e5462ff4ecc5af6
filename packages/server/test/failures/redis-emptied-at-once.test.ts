import { expect, test } from 'bun:test'
import { candidate, someone } from '@ringwire/testkit/flows'
import { connectExtended, connectedCall, type ExtendedPair, ringingCall } from '../support/extended-flows.ts'
import { inviteOf } from '../support/sessions.ts'
import { evict, flush } from './lost-keys.ts'
import { hangUp, numbersTo, pairOn, stopAll } from './people.ts'
import { insist, storedCalls, worldFor } from './world.ts'

/** Somebody speaks before the nodes have found out that Redis lost what they keep there. */
const world = worldFor()

const aboutCall =
  (callUuid: string) =>
  ({ data }: { data: { call_uuid?: string } }) =>
    data?.call_uuid === callUuid

async function settledCall(pair: ExtendedPair): Promise<string> {
  const call = await connectedCall(pair)
  for (const client of [pair.caller, pair.callee]) await client.request('webrtc.ice_candidate', candidate(call, 0))
  return call
}

test('[RES4] a relay from the other node to a session that was evicted arrives, and is all that its client hears', async () => {
  const { one, two, redis } = world()
  const pair = await pairOn(one, two)
  const call = await settledCall(pair)
  const { session_id } = pair.callee.point ?? { session_id: '' }
  expect(await evict(redis, session_id)).toBeGreaterThanOrEqual(2)
  await insist(pair.caller, 'webrtc.ice_candidate', candidate(call, 1))
  await insist(pair.caller, 'webrtc.ice_candidate', candidate(call, 2))
  await pair.callee.next('webrtc.ice_candidate', ({ data }) => data.candidate.candidate.endsWith(':2'))
  expect(numbersTo(pair.callee, call)).toEqual([0, 1, 2])
  expect(pair.callee.events()).not.toContain('session.reset')
  await hangUp(two, pair, call)
  stopAll(pair)
}, 240_000)

test('[END3] [RES4] FLUSHALL while peers on two nodes speak: what is acknowledged arrives, and they hear how the call ends', async () => {
  const { one, two, redis } = world()
  const pairs = await Promise.all(
    Array.from({ length: 20 }, (_, i) => (i % 2 === 0 ? pairOn(one, two) : pairOn(two, one))),
  )
  const calls = await Promise.all(pairs.map(settledCall))
  const before = await storedCalls(world(), ...calls)
  await flush(redis)
  await Promise.all(
    pairs.map(async (pair, i) => {
      const call = calls[i] ?? ''
      await Promise.all(
        [pair.caller, pair.callee].map((client) => insist(client, 'webrtc.ice_candidate', candidate(call, 1))),
      )
      for (const client of [pair.caller, pair.callee]) {
        await client.next('webrtc.ice_candidate', ({ data }) => data.candidate.candidate.endsWith(':1'))
        expect(client.events()).not.toContain('session.reset')
      }
    }),
  )
  // No place went vacant, and was taken again.
  expect(await storedCalls(world(), ...calls)).toEqual(before)
  await Promise.all(pairs.map((pair, i) => hangUp(one, pair, calls[i] ?? '')))
  stopAll(...pairs)
}, 240_000)

test('[END1] FLUSHALL while it rings: who is rung hears that the caller has hung up', async () => {
  const { one, two, redis } = world()
  const pair = await pairOn(one, two)
  const call = await ringingCall(pair)
  await flush(redis)
  await insist(pair.caller, 'call.cancel', { call_uuid: call })
  await pair.callee.next('call.cancelled', aboutCall(call))
  stopAll(pair)
}, 240_000)

test('[INV4] FLUSHALL before an invite: who has a socket is rung', async () => {
  const { one, two, redis } = world()
  const calleeId = someone('callee')
  const [caller, callee, base] = await Promise.all([
    connectExtended(one, { user_id: someone('caller'), role: 'customer' }),
    connectExtended(two, { user_id: calleeId, role: 'agent' }),
    two.connect({ user_id: calleeId, role: 'agent', device_id: 'desk' }),
  ])
  await flush(redis)
  const call = crypto.randomUUID()
  await insist(caller, 'call.invite', inviteOf(calleeId, { call_uuid: call }))
  await callee.next('call.ringing', aboutCall(call))
  await base.next('call.ringing', aboutCall(call))
  caller.stop()
  callee.stop()
}, 240_000)
