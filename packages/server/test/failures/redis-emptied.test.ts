import { expect, test } from 'bun:test'
import { connectedCall, type ExtendedPair } from '../support/extended-flows.ts'
import { candidate } from '../support/flows.ts'
import { evict, flush } from './lost-keys.ts'
import { hangUp, historyOf, pairOn, stopAll } from './people.ts'
import { insist, toldOf, worldFor } from './world.ts'

const world = worldFor()

async function settledCall(pair: ExtendedPair): Promise<string> {
  const call = await connectedCall(pair)
  for (const client of [pair.caller, pair.callee]) await client.request('webrtc.ice_candidate', candidate(call, 0))
  return call
}

test('[RES4] evicted while nothing is said: it is told within 5 s', async () => {
  const { one, two } = world()
  const pair = await pairOn(one, two)
  const call = await settledCall(pair)
  await evict(world().redis, pair.caller.point?.session_id ?? '')
  const since = performance.now()
  const reset = await pair.caller.next('session.reset')
  expect(performance.now() - since).toBeLessThan(6_000)
  expect(reset.data.active_calls).toMatchObject([{ call_uuid: call }])
  await hangUp(one, pair, call)
  stopAll(pair)
}, 30_000)

test('[END3] [RES4] FLUSHALL during 100 live calls ends none of them', async () => {
  const { one, two } = world()
  const nodes = [one, two]
  const pairs = await Promise.all(
    Array.from({ length: 100 }, (_, i) => pairOn(nodes[i % 2] ?? one, nodes[Math.floor(i / 2) % 2] ?? one)),
  )
  const calls = await Promise.all(pairs.map(settledCall))
  await flush(world().redis)
  const since = performance.now()
  await Promise.all(
    pairs.map(async (pair, i) => {
      const call = calls[i] ?? ''
      for (const client of [pair.caller, pair.callee]) {
        const reset = await client.next('session.reset')
        expect(reset.data.active_calls).toMatchObject([{ call_uuid: call, status: 'connected', holds_place: true }])
      }
    }),
  )
  expect(performance.now() - since).toBeLessThan(6_000)
  await Promise.all(
    pairs.map(async (pair, i) => {
      const call = calls[i] ?? ''
      await insist(pair.caller, 'webrtc.ice_candidate', candidate(call, 1))
      await insist(pair.callee, 'webrtc.ice_candidate', candidate(call, 1))
      for (const client of [pair.caller, pair.callee]) {
        await client.next('webrtc.ice_candidate', ({ data }) => data.candidate.candidate.endsWith(':1'))
      }
    }),
  )
  for (const [i, pair] of pairs.entries()) {
    const call = calls[i] ?? ''
    expect(toldOf(pair.caller, 'call.ended', call) + toldOf(pair.callee, 'call.ended', call)).toBe(0)
  }
  const ended = await world().postgres.query(
    'SELECT count(*)::int AS n FROM calls WHERE ended_at IS NULL',
    world().databaseUrl,
  )
  expect(ended[0].n).toBe(100)
  await Promise.all(pairs.map((pair, i) => hangUp(nodes[i % 2] ?? one, pair, calls[i] ?? '')))
  expect(await historyOf(one, pairs[0] as ExtendedPair, calls[0] ?? '')).toMatchObject({ status: 'ended' })
  stopAll(...pairs)
}, 40_000)
