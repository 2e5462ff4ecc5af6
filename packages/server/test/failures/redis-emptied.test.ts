import { expect, test } from 'bun:test'
import { candidate } from '@ringwire/testkit/flows'
import { soon } from '@ringwire/testkit/patience'
import { connectedCall, type ExtendedPair } from '../support/extended-flows.ts'
import { evict, evictTold, flush, isHeldBack } from './lost-keys.ts'
import { hangUp, historyOf, pairOn, stopAll } from './people.ts'
import { insist, storedCalls, toldOf, until, worldFor } from './world.ts'

/** So short that a test can wait for what a lost clock would do, if one had started. */
const lostMs = 3_000
/** A node looks for logs that were lost so often. */
const lookMs = 5_000
/** Another one stands still before that, and is not taken for dead. */
const standsStillMs = 1_500
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

test('[END3] [RES4] evicted while nothing is said: it is told within 5 s, and the place stays', async () => {
  const { one, two } = world()
  const pair = await pairOn(one, two)
  const call = await settledCall(pair)
  const before = await storedCalls(world(), call)
  await evict(world().redis, pair.caller.point?.session_id ?? '')
  const since = performance.now()
  const reset = await pair.caller.next('session.reset')
  expect(performance.now() - since).toBeLessThan(soon(6_000))
  expect(reset.data.active_calls).toMatchObject([{ call_uuid: call, holds_place: true }])
  await relayBeyondLostClocks(pair, call)
  expect(await storedCalls(world(), call)).toEqual(before)
  await hangUp(one, pair, call)
  stopAll(pair)
}, 240_000)

test('[REL2] [RES4] evicted with both logs is how far the call was told: what is held back until it is told again arrives', async () => {
  const { one, two, redis } = world()
  const pair = await pairOn(two, one)
  const call = await settledCall(pair)
  const [caller = '', callee = ''] = [pair.caller, pair.callee].map(({ point }) => point?.session_id)
  // The callee's node tells of the answer again, and cannot reach the caller, whose log is not there: its own node, which
  // would begin it again, stands still for that moment. It begins shortly before the look of the callee's node; where the
  // machine was too busy for that, at the next one.
  const tries = async () => {
    await evict(redis, callee)
    await pair.callee.next('session.reset')
    await Bun.sleep(lookMs - standsStillMs)
    two.signal('SIGSTOP')
    const since = performance.now()
    try {
      await Promise.all([evict(redis, caller), evict(redis, callee), evictTold(redis, call)])
      while (performance.now() - since < 2 * standsStillMs) if (await isHeldBack(redis, callee)) return true
      return false
    } finally {
      two.signal('SIGCONT')
    }
  }
  await until('it has tried', tries, 60_000)
  await pair.caller.next('session.reset')
  await insist(pair.caller, 'webrtc.ice_candidate', candidate(call, 1))
  await pair.callee.next('webrtc.ice_candidate', ({ data }) => data.candidate.candidate.endsWith(':1'))
  await hangUp(one, pair, call)
  stopAll(pair)
}, 240_000)

test('[END3] [RES4] FLUSHALL during 100 live calls ends none of them', async () => {
  const { one, two } = world()
  const nodes = [one, two]
  const pairs = await Promise.all(
    Array.from({ length: 100 }, (_, i) => pairOn(nodes[i % 2] ?? one, nodes[Math.floor(i / 2) % 2] ?? one)),
  )
  const calls = await Promise.all(pairs.map(settledCall))
  const before = await storedCalls(world(), ...calls)
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
  expect(performance.now() - since).toBeLessThan(soon(6_000))
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
  }
  await Promise.all(pairs.map((pair, i) => hangUp(nodes[i % 2] ?? one, pair, calls[i] ?? '')))
  expect(await historyOf(one, pairs[0] as ExtendedPair, calls[0] ?? '')).toMatchObject({ status: 'ended' })
  stopAll(...pairs)
}, 240_000)
