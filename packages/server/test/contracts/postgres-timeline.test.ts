import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'bun:test'
import { type ReservedSQL, SQL } from 'bun'
import type { RingingCall } from '../../src/call/call.ts'
import type { TimelineRow } from '../../src/call/observed.ts'
import { created, ended, participant, ringing, there, touched } from '../../src/ports/call-store.fixture.ts'
import { Connections } from '../../src/stores/postgres/connections.ts'
import { blankCallsSql, lockCallsSql } from '../../src/stores/postgres/erasure.ts'
import { createRemoval, pruneSql } from '../../src/stores/postgres/retention.ts'
import { addSql } from '../../src/stores/postgres/timeline.ts'
import { type Databases, openDatabases } from '../support/postgres.ts'
import { openHarness, type PostgresHarness } from './postgres-harness.ts'

/** A call is erased or removed while entries of it are added, on another connection. */
let server: Databases
let harness: PostgresHarness
let sql: SQL
let other: ReservedSQL
let call: RingingCall
let id: number
beforeAll(async () => {
  server = await openDatabases()
  harness = await openHarness(server)
  sql = new SQL({ url: harness.url, max: 2 })
})
beforeEach(async () => {
  call = ringing()
  await harness.store().transition(call, () => ({ steps: [created(call)] }))
  await harness.store().transition(call, () => ({ steps: [ended(call)] }))
  const [row] = await sql`SELECT id::int AS id FROM calls WHERE call_uuid = ${call.callUuid}`
  id = row.id
  other = await sql.reserve()
  await other.unsafe('BEGIN')
})
afterEach(async () => {
  await other.unsafe('ROLLBACK')
  other.release()
})
afterAll(async () => {
  await sql.close()
  await harness.close()
  await server.dispose()
})

const entry = (side: TimelineRow['side']): TimelineRow => ({
  ...{ product: call.product, callUuid: call.callUuid, id: String(side), at: 1, what: 'rung', side, detail: {} },
})
const add = () => harness.stores().timeline.add([entry('caller'), entry('callee'), entry(null)])
/** The same in the transaction of the other connection. */
const addThere = () => {
  const rows = [entry('caller'), entry('callee')].map(({ product, callUuid, id, at, side }) => ({
    ...{ product, call_uuid: callUuid, id, at, side, role: '', user_id: '' },
    entry: JSON.stringify({ what: 'rung', detail: {} }),
  }))
  return other.unsafe(addSql, [JSON.stringify(rows)])
}
async function stored(): Promise<string[]> {
  const rows = await sql`SELECT id FROM call_timeline WHERE call_uuid = ${call.callUuid} ORDER BY id`
  return rows.map((row: { id: string }) => row.id)
}

/** Until the work waits for the other connection, or is done without it. */
async function held(work: PromiseLike<unknown>): Promise<void> {
  let isDone = false
  const end = () => {
    isDone = true
  }
  const done = work.then(end, end)
  const waiting = async () => {
    const text = 'SELECT count(*)::int AS count FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))'
    const [{ pid }] = await other.unsafe('SELECT pg_backend_pid() AS pid')
    while (!isDone && (await sql.unsafe(text, [pid]))[0].count === 0);
  }
  await Promise.race([done, waiting()])
}

test('[SRV2] [TRACE1] an entry that is added while the name of its side is being blanked is not written', async () => {
  await other.unsafe(lockCallsSql([id]))
  await other.unsafe(blankCallsSql('caller', [id]))
  const adding = Promise.resolve(add())
  await held(adding)
  await other.unsafe('COMMIT')
  await adding
  expect(await stored()).toEqual(['callee', 'null'])
})

test('[TRACE1] an entry that is added while its call is being removed is not written', async () => {
  await other.unsafe(pruneSql, [Number.MAX_SAFE_INTEGER, 0, 1_000, 0])
  const adding = Promise.resolve(add())
  await held(adding)
  await other.unsafe('COMMIT')
  await adding
  expect(await stored()).toEqual([])
})

test('[SRV2] [TRACE1] an entry that is just being added when its side is erased goes with the name', async () => {
  await addThere()
  const erasing = harness.store().erase(participant(call.caller.userId))
  await held(erasing)
  await other.unsafe('COMMIT')
  expect(await erasing).toBe(1)
  expect(await stored()).toEqual(['callee'])
})

test('[TRACE1] a call that entries are just being added to is not removed without them', async () => {
  const connections = new Connections({ url: harness.url, limitMs: 5_000, session: {} }, 1)
  const remove = createRemoval(connections, 0)
  await addThere()
  await remove(Number.MAX_SAFE_INTEGER, 1_000, 0)
  await other.unsafe('COMMIT')
  expect(await stored()).toEqual(['callee', 'caller'])
  expect(await remove(Number.MAX_SAFE_INTEGER, 1_000, 0)).toBe(1)
  expect(await stored()).toEqual([])
  await connections.close()
})

test('[TRACE1] no commit waits for who adds to the timeline of its call', async () => {
  const live = ringing()
  await harness.store().transition(live, () => ({ steps: [created(live)] }))
  await other.unsafe('SELECT 1 FROM calls WHERE call_uuid = $1 FOR KEY SHARE', [live.callUuid])
  await harness.store().transition(live, (now) => ({ steps: [touched(there(now), 'x')] }))
})
