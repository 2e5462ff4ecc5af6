import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { until } from '@ringwire/testkit/patience'
import { SQL } from 'bun'
import type { Step } from '../../src/call/effects.ts'
import { created, ringing, there, touched } from '../../src/ports/call-store.fixture.ts'
import { leaseMs, ownMs } from '../../src/ports/outbox.ts'
import { commitSql, encodeBatch, writeOf } from '../../src/stores/postgres/batch.ts'
import { openPostgres, type PostgresStores } from '../../src/stores/postgres/open.ts'
import { type Databases, openDatabases } from '../support/postgres.ts'
import { type OutboxProcessHarness, registerOutboxContract, registerOutboxProcessContract, rowsOf } from './outbox.ts'
import { openHarness } from './postgres-harness.ts'

let server: Databases
beforeAll(async () => {
  server = await openDatabases()
})
afterAll(() => server.dispose())

const all = 100_000
const passSql = "UPDATE outbox SET free_at = free_at - $1::float8 * interval '1 ms'"

/** A new database whose clock stands still but for `passStillSql`, however late a statement comes. Answers its URL. */
async function makeStill(): Promise<string> {
  const url = await server.database()
  for (const statement of [
    'CREATE TABLE public.still (at timestamptz)',
    'INSERT INTO public.still VALUES (pg_catalog.clock_timestamp())',
    `CREATE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE sql STABLE
     AS 'SELECT at FROM public.still'`,
    // In front of the server's own.
    `ALTER DATABASE ${new URL(url).pathname.slice(1)} SET search_path = public, pg_catalog`,
  ]) {
    await server.query(statement, url)
  }
  return url
}
const passStillSql = "UPDATE public.still SET at = at + $1::float8 * interval '1 ms'"

registerOutboxContract('PostgreSQL', openOutbox)
registerOutboxProcessContract('PostgreSQL', openOutbox)

async function openOutbox(): Promise<OutboxProcessHarness> {
  const harness = await openHarness(server, { url: await makeStill() })
  const other = await openPostgres({ url: harness.url })
  const sql = new SQL({ url: harness.url, max: 1 })
  return {
    store: harness.store,
    forge: harness.forge,
    outbox: () => harness.stores().outbox,
    other: () => other.outbox,
    rows: async () => (await sql.unsafe('SELECT count(*)::int AS n FROM outbox'))[0].n,
    async pass(ms) {
      await sql.unsafe(passStillSql, [ms])
    },
    async dropCall({ callUuid }) {
      await sql.unsafe('DELETE FROM calls WHERE call_uuid = $1', [callUuid])
    },
    async fill(count) {
      await sql.unsafe(fillSql, [count])
    },
    reopen: harness.reopen,
    child: () => ['postgres', harness.url],
    async close() {
      await sql.close()
      await other.close()
      await harness.close()
    },
  }
}

const fillSql = `
  WITH made AS (
    INSERT INTO calls (
      product, call_uuid, caller_role, caller_user_id, callee_role, callee_user_id, context_type, context_id, call_type,
      started_at, ring_timeout_ms, version, status, ring_expires_at, caller_place, ended_at, end_reason
    )
    SELECT 'clinic', gen_random_uuid(), 'r', 'a', 'r', 'b', 't', 'c', 'audio', 0, 1, 1, 'ended', 1, '{}', 0, 'x'
    FROM generate_series(1, $1::int) RETURNING id
  ), events AS (
    INSERT INTO call_events (call_id, version, type, at) SELECT id, 1, 'ended', 0 FROM made
  )
  INSERT INTO outbox (call_id, version) SELECT id, 1 FROM made`

describe('PostgreSQL: an outbox that several processes write', () => {
  let url: string
  let stores: PostgresStores
  let sql: SQL
  let now = 0
  beforeAll(async () => {
    url = await server.database()
    stores = await openPostgres({ url, monotonic: () => now })
    sql = new SQL({ url, max: 1 })
  })
  afterAll(async () => {
    await sql.close()
    await stores.close()
  })

  const pass = (ms: number) => sql.unsafe(passSql, [ms])
  const add = async () => {
    const call = ringing()
    await stores.calls.transition(call, () => ({ steps: [created(call)] }))
    return call
  }
  /** Claims as a service does, twice a second. */
  async function claimFor(ms: number): Promise<string[]> {
    const found: string[] = []
    for (const end = now + ms; now < end; now += 500) {
      const left = await stores.outbox.claim(all)
      for (const { call } of left) found.push(call?.callUuid ?? '')
      await stores.outbox.remove(rowsOf(left))
    }
    return found
  }

  /** A commit that has its row, and is not visible yet. */
  async function beginLate(step: Step): Promise<{ commit(): Promise<void> }> {
    const connection = new SQL({ url, max: 1 })
    await connection.unsafe('BEGIN')
    await connection.unsafe(commitSql, encodeBatch([writeOf([step], undefined, () => undefined)]))
    return {
      async commit() {
        await connection.unsafe('COMMIT')
        await connection.close()
      },
    }
  }
  const rowOfCall = async (callUuid: string) =>
    (
      await sql.unsafe(
        `SELECT outbox.id::int AS id FROM outbox JOIN calls ON calls.id = call_id WHERE call_uuid = $1`,
        [callUuid],
      )
    )[0]?.id

  test('a commit that becomes visible late is not passed over, though later ones were told and removed before', async () => {
    const late = ringing()
    const transaction = await beginLate(created(late))
    const early = await add()
    const earlyRow = await rowOfCall(early.callUuid)
    await pass(ownMs)
    expect(await claimFor(4_000)).toEqual([early.callUuid])
    await transaction.commit()
    const lateRow = await rowOfCall(late.callUuid)
    // Who went by the ids would be past it.
    expect(lateRow).toBeLessThan(earlyRow)
    await pass(ownMs)
    expect(await claimFor(1_000)).toEqual([late.callUuid])
  })

  test('also while other commits go on, for as long as a statement may take', async () => {
    const late = ringing()
    const transaction = await beginLate(created(late))
    const found: string[] = []
    for (let round = 0; round < 4; round++) {
      await add()
      await pass(ownMs)
      found.push(...(await claimFor(2_400)))
    }
    expect(found.length).toBe(4)
    await transaction.commit()
    await pass(ownMs)
    expect(await claimFor(30_000)).toEqual([late.callUuid])
  })

  test('one that comes later than any statement may take is found when all is looked at', async () => {
    const late = ringing()
    const transaction = await beginLate(created(late))
    // Three times that is less than what counts as a clock that was set back.
    const aWhileMs = 15_000
    for (let round = 0; round < 3; round++) {
      await add()
      // Its own process has it, however long these claims take: it is the first one that is left.
      await pass(-aWhileMs)
      await claimFor(11_000)
    }
    await transaction.commit()
    await pass(3 * aWhileMs + ownMs)
    expect((await claimFor(1_000)).length).toBe(3)
    expect(await claimFor(600_000)).toEqual([late.callUuid])
  })

  test('rows of a rolled back commit were never there', async () => {
    const connection = new SQL({ url, max: 1 })
    await connection.unsafe('BEGIN')
    const step = created(ringing())
    await connection.unsafe(commitSql, encodeBatch([writeOf([step], undefined, () => undefined)]))
    await connection.unsafe('ROLLBACK')
    await connection.close()
    expect((await sql.unsafe('SELECT count(*)::int AS n FROM outbox'))[0].n).toBe(0)
  })

  test('a claim under way keeps others from the same rows until its transaction is over, and does not outlive it', async () => {
    const call = await add()
    await pass(ownMs)
    const dying = new SQL({ url, max: 1 })
    await dying.unsafe('BEGIN')
    const [row] = await dying.unsafe("SELECT id FROM claim_steps(0, 10, interval '10 seconds')")
    expect(row).toBeDefined()
    // It waits: what the first one took is not known yet.
    const claimed = stores.outbox.claim(all)
    const waiting = async () =>
      (
        await sql.unsafe(
          `SELECT count(*)::int AS n FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
           AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
        )
      )[0].n
    await until('it waits for the lock', async () => (await waiting()) > 0)
    const [{ pid }] = await dying.unsafe('SELECT pg_backend_pid() AS pid')
    await sql.unsafe('SELECT pg_terminate_backend($1)', [pid])
    const left = await claimed
    expect(left.map((one) => one.call?.callUuid)).toEqual([call.callUuid])
    await stores.outbox.remove(rowsOf(left))
    await dying.close().catch(() => {})
  })

  test('the clock of the database is set back: what waits longer than any lease is free', async () => {
    const call = await add()
    await pass(-3_600_000)
    const left = await stores.outbox.claim(all)
    expect(left.map((one) => one.call?.callUuid)).toEqual([call.callUuid])
    await stores.outbox.remove(rowsOf(left))
  })

  test('steps of the version before have no row, and go on beside those that do', async () => {
    const call = await add()
    const before = touched(call, 'by an older node')
    const values = encodeBatch([writeOf([before], undefined, () => undefined)])
    const old = 'SELECT commit_changes($1::text::json, $2::text::json, $3::text::json, $4::text::json)::text AS refused'
    expect((await sql.unsafe(old, values))[0].refused).toBe('{}')
    const next = await stores.calls.transition(call, (now) => ({ steps: [touched(there(now), 'by this one')] }))
    expect(next.steps[0]?.call.version).toBe(3)
    await pass(leaseMs)
    const left = await stores.outbox.claim(all)
    expect(left.map(({ version }) => version)).toEqual([1, 3])
    await stores.outbox.remove(rowsOf(left))
  })

  test('a claim and a look find their rows through the index, and a claim is written beside the row (HOT)', async () => {
    // What the tests before have left dead in the pages takes the room beside the rows.
    await sql.unsafe('VACUUM outbox')
    const calls = await Promise.all(Array.from({ length: 50 }, () => add()))
    await pass(ownMs)
    const left = await stores.outbox.claim(all)
    expect(left.length).toBe(calls.length)
    await stores.outbox.remove(rowsOf(left))
    const counters = async () =>
      (
        await sql.unsafe(
          "SELECT seq_scan::int AS scans, n_tup_upd::int AS all, n_tup_hot_upd::int AS hot FROM pg_stat_user_tables WHERE relname = 'outbox'",
        )
      )[0]
    await stores.close()
    stores = await openPostgres({ url, monotonic: () => now })
    // A connection tells its figures when it ends; those of the tests before are among them.
    await until('the figures are there', async () => (await counters()).all >= calls.length)
    expect((await counters()).hot).toBeGreaterThanOrEqual(calls.length)
  })
})
