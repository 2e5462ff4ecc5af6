import { afterEach, beforeEach, expect, jest, test } from 'bun:test'
import { callKey } from '../call/call.ts'
import { accepted, created, participant, ringing } from '../ports/call-store.fixture.ts'
import { StoreError } from '../ports/store-error.ts'
import { refusedKeptMs, type TimelineStore } from '../ports/timeline.ts'
import { openHarness, type SqliteHarness, unhurried } from '../stores/sqlite/open.fixture.ts'
import { createRecorder, type Entry, type Recorder } from './recorder.ts'
import { mostWaiting } from './write-behind.ts'

let harness: SqliteHarness
let store: TimelineStore
let isAway = false
let now = 1_000
const errors: unknown[] = []
beforeEach(async () => {
  harness = await openHarness(unhurried)
  store = harness.stores().timeline
  isAway = false
})
afterEach(async () => {
  await harness.close()
  expect(errors.splice(0)).toEqual([])
})

/** Entries that are added while the store is away are refused, as by a store that does not answer. */
const begin = (): Recorder =>
  createRecorder({
    store: {
      add: (rows) => (isAway ? Promise.reject(new StoreError('unavailable', 'away')) : store.add(rows)),
      pruneRefused: store.pruneRefused,
    },
    now: () => now++,
    retentionMs: null,
    onDropped() {},
    onError: (error) => errors.push(error),
  })
const some = () => ({ product: 'shop', callUuid: crypto.randomUUID() })
/** One that is there: of no other anything is kept. */
async function someCall() {
  const call = ringing()
  await harness.store().transition(call, () => ({ steps: [created(call)] }))
  return { product: call.product, callUuid: call.callUuid }
}
const rung = (detail: Entry['detail'] = {}): Entry => ({ what: 'rung', side: 'callee', detail })
const offer = { sdp: { type: 'offer', sdp: 'v=0\r\na=candidate:1 1 udp 1 192.0.2.1 9 typ host\r\n' } }
const candidate = (type: string) => ({ candidate: { candidate: `candidate:1 1 udp 1 192.0.2.1 9 typ ${type}` } })

test('[GROUP1] [TRACE1] what was seen of the member who answers is stored from the ring on, and nothing of the others', async () => {
  const recorder = begin()
  const group = { name: 'all', members: ['ben', 'eve'], declined: [] }
  const call = ringing(participant('ann'), participant('', 'doctor'), { group })
  await harness.store().transition(call, () => ({ steps: [created(call)] }))
  for (const member of ['ben', 'eve']) recorder.record(call, { ...rung({ member }), member })
  recorder.replace('rang', call, { what: 'members', side: null, detail: { rang: 1 } })
  recorder.replace('rang', call, { what: 'members', side: null, detail: { rang: 2 } })
  await recorder.flush()
  expect((await store.of(call)).map(({ what, detail }) => [what, detail])).toEqual([['members', { rang: 2 }]])
  const answer = accepted({ ...call, callee: { ...call.callee, userId: 'ben' } })
  await harness.store().transition(call, () => ({ steps: [answer] }))
  recorder.settled(answer.call)
  recorder.settled(answer.call)
  // A late entry of another member is not the callee's.
  recorder.record(call, { ...rung({ member: 'eve', isLate: true }), member: 'eve' })
  await recorder.flush()
  const all = await store.of(call)
  expect(all.filter(({ what }) => what === 'rung').map(({ detail }) => detail)).toEqual([{ member: 'ben' }])
})

test('[TRACE1] what was recorded is stored in its order, also when the store was away meanwhile', async () => {
  const recorder = begin()
  const call = await someCall()
  isAway = true
  recorder.record(call, rung({ n: 1 }))
  await expect(recorder.flush()).rejects.toThrow('away')
  recorder.record(call, rung({ n: 2 }))
  isAway = false
  await recorder.flush()
  await recorder.flush()
  expect((await store.of(call)).map(({ detail }) => detail.n)).toEqual([1, 2])
})

test('[TRACE1] relays are counted by call and direction, and stored as one entry that is replaced; no address is', async () => {
  const recorder = begin()
  const [call, other] = [await someCall(), await someCall()]
  const key = callKey(call)
  recorder.relayed(key, 'caller', 'webrtc.offer', offer)
  recorder.relayed(key, 'callee', 'webrtc.answer', {})
  recorder.relayed(callKey(other), 'callee', 'call.media', {})
  await recorder.flushAll()
  recorder.relayed(key, 'caller', 'webrtc.ice_candidate', candidate('relay'))
  recorder.relayed(key, 'caller', 'webrtc.ice_candidate', candidate('host'))
  // None has a type, and the last one has it at its end.
  for (const text of ['', 'a typ ', 'a typ hosts', 'a typ __proto__ b', 7, 'a typ prflx'])
    recorder.relayed(key, 'caller', 'webrtc.ice_candidate', { candidate: { candidate: text } })
  await recorder.flushAll()
  const counts = async (ref: typeof call) =>
    (await store.of(ref)).map(({ what, side, detail: { until: _, ...detail } }) => [what, side, detail])
  expect(await counts(call)).toEqual([
    ['relays', 'caller', { offers: 1, candidates: 8, candidate_types: { host: 2, prflx: 1, relay: 1 } }],
    ['relays', 'callee', { answers: 1, candidate_types: {} }],
  ])
  expect(await counts(other)).toEqual([['relays', 'callee', { media: 1, candidate_types: {} }]])
  expect(JSON.stringify(await store.of(call))).not.toContain('192.0.2.1')
})

test('[TRACE1] while the store is away no more than a bounded number waits', async () => {
  const recorder = begin()
  isAway = true
  const call = await someCall()
  for (let n = 0; n < mostWaiting + 100; n++) recorder.record(some(), rung())
  recorder.record(call, rung())
  await expect(recorder.flush()).rejects.toThrow('away')
  isAway = false
  await recorder.flush()
  expect(await store.of(call)).toEqual([])
  recorder.record(call, rung())
  await recorder.flush()
  expect(await store.of(call)).toHaveLength(1)
})

test('[TRACE1] refused invites, which may name any uuid, are few', async () => {
  const recorder = begin()
  const calls = Array.from({ length: 1_000 }, some)
  const storedOf = async (askers: number) => {
    for (const [n, call] of calls.entries()) {
      const asker = { role: 'customer', userId: `ann-${n % askers}-${askers}` }
      recorder.record(call, { what: 'refused', side: 'caller', asker, detail: {} })
    }
    await recorder.flush()
    return (await Promise.all(calls.map((call) => store.of(call)))).flat().length
  }
  // The loops may pass from one second, or minute, to the next.
  const ofOne = await storedOf(1)
  expect(ofOne).toBeWithin(1, 11)
  expect((await storedOf(1_000)) - ofOne).toBeWithin(1, 61)
})

test('[TRACE1] who asks for all during a write shares the next one, however many ask and however it goes', async () => {
  const waits: PromiseWithResolvers<void>[] = []
  const recorder = createRecorder({
    store: {
      add() {
        const asked = Promise.withResolvers<void>()
        waits.push(asked)
        return asked.promise
      },
      pruneRefused: store.pruneRefused,
    },
    now: () => now++,
    retentionMs: null,
    onDropped() {},
    onError: (error) => errors.push(error),
  })
  recorder.record(some(), rung())
  const first = recorder.flush()
  recorder.record(some(), rung())
  const rest = Array.from({ length: 100 }, () => recorder.flush().then(() => 'done', String))
  waits[0]?.resolve()
  await first
  await Bun.sleep(0)
  waits[1]?.reject(new StoreError('unavailable', 'away'))
  for (const said of await Promise.all(rest)) expect(said).toContain('away')
  expect(waits).toHaveLength(2)
})

test('[TRACE1] a stop writes what is left', async () => {
  const recorder = begin()
  const call = await someCall()
  recorder.start()
  recorder.record(call, rung())
  recorder.relayed(callKey(call), 'caller', 'webrtc.offer', offer)
  await recorder.stop()
  expect((await store.of(call)).map(({ what }) => what)).toEqual(['rung', 'relays'])
})

test('[TRACE1] refused invites are removed when they are old: a minute after the start, and each hour from then on', async () => {
  jest.useFakeTimers()
  try {
    for (const [retentionMs, keptMs] of [
      [null, refusedKeptMs],
      [refusedKeptMs + 1, refusedKeptMs],
      [86_400_000, 86_400_000],
    ] as const) {
      const removed: number[] = []
      const recorder = createRecorder({
        store: {
          add() {},
          pruneRefused(before) {
            removed.push(before)
            return 0
          },
        },
        now: () => refusedKeptMs + 1_000,
        retentionMs,
        onDropped() {},
        onError: (error) => errors.push(error),
      })
      const pass = async (ms: number) => {
        jest.advanceTimersByTime(ms)
        for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve))
        return removed.length
      }
      recorder.start()
      const passed = [await pass(59_000), await pass(1_000), await pass(3_599_000), await pass(1_000)]
      await recorder.stop()
      expect(passed).toEqual([0, 1, 1, 2])
      expect(removed[0]).toBe(refusedKeptMs + 1_000 - keptMs)
    }
  } finally {
    jest.useRealTimers()
  }
})
