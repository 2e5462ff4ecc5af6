import { Database } from 'bun:sqlite'
import { afterEach, expect, test } from 'bun:test'
import type { LiveCall } from '../../src/call/call.ts'
import { created, ended, liveIn, ringing } from '../../src/ports/call-store.fixture.ts'
import type { CallStore } from '../../src/ports/call-store.ts'
import { StoreError } from '../../src/ports/store-error.ts'
import { openHarness, type SqliteHarness } from '../../src/stores/sqlite/open.fixture.ts'
import { openSqlite } from '../../src/stores/sqlite/open.ts'

const dayMs = 86_400_000
const now = 100 * dayMs

let harness: SqliteHarness
afterEach(() => harness.close())

async function addCall(endedAt: number | undefined, store: CallStore = harness.store()) {
  const call = ringing()
  await store.transition(call, () => ({ steps: [created(call)] }))
  if (endedAt === undefined) return call
  await store.transition(call, (live) => ({ steps: [ended(live as LiveCall, endedAt)] }))
  return call
}

const addOld = (count: number, store?: CallStore) =>
  Promise.all(Array.from({ length: count }, () => addCall(now - 91 * dayMs, store)))

function count(table: string): number {
  const db = new Database(harness.database, { readwrite: true })
  try {
    return db.query<{ n: number }, []>(`SELECT count(*) AS n FROM ${table}`).get()?.n ?? 0
  } finally {
    db.close()
  }
}

test('calls that ended before the instant go with their events, the others stay', async () => {
  harness = await openHarness({ clock: { now: () => now } })
  const [live, old, young] = [await addCall(undefined), await addCall(now - 1), await addCall(now)]
  await addOld(230)
  expect(await harness.stores().prune(now)).toBe(231)
  expect(await harness.store().load(old)).toBeUndefined()
  expect((await harness.store().load(live))?.status).toBe('ringing')
  expect((await harness.store().load(young))?.status).toBe('ended')
  expect([count('calls'), count('call_events')]).toEqual([2, 3])
  await harness.reopen()
  expect(await liveIn(harness.store())).toHaveLength(1)
})

test('what is written meanwhile is written between its steps', async () => {
  harness = await openHarness({ clock: { now: () => now } })
  await addOld(500)
  let pruned = 0
  const pruning = harness
    .stores()
    .prune(now)
    .then((removed) => {
      pruned = removed
    })
  let written = 0
  const left: number[] = []
  while (pruned === 0) {
    await addCall(undefined)
    written++
    left.push(count('calls') - written)
  }
  await pruning
  expect(pruned).toBe(500)
  // Each waits for one step at the most, not for all of them.
  expect(left.filter((calls) => calls > 0 && calls < 500)).not.toBeEmpty()
  expect(count('calls')).toBe(written)
})

test('with a setting the store does it by itself; what cannot be removed is said', async () => {
  const removed = Promise.withResolvers<number>()
  const failed = Promise.withResolvers<unknown>()
  const options = { clock: { now: () => now }, retentionMs: 90 * dayMs }
  harness = await openHarness(options)
  await addOld(3)
  await addCall(now - 89 * dayMs)
  await harness.close()
  harness = await openHarness({ ...options, retentionDelayMs: 1, onRemoved: removed.resolve, onError: failed.resolve })
  await harness.reopen(async () => {
    // By a store that keeps all: else it might remove the first of them before the last is there.
    const keeping = await openSqlite({ dataDir: harness.dataDir, synchronous: 'NORMAL', exclusive: true })
    await addOld(3, keeping.calls)
    await keeping.close()
  })
  expect(await removed.promise).toBe(3)
  const db = new Database(harness.database, { readwrite: true })
  db.run('BEGIN IMMEDIATE')
  await harness.reopen()
  expect(await failed.promise).toBeInstanceOf(StoreError)
  db.run('ROLLBACK')
  db.close()
}, 240_000)
