import { expect, test } from 'bun:test'
import { candidate } from '@ringwire/testkit/flows'
import { until } from '@ringwire/testkit/patience'
import { connectedCall, type ExtendedPair } from '../support/extended-flows.ts'
import { evict, flush, keysOf } from './lost-keys.ts'
import { hangUp, historyOf, pairOn, stopAll } from './people.ts'
import { insist, storedCalls, toldOf, worldFor } from './world.ts'

/** So short that a test can wait for what a lost clock would do, if one had started. */
const lostMs = 3_000
/** A node looks whether all is there that it wrote within this time. */
const lookMs = 25_000
/** A timer may be late on a busy machine. */
const lateMs = 1_500

const world = worldFor({
  env: { RINGWIRE_PEER_LOST_MS: String(lostMs), RINGWIRE_CALLER_LOST_MS: String(lostMs) },
})

async function settledCall(pair: ExtendedPair): Promise<string> {
  const call = await connectedCall(pair)
  for (const client of [pair.caller, pair.callee]) await client.request('webrtc.ice_candidate', candidate(call, 0))
  return call
}

/** Relays until a clock that started by now would have run out; answers how many there were. */
async function relayBeyondLostClocks({ caller, callee }: ExtendedPair, call: string): Promise<number> {
  const until = performance.now() + lostMs + lateMs
  let n = 1
  for (; performance.now() < until; n++) {
    await insist(caller, 'webrtc.ice_candidate', candidate(call, n))
    await callee.next('webrtc.ice_candidate', ({ data }) => data.candidate.candidate.endsWith(`:${n}`))
    await Bun.sleep(50)
  }
  return n
}

test('[END3] [RES4] evicted while nothing is said: nobody hears of it, the place stays, and it is written again', async () => {
  const { one, two, redis } = world()
  const pair = await pairOn(one, two)
  const call = await settledCall(pair)
  const before = await storedCalls(world(), call)
  const ids = [pair.caller, pair.callee].map(({ point }) => point?.session_id ?? '')
  for (const id of ids) expect(await evict(redis, id)).toBeGreaterThan(0)
  await until(
    'both are written again',
    async () => (await Promise.all(ids.map((id) => keysOf(redis, id)))).every(Boolean),
    lookMs,
  )
  await relayBeyondLostClocks(pair, call)
  expect(await storedCalls(world(), call)).toEqual(before)
  for (const client of [pair.caller, pair.callee]) expect(client.events()).not.toContain('session.reset')
  await hangUp(one, pair, call)
  stopAll(pair)
}, 240_000)

test('[END3] [RES4] FLUSHALL during 100 live calls: it ends none of them, and no session hears of it', async () => {
  const { one, two } = world()
  const nodes = [one, two]
  const pairs = await Promise.all(
    Array.from({ length: 100 }, (_, i) => pairOn(nodes[i % 2] ?? one, nodes[Math.floor(i / 2) % 2] ?? one)),
  )
  const calls = await Promise.all(pairs.map(settledCall))
  const before = await storedCalls(world(), ...calls)
  await flush(world().redis)
  const since = performance.now()
  // A request takes a vacant place again: all others say nothing, and what is stored shows each move of a place.
  const sent = await Promise.all(pairs.slice(0, 4).map((pair, i) => relayBeyondLostClocks(pair, calls[i] ?? '')))
  expect(performance.now() - since).toBeGreaterThan(lostMs + lateMs)
  expect(await storedCalls(world(), ...calls)).toEqual(before)
  await Promise.all(
    pairs.map(async (pair, i) => {
      const call = calls[i] ?? ''
      const last = sent[i] ?? 1
      for (const client of [pair.caller, pair.callee]) {
        await insist(client, 'webrtc.ice_candidate', candidate(call, last))
      }
      for (const client of [pair.caller, pair.callee]) {
        await client.next('webrtc.ice_candidate', ({ data }) => data.candidate.candidate.endsWith(`:${last}`))
      }
    }),
  )
  for (const [i, pair] of pairs.entries()) {
    const call = calls[i] ?? ''
    expect(toldOf(pair.caller, 'call.ended', call) + toldOf(pair.callee, 'call.ended', call)).toBe(0)
    for (const client of [pair.caller, pair.callee]) expect(client.events()).not.toContain('session.reset')
  }
  await Promise.all(pairs.map((pair, i) => hangUp(nodes[i % 2] ?? one, pair, calls[i] ?? '')))
  expect(await historyOf(one, pairs[0] as ExtendedPair, calls[0] ?? '')).toMatchObject({ status: 'ended' })
  stopAll(...pairs)
}, 240_000)
