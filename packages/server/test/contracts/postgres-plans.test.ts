import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { until } from '@ringwire/testkit/patience'
import { SQL } from 'bun'
import { callLife } from '../../src/call/decide.fixture.ts'
import { created, liveIn, participant, ringing, there, touched } from '../../src/ports/call-store.fixture.ts'
import {
  auditAboutSql,
  auditOfProductSql,
  auditSql,
  forgetAuditSql,
  pruneAuditSql,
} from '../../src/stores/postgres/audit.ts'
import { beginningSql, edgeSql, listSql, seenSql } from '../../src/stores/postgres/call-lists.ts'
import {
  dueRingsSql,
  historySql,
  inCallSql,
  lastAnsweredSql,
  liveByIdSql,
  liveOfSql,
  liveVersionsSql,
  loadSql,
  overPageSql,
  situationSql,
  stepsAfterSql,
} from '../../src/stores/postgres/call-reads.ts'
import { memberDevicesSql } from '../../src/stores/postgres/devices.ts'
import {
  blankCallsSql,
  blankDeliveriesSql,
  blankEventsSql,
  blankTransferrerSql,
  callsSql,
  eventsSql,
  deliveriesSql as keptHooksSql,
  lockCallsSql,
} from '../../src/stores/postgres/erasure.ts'
import { together } from '../../src/stores/postgres/glances.ts'
import { forgetMemberSql, groupSql, groupsOfSql, groupsSql } from '../../src/stores/postgres/groups.ts'
import { eraseSql as eraseOnlineSql, nodesSql, ofNodeSql } from '../../src/stores/postgres/online.ts'
import { lookedFor, neededByInvite, plannerSettings } from '../../src/stores/postgres/open.ts'
import { claimSql, leftOfSql, oldestSql, releaseSql, removeSql, waitingSql } from '../../src/stores/postgres/outbox.ts'
import { policiesSql } from '../../src/stores/postgres/policies.ts'
import {
  addSql,
  callsOfSql,
  entriesSql,
  forgetRefusedSql,
  forgetSideSql,
  pruneRefusedSql,
  refusedSql,
} from '../../src/stores/postgres/timeline.ts'
import { dropSql } from '../../src/stores/postgres/webhook-endpoints.ts'
import {
  claimSql as claimHooksSql,
  deliveriesSql,
  dueSql,
  pruneSql as pruneHooksSql,
  putOffSql,
  settleSql,
  stuckSql,
} from '../../src/stores/postgres/webhooks.ts'
import { type Databases, openDatabases } from '../support/postgres.ts'
import { openHarness, type PostgresHarness } from './postgres-harness.ts'

/** What PostgreSQL does for each read, on tables as a busy service has them. */
describe('every read finds its rows through an index', () => {
  let server: Databases
  let harness: PostgresHarness
  let sql: SQL
  beforeAll(async () => {
    server = await openDatabases()
    harness = await openHarness(server)
    sql = new SQL({ url: harness.url, max: 1, connection: plannerSettings })
    // 200,000 calls of 2,000 people; one of them, user-0, is in every tenth; 200 are live.
    await sql.unsafe(`
      INSERT INTO calls (
        product, call_uuid, caller_role, caller_user_id, callee_role, callee_user_id, context_type, context_id, call_type,
        started_at, ring_timeout_ms, version, status, ring_expires_at, caller_place, ended_at, end_reason
      )
      SELECT
        'clinic', gen_random_uuid(), 'patient', 'user-' || CASE WHEN n % 10 = 0 THEN 0 ELSE n % 2000 END, 'patient',
        'user-' || (n * 7) % 2000, 't', 'c', 'audio', 1000000 + n, 45000, 2,
        CASE WHEN n % 1000 = 1 THEN 'ringing' ELSE 'ended' END, 1045000 + n, '{}',
        CASE WHEN n % 1000 = 1 THEN NULL ELSE 1050000 + n END, 'hangup'
      FROM generate_series(1, 200000) AS n`)
    await sql.unsafe(`
      INSERT INTO call_events (call_id, version, type, at) SELECT id, v, 'ended', 0 FROM calls, generate_series(1, 2) AS v`)
    // A hundredth rang at 100 members of a group, user-0 among them: nobody answered a tenth of them.
    await sql.unsafe(`
      INSERT INTO call_members (product, role, user_id, started_at, call_uuid, rang)
      SELECT product, 'patient', 'user-' || member, started_at, call_uuid, started_at % 1000 = 0
      FROM calls, generate_series(0, 99) AS member WHERE started_at % 100 = 0`)
    await sql.unsafe('ANALYZE calls, call_events, call_members')
  }, 240_000)
  afterAll(async () => {
    await sql.close()
    await harness.close()
    await server.dispose()
  })

  async function plan(statement: string, values: readonly (string | number | boolean)[]): Promise<string> {
    const rows: { 'QUERY PLAN': string }[] = await sql.unsafe(`EXPLAIN ${statement}`, [...values])
    return rows.map((row) => row['QUERY PLAN']).join('\n')
  }

  /** Runs a statement; answers how many rows the widest part of its plan has read. */
  async function mostRead(statement: string, values: readonly (string | number)[]): Promise<number> {
    const rows: { 'QUERY PLAN': string }[] = await sql.unsafe(`EXPLAIN (ANALYZE, TIMING OFF) ${statement}`, [...values])
    const text = rows.map((row) => row['QUERY PLAN']).join('\n')
    const counts = [...text.matchAll(/actual rows=([\d.]+) loops=(\d+)/g)].map(
      ([, n, loops]) => Number(n) * Number(loops),
    )
    const passedOver = [...text.matchAll(/Rows Removed by [^:]+: (\d+)/g)].map(([, n]) => Number(n))
    return Math.max(...counts, ...passedOver)
  }

  const wantedOf = (count: number) =>
    JSON.stringify(
      Array.from({ length: count }, (_, n) => ({ n, product: 'clinic', role: 'patient', user_id: `user-${n}` })),
    )
  const busiest = ['user-0', 'patient', 'clinic']
  const ofProduct = ['clinic', '9223372036854775807', '', '0', '', 101, '']
  const reads: [string, string, (string | number)[]][] = [
    ['load', loadSql, ['u', 'clinic']],
    ['live calls of a participant', liveOfSql, ['clinic', 'user-0', 'patient']],
    ['[PRES1] who of many is in a call', inCallSql, [wantedOf(500)]],
    ['[GROUP1] when many answered last', lastAnsweredSql, [wantedOf(500)]],
    ['what an invite needs to see', situationSql, ['clinic', 'u', 'user-0', 'patient', 'user-1', 'patient']],
    ['a page of live calls', liveVersionsSql, ['0', 500]],
    ['rings that are due', dueRingsSql, [1_200_000, 1_210_000, 500]],
    ['live calls by their keys', liveByIdSql, ['{1,2,3}']],
    ['a page of calls that ended since', overPageSql, [1_249_000, 0, 500]],
    ['a timeline', entriesSql, ['clinic', 'u', 500]],
    ['what is of a side of calls', forgetSideSql, ['clinic', '{u}', 'caller', 500]],
    ['refused invites of a participant', forgetRefusedSql, ['user-0', 'patient', 'clinic', 500]],
    ['[SRV2] refused invites, to be shown', refusedSql, ['user-0', 'patient', 'clinic', 5, '', 100]],
    ...(['caller', 'callee'] as const).flatMap((side): [string, string, (string | number)[]][] => [
      [`[SRV2] calls to be erased of a ${side}`, callsSql(side), [...busiest, 0, '']],
      [`[TRACE1] calls whose entries of a ${side} are forgotten`, callsOfSql(side), [...busiest, 0, '']],
      [`[SRV2] calls that are erased of a ${side}`, blankCallsSql(side, [1, 2, 3]), []],
    ]),
    ['[XFER1] [SRV2] calls to be erased of a transferrer', callsSql('transferrer'), [...busiest, 0, '']],
    ['[XFER1] [SRV2] calls that are erased of a transferrer', blankTransferrerSql, ['{1,2,3}', 'user-0']],
    ['[HOOK2] who is on a node', ofNodeSql, ['a']],
    ['[HOOK2] how many are on each node', nodesSql, []],
    ['[SRV2] who is erased is on no node', eraseOnlineSql, ['clinic', 'patient', 'ann']],
    ['[GROUP1] a group', groupSql, ['clinic', 'patient', 'all']],
    ['[GROUP1] groups of a product', groupsSql, ['clinic', '', '', 101]],
    ['[GROUP1] groups of a member', groupsOfSql, ['clinic', 'patient', 'ann']],
    ['[ADM3] the audit log', auditSql, ['g', 101]],
    ['[ADM3] the audit log of a product', auditOfProductSql, ['clinic', 'g', 101]],
    ['[ADM3] what is about a participant', auditAboutSql, ['clinic', 'patient', 'ann', 'g', 100]],
    ['[ADM3] [SRV2] who is erased in the audit log', forgetAuditSql, ['clinic', 'patient', 'ann']],
    ['[ADM3] what is old in the audit log', pruneAuditSql, ['0']],
    ['[GROUP1] [SRV2] who leaves all groups', forgetMemberSql, ['clinic', 'patient', 'ann']],
    ['[GROUP1] [PUSH2] devices of members', memberDevicesSql, ['clinic', 'patient', '["ann","ben"]', 0, 20]],
    ['[SRV2] events to be erased', eventsSql, ['{1,2,3}']],
    ['[SRV2] events that are erased', blankEventsSql, ['[{"call_id":1,"version":1,"author":1}]']],
    ['[SRV2] webhooks that are kept', keptHooksSql, ['e', '', 'ann']],
    ['[SRV2] webhooks that are erased', blankDeliveriesSql, ['[{"id":"msg_1","was":"","body":""}]']],
    ['invites that were refused long ago', pruneRefusedSql, [0, 500, 1_000]],
    ['steps after a version', stepsAfterSql, ['u', 'clinic', 1]],
    ['[HIST1] history, first page', historySql, [...busiest, '9223372036854775807', '', 31]],
    ['[HIST1] history, a later page', historySql, [...busiest, '1100000', 'u', 101]],
    ['the first that is left, and whether any is free', waitingSql, ['7']],
    ['what is left of a call', leftOfSql, ['u', 'clinic']],
    ['when the oldest that is left was made', oldestSql, ['7']],
    ['rows of the outbox that were told', removeSql, ['{1,2,3}']],
    ['rows of the outbox that are given back', releaseSql, ['{1,2,3}', 400]],
    ['the calls of what was claimed', claimSql, ['7', 50, 10_000]],
    ['[SRV2] a call as a backend is shown it', seenSql, ['u', 'clinic']],
    ['calls whose uuid begins so', beginningSql, ['ab12', 'clinic', 5]],
    ['[SRV2] calls of a product', listSql('product'), ofProduct],
    ['[SRV2] calls of a product that are live', listSql('live'), [...ofProduct.slice(0, 6), 'ringing']],
    ['[SRV2] calls of a participant', listSql('participant'), [...ofProduct, ...busiest.slice(0, 2)]],
    ['[SRV2] how far a page looks', edgeSql('product'), ofProduct],
    ['[SRV2] how far one of a participant looks', edgeSql('participant'), [...ofProduct, ...busiest.slice(0, 2)]],
    ['[HOOK3] webhooks that are due', claimHooksSql, ['[{"endpoint_id":"e","count":10}]', 30_000]],
    ['[HOOK3] webhooks that were attempted', settleSql, ['[{"id":"msg_1","outcome":"pending","after_ms":1,"at":1}]']],
    ['[HOOK3] endpoints with webhooks that are due', dueSql, []],
    ['[ADM2] webhooks that fail', stuckSql, []],
    ['[HOOK3] webhooks that wait behind another', putOffSql, ['["e"]']],
    ['[HOOK1] webhooks of an endpoint', deliveriesSql(), ['e', '~', 50]],
    ['[HOOK1] webhooks of one status', deliveriesSql('failed'), ['e', '~', 50]],
    ['[HOOK1] webhooks of a removed endpoint', dropSql, ['e']],
    ['[HOOK3] webhooks that are old enough', pruneHooksSql, [1, 1, 'msg_1']],
    ['[TRACE1] calls that are not to be written meanwhile', lockCallsSql([1, 2, 3]), []],
    ['[TRACE1] what is added to timelines', addSql, ['[{"product":"clinic","call_uuid":"u","id":"a"}]']],
  ]
  for (const [what, statement, values] of reads) {
    test(`${what}: no sequential scan`, async () => {
      const text = await plan(statement, values)
      expect(text).not.toContain('Seq Scan')
      expect(text).toMatch(/Index (Only )?Scan|Bitmap Index Scan/)
    })
  }

  test('what nodes look for again and again finds its rows so, too, all of it in one statement', async () => {
    const values = [true, true, 0, true, true, true, '7', true, '7', true, 1_200_000, 1_210_000, 500, true, '0', 500]
    const text = await plan(together(lookedFor), values)
    for (const table of ['calls', 'call_events', 'outbox', 'webhook_deliveries', 'revocations']) {
      expect(text).toMatch(new RegExp(`(Index (Only )?Scan using \\w+|Bitmap Heap Scan) on ${table}`))
      expect(text).not.toContain(`Seq Scan on ${table}`)
    }
  })

  test('what an invite asks for at once finds its rows so, too', async () => {
    const values = [true, 'clinic', 'u', 'user-0', 'patient', 'user-1', 'patient', true, 'clinic']
    const text = await plan(together(neededByInvite), values)
    expect(text).not.toContain('Seq Scan')
  })

  test('small tables that are read whole are read by one process, which compiles nothing for that', async () => {
    const rows: { 'QUERY PLAN': string }[] = await sql.unsafe(`EXPLAIN (ANALYZE, TIMING OFF) ${policiesSql}`)
    const text = rows.map((row) => row['QUERY PLAN']).join('\n')
    expect(text).toContain('Seq Scan on product_keys')
    expect(text).not.toMatch(/Gather|Parallel|JIT/)
  })

  test('[PRES1] who of 500 is in a call is found by two looks at an index for each', async () => {
    const rows: { 'QUERY PLAN': string }[] = await sql.unsafe(`EXPLAIN (ANALYZE, TIMING OFF) ${inCallSql}`, [
      wantedOf(500),
    ])
    const text = rows.map((row) => row['QUERY PLAN']).join('\n')
    for (const side of ['caller', 'callee']) expect(text).toMatch(new RegExp(`using live_calls_by_${side}.*loops=\\d`))
    const counts = [...text.matchAll(/actual rows=([\d.]+) loops=(\d+)/g)].map(
      ([, n, loops]) => Number(n) * Number(loops),
    )
    expect(Math.max(...counts)).toBeLessThanOrEqual(500)
  })

  test('[HIST1] [GROUP1] history is merged from three indexes in their own order, nothing is sorted', async () => {
    const text = await plan(historySql, [...busiest, '1200000', 'u', 31])
    expect(text).not.toMatch(/Sort\b(?! Key)/)
    for (const scan of [
      'Scan Backward using calls_by_caller',
      'Scan Backward using calls_by_callee',
      'Only Scan Backward using members_rung',
    ])
      expect(text).toContain(`Index ${scan}`)
  })

  test('[HIST1] [GROUP1] the page of a participant with 20,000 calls, and 1,800 more that others of its group answered, reads few rows', async () => {
    expect(await mostRead(historySql, [...busiest, '9223372036854775807', '', 101])).toBeLessThanOrEqual(101)
  })

  test('[SRV2] a page of a list is read in the order of its index, and reads few rows', async () => {
    for (const [statement, values, index] of [
      [listSql('product'), ofProduct, 'calls_by_start'],
      // All that is live may be less than the planner cares to read in order.
      [listSql('live'), ofProduct, 'live_calls_by_'],
      [edgeSql('live'), ofProduct, 'live_calls_by_'],
    ] as const) {
      const rows: { 'QUERY PLAN': string }[] = await sql.unsafe(`EXPLAIN (ANALYZE, TIMING OFF) ${statement}`, [
        ...values,
      ])
      const text = rows.map((row) => row['QUERY PLAN']).join('\n')
      expect(text).toContain(`using ${index}`)
      const counts = [...text.matchAll(/actual rows=([\d.]+)/g)].map(([, n]) => Number(n))
      // Each call has two events here, and 200 are live.
      expect(Math.max(...counts)).toBeLessThanOrEqual(202)
    }
  })

  test('what is read of calls that ended since is bounded, however many did', async () => {
    const rows: { 'QUERY PLAN': string }[] = await sql.unsafe(
      `EXPLAIN (ANALYZE, TIMING OFF) ${overPageSql}`,
      [1_051_000, 0, 50],
    )
    const counts = rows.flatMap((row) =>
      [...row['QUERY PLAN'].matchAll(/actual rows=([\d.]+)/g)].map(([, n]) => Number(n)),
    )
    // Rows of one millisecond are sorted, in groups of 32 and more.
    expect(Math.max(...counts)).toBeLessThan(150)
  })

  test('[RING1] what a sweep reads of live calls is bounded, whatever else is stored', async () => {
    const rows: { 'QUERY PLAN': string }[] = await sql.unsafe(`EXPLAIN (ANALYZE, TIMING OFF) ${liveVersionsSql}`, [
      '0',
      50,
    ])
    const counts = rows.flatMap((row) =>
      [...row['QUERY PLAN'].matchAll(/actual rows=([\d.]+)/g)].map(([, n]) => Number(n)),
    )
    expect(Math.max(...counts)).toBe(50)
  })

  test('what is limited is read in the order of an index, nothing is sorted', async () => {
    // An order by the column of an answer that has the table's name, but another type, has no index.
    expect(await plan(waitingSql, ['7'])).not.toContain('Sort')
    expect(await plan(dueRingsSql, [1_000_000, 1_210_000, 50])).not.toContain('Sort')
  })

  test('[TRACE1] a page of refused invites reads few rows, however many a participant has', async () => {
    await sql.unsafe(`
      INSERT INTO call_timeline (product, call_uuid, id, at, side, role, user_id, entry)
      SELECT 'clinic', 'u' || n, 'r', n, '', 'patient', 'refused', '{}' FROM generate_series(1, 5000) AS n`)
    const values = ['refused', 'patient', 'clinic', 4_000, '', 100]
    expect(await mostRead(refusedSql, values)).toBeLessThanOrEqual(100)
  })

  test('[HOOK3] a claim of webhooks looks at few rows, however many wait behind one that is under way', async () => {
    await sql.unsafe(`
      INSERT INTO webhook_deliveries (id, endpoint_id, subject, version, type, body, created_at, due_at, claimed_until)
      SELECT 'msg_' || n, 'crowded', 'one', n, 'participant.online', '{}', 0, clock_timestamp() - interval '1 min',
        CASE WHEN n = 1 THEN clock_timestamp() + interval '10 min' END
      FROM generate_series(1, 5000) AS n`)
    const values = ['[{"endpoint_id":"crowded","count":10}]', 30_000]
    expect(await mostRead(claimHooksSql, values)).toBeLessThan(500)
  })

  test("a live call's transitions touch no index (HOT)", async () => {
    const store = harness.store()
    const counters = async () => {
      const [row] = await sql.unsafe(
        "SELECT n_tup_upd::int AS all, n_tup_hot_upd::int AS hot FROM pg_stat_user_tables WHERE relname = 'calls'",
      )
      return row as { all: number; hot: number }
    }
    const before = await counters()
    // One after another: the room that a page keeps is enough for the update of the row that came last, while what earlier
    // updates leave is there to be used again only if nobody on the whole server holds an older snapshot.
    for (let calls = 0; calls < 50; calls++) {
      const call = ringing()
      await store.transition(call, () => ({ steps: [created(call)] }))
      await store.transition(call, (now) => ({ steps: [touched(there(now), 'x')] }))
    }
    // A session that ends hands its counts over.
    await harness.reopen()
    await until('the updates are counted', async () => (await counters()).all - before.all >= 50)
    const after = await counters()
    expect(after.hot - before.hot).toBe(50)
  })

  test('also while the tables grow and nobody has counted their rows yet', async () => {
    const fresh = await openHarness(server)
    const counters = () =>
      server.query(
        `SELECT seq_scan::int AS scans, n_tup_ins::int AS rows FROM pg_stat_user_tables
         WHERE relname IN ('calls', 'call_events')`,
        fresh.url,
      )
    // The indexes were made by reading the tables.
    await until('their reads are counted', async () => (await counters()).every(({ scans }) => scans > 0))
    await fresh.reopen(async () => {
      // The connection that made them hands the rest of its counts over when its session ends, which the client does not
      // wait for.
      const sessions = `SELECT pid FROM pg_stat_activity
        WHERE datname = '${fresh.database}' AND starts_with(application_name, 'ringwire')`
      await until('its sessions have ended', async () => (await server.query(sessions)).length === 0)
      await server.query('SELECT pg_stat_reset()', fresh.url)
    })
    const lives = Array.from({ length: 400 }, () => callLife())
    for (let step = 0; step < 5; step++) await Promise.all(lives.map((life) => life[step]?.(fresh.store())))
    await liveIn(fresh.store())
    await fresh.store().history({ participant: participant('nobody'), limit: 30, after: undefined })
    await fresh.reopen()
    await until('the rows are counted', async () => (await counters()).every(({ rows }) => rows >= 400))
    expect((await counters()).map(({ scans }) => scans)).toEqual([0, 0])
    await fresh.close()
  })
})
