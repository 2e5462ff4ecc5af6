import { afterAll, beforeAll, expect, test } from 'bun:test'
import { until } from '@ringwire/testkit/patience'
import { SQL } from 'bun'
import type { LiveCall, OverCall } from '../../src/call/call.ts'
import type { TimelineRow } from '../../src/call/observed.ts'
import { created, ended, ringing } from '../../src/ports/call-store.fixture.ts'
import { StoreError } from '../../src/ports/store-error.ts'
import { refusedKeptMs } from '../../src/ports/timeline.ts'
import { openPostgres } from '../../src/stores/postgres/open.ts'
import { type Databases, openDatabases } from '../support/postgres.ts'
import { openHarness } from './postgres-harness.ts'

let server: Databases
beforeAll(async () => {
  server = await openDatabases()
})
afterAll(() => server.dispose())

const dayMs = 86_400_000

async function fill(url: string, count: number, endedAt: number): Promise<void> {
  const sql = new SQL({ url, max: 1 })
  await sql.unsafe(
    `WITH made AS (
       INSERT INTO calls (
         product, call_uuid, caller_role, caller_user_id, callee_role, callee_user_id, context_type, context_id, call_type,
         started_at, ring_timeout_ms, version, status, ring_expires_at, caller_place, ended_at, end_reason
       )
       SELECT 'clinic', gen_random_uuid(), 'r', 'a', 'r', 'b', 't', 'c', 'audio', 0, 1, 1, 'ended', 1, '{}', $1::float8, 'x'
       FROM generate_series(1, $2::int) RETURNING id
     ) INSERT INTO call_events (call_id, version, type, at) SELECT id, 1, 'ended', 0 FROM made`,
    [endedAt, count],
  )
  await sql.close()
}

test('calls that ended before the instant go with their events, the others stay', async () => {
  const harness = await openHarness(server)
  const store = harness.store()
  const now = 100 * dayMs
  const [live, old, young] = [ringing(), ringing(), ringing()]
  for (const call of [live, old, young]) await store.transition(call, () => ({ steps: [created(call)] }))
  await store.transition(old, (call) => ({ steps: [ended(call as LiveCall, now - 1)] }))
  await store.transition(young, (call) => ({ steps: [ended(call as LiveCall, now)] }))
  await fill(harness.url, 1200, now - 5)
  // Two nodes at once do not touch each other's rows.
  const other = await openPostgres({ url: harness.url })
  const removed = await Promise.all([harness.stores().prune(now), other.prune(now)])
  expect((removed[0] ?? 0) + (removed[1] ?? 0)).toBe(1201)
  await other.close()
  expect(await store.load(old)).toBeUndefined()
  expect((await store.load(live))?.status).toBe('ringing')
  expect((await store.load(young))?.status).toBe('ended')
  const sql = new SQL({ url: harness.url, max: 1 })
  const [row] = await sql.unsafe('SELECT count(*)::int AS count FROM call_events')
  expect(row.count).toBe(3)
  await sql.close()
  await harness.close()
})

/** Has a database count what each transaction removes of its calls. */
const countSql = `
  CREATE TABLE removed (transaction xid8 NOT NULL, count bigint NOT NULL);
  CREATE FUNCTION count_gone() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    INSERT INTO removed SELECT pg_current_xact_id(), count(*) FROM gone;
    RETURN NULL;
  END $$;
  CREATE TRIGGER counting AFTER DELETE ON calls REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION count_gone();`

test('they go in steps: none holds more than some of them locked', async () => {
  const url = await server.database()
  const stores = await openPostgres({ url })
  await fill(url, 1_200, 5)
  await server.query(countSql, url)
  expect(await stores.prune(10)).toBe(1_200)
  const steps = await server.query('SELECT sum(count)::int AS count FROM removed GROUP BY transaction', url)
  const counts = steps.map(({ count }) => Number(count))
  expect(counts.reduce((sum, count) => sum + count, 0)).toBe(1_200)
  expect(Math.max(...counts)).toBeLessThanOrEqual(500)
  await stores.close()
})

/** What has a database refuse to remove calls: more than `most` at once, or those of `stuck`. */
const refusalSql = (most: number) => `
  CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF (SELECT count(*) FROM gone) > ${most} OR EXISTS (SELECT FROM gone WHERE caller_user_id = 'stuck') THEN
      RAISE EXCEPTION 'canceling statement due to statement timeout' USING ERRCODE = '57014';
    END IF;
    RETURN NULL;
  END $$;
  CREATE TRIGGER refusal AFTER DELETE ON calls REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION refuse();`

test('a step that takes too long is tried again with fewer calls, and the next ones come after it', async () => {
  const url = await server.database()
  const stores = await openPostgres({ url })
  await fill(url, 700, 5)
  await server.query(refusalSql(40), url)
  expect(await stores.prune(10)).toBe(700)
  await stores.close()
})

test('a call that cannot be removed, or that somebody holds, is left; what was removed is said before that', async () => {
  const url = await server.database()
  await (await openPostgres({ url })).close()
  await fill(url, 1, 4)
  await server.query("UPDATE calls SET caller_user_id = 'stuck'", url)
  await fill(url, 1, 5)
  await fill(url, 700, 6)
  await server.query(refusalSql(1_000), url)
  const sql = new SQL({ url, max: 1 })
  const holder = await sql.reserve()
  await holder.unsafe('BEGIN')
  await holder.unsafe('SELECT 1 FROM calls WHERE ended_at = 5 FOR UPDATE')
  const said: unknown[] = []
  const failed = Promise.withResolvers<void>()
  const pruning = await openPostgres({
    url,
    retentionMs: dayMs,
    retentionDelayMs: 1,
    onRemoved: (count) => said.push(count),
    onError(error) {
      said.push(error)
      failed.resolve()
    },
  })
  await failed.promise
  expect(said).toEqual([700, expect.any(StoreError)])
  const left = await server.query('SELECT ended_at::int AS at FROM calls ORDER BY ended_at', url)
  expect(left.map(({ at }) => at)).toEqual([4, 5])
  await holder.unsafe('ROLLBACK')
  holder.release()
  await sql.close()
  await pruning.close()
})

test('with a setting the store does it by itself, without one it keeps all', async () => {
  const url = await server.database()
  const keeping = await openPostgres({ url })
  await fill(url, 700, Date.now() - 3 * dayMs)
  await fill(url, 1, Date.now() - dayMs)
  const count = async () => {
    const page = { participant: { product: 'clinic', role: 'r', userId: 'a' }, after: undefined }
    return (await keeping.calls.history({ ...page, limit: 2 })).calls.length
  }
  expect(await count()).toBe(2)
  const pruning = await openPostgres({ url, retentionMs: 2 * dayMs, retentionDelayMs: 1 })
  await until('one is left', async () => (await count()) <= 1)
  await pruning.close()
  await keeping.close()
})

test('a node whose clock is two days ahead removes what is old by the clock of the database, and nothing else', async () => {
  const url = await server.database()
  const keeping = await openPostgres({ url })
  await fill(url, 1, Date.now() - 3 * dayMs)
  await fill(url, 1, Date.now() - 60_000)
  const pruning = await openPostgres({
    url,
    clock: { now: () => Date.now() + 2 * dayMs },
    retentionMs: dayMs,
    retentionDelayMs: 1,
  })
  const page = { participant: { product: 'clinic', role: 'r', userId: 'a' }, after: undefined, limit: 2 }
  const ages = async () =>
    (await keeping.calls.history(page)).calls.map((call) => Date.now() - (call as OverCall).endedAt)
  await until('one is left', async () => (await ages()).length <= 1)
  // Another look of the same node.
  expect(await pruning.prune(Date.now() + 2 * dayMs)).toBe(0)
  expect((await ages())[0]).toBeLessThan(dayMs)
  await pruning.close()
  await keeping.close()
})

test('[SRV2] [TRACE1] such a node removes neither tokens taken back nor refused invites that are young by that clock', async () => {
  const url = await server.database()
  const stores = await openPostgres({ url })
  const now = Date.now()
  for (const [name, at] of [
    ['old', now - 3 * dayMs],
    ['young', now],
  ] as const) {
    await server.query(
      `INSERT INTO revocations (participant, not_before, changed_at) VALUES ('${name}', ${at}, 1)`,
      url,
    )
  }
  await stores.products.revoke('last', now, now)
  expect(await stores.products.pruneRevocations(now + 5 * dayMs)).toBe(1)
  const left = (await stores.products.revocations(0)).map(({ participant }) => participant)
  expect(left.sort()).toEqual(['last', 'young'])

  const refused = [now - refusedKeptMs - dayMs, now].map(
    (at): TimelineRow => ({
      ...{ product: 'clinic', callUuid: crypto.randomUUID(), id: 'a', at, what: 'refused', side: 'caller', detail: {} },
      asker: { role: 'patient', userId: 'ann' },
    }),
  )
  await stores.timeline.add(refused)
  expect(await stores.timeline.pruneRefused(now + 5 * dayMs)).toBe(1)
  expect(await Promise.all(refused.map(async (row) => (await stores.timeline.of(row)).length))).toEqual([0, 1])
  await stores.close()
})

test('where the database does not get to it, that is said, as of everything else that waits for it', async () => {
  const url = await server.database()
  await (await openPostgres({ url })).close()
  const sql = new SQL({ url, max: 1 })
  const connection = await sql.reserve()
  await connection.unsafe('BEGIN')
  await connection.unsafe('LOCK TABLE calls IN ACCESS EXCLUSIVE MODE')
  const said = Promise.withResolvers<unknown>()
  const pruning = await openPostgres({
    url,
    limitMs: 500,
    retentionMs: dayMs,
    retentionDelayMs: 1,
    onError: said.resolve,
  })
  expect(await said.promise).toBeInstanceOf(StoreError)
  await connection.unsafe('ROLLBACK')
  connection.release()
  await pruning.close()
  await sql.close()
})
