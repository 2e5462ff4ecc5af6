import type { Database } from 'bun:sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { auditAboutSql, auditOfProductSql, auditSql } from '../../src/stores/sqlite/audit.ts'
import { beginningSql, edgeSql, listSql, seenSql } from '../../src/stores/sqlite/call-lists.ts'
import { historySql, liveSql, loadSql, overPageSql, stepsAfterSql } from '../../src/stores/sqlite/call-reads.ts'
import { openConnection } from '../../src/stores/sqlite/connection.ts'
import {
  callsSql,
  entriesSql as erasedEntriesSql,
  deliveriesSql as keptHooksSql,
} from '../../src/stores/sqlite/erasure.ts'
import { groupSql, groupsOfSql, groupsSql } from '../../src/stores/sqlite/groups.ts'
import { migrate } from '../../src/stores/sqlite/migrations.ts'
import { temporaryDataDir } from '../../src/stores/sqlite/open.fixture.ts'
import { leftOfSql, leftSql, oldestSql as oldestLeftSql, rowsSql } from '../../src/stores/sqlite/outbox.ts'
import { oldestSql } from '../../src/stores/sqlite/retention.ts'
import {
  askedSql,
  callsOfSql,
  dropSql,
  entriesSql,
  forgetRefusedSql,
  forgetSideSql,
  pruneRefusedSql,
  refusalsSql,
  refusedSql,
  replaceSql,
} from '../../src/stores/sqlite/timeline.ts'
import { claimSql } from '../../src/stores/sqlite/webhook-claims.ts'
import { changedSql } from '../../src/stores/sqlite/webhook-endpoints.ts'
import {
  dropSql as dropHooksSql,
  followSql,
  forgetRemovalsSql,
  pruneLeftSql,
  pruneSql,
  putOffSql,
} from '../../src/stores/sqlite/webhook-writes.ts'
import { deliveriesSql, dueSql, stuckSql } from '../../src/stores/sqlite/webhooks.ts'

/** What SQLite says it will do for each read. */
const byUuid = 'SEARCH calls USING INDEX calls_by_uuid (call_uuid=? AND product=?)'

describe('every read finds its rows through an index', () => {
  const dir = temporaryDataDir()
  let db: Database
  beforeAll(async () => {
    db = openConnection(dir.database)
    await migrate(db, 0)
  })
  afterAll(() => {
    db.close()
    dir.remove()
  })

  const plan = (sql: string) =>
    db
      .query<{ detail: string }, []>(`EXPLAIN QUERY PLAN ${sql.replaceAll('?', '1')}`)
      .all()
      .map((row) => row.detail)

  test('[HIST1] [GROUP1] history: three ranges, each in the order of its index, merged', () => {
    const steps = plan(historySql)
    expect(steps.filter((step) => /^SCAN|TEMP B-TREE/.test(step))).toEqual([])
    const searches = steps.filter((step) => step.startsWith('SEARCH'))
    const range = (side: string) =>
      `SEARCH calls USING INDEX calls_by_${side} (${side}_user_id=? AND ${side}_role=? AND product=? AND (started_at,call_uuid)<(?,?))`
    expect(searches).toEqual([
      range('caller'),
      range('callee'),
      'SEARCH m USING COVERING INDEX members_rung (product=? AND role=? AND user_id=? AND (started_at,call_uuid)<(?,?))',
      byUuid,
    ])
  })

  test('what is left in the outbox is read in its own order, and its calls by their keys', () => {
    expect(plan(rowsSql)).toEqual(['SCAN outbox'])
    const byKey = ['SEARCH call_events USING INTEGER PRIMARY KEY (rowid=?)']
    expect(plan(leftSql)).toEqual([
      'SCAN outbox',
      `${byKey[0]} LEFT-JOIN`,
      'SEARCH calls USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN',
    ])
    expect(plan(leftOfSql)).toEqual([
      'SEARCH call_events USING COVERING INDEX call_events_by_call (call_id=?)',
      'SCALAR SUBQUERY 1',
      'SEARCH calls USING COVERING INDEX calls_by_uuid (call_uuid=? AND product=?)',
      'SEARCH outbox USING INTEGER PRIMARY KEY (rowid=?)',
    ])
    expect(plan(oldestLeftSql)).toEqual(['SCAN outbox', ...byKey])
  })

  test('[TRACE1] timelines: one, what is of a participant, what was refused long ago, what an entry asks', () => {
    const forgetting = [callsOfSql('caller'), callsOfSql('callee'), forgetSideSql, forgetRefusedSql]
    for (const sql of [
      entriesSql,
      ...forgetting,
      erasedEntriesSql('caller'),
      refusedSql,
      pruneRefusedSql,
      askedSql,
      refusalsSql,
      replaceSql,
      dropSql,
    ]) {
      const steps = plan(sql).filter((step) => /^(SEARCH|SCAN (?!CONSTANT ROW|json_each))/.test(step))
      expect(steps.length).toBeGreaterThan(0)
      expect(steps.filter((step) => step.startsWith('SCAN'))).toEqual([])
    }
  })

  test('[SRV2] what is erased: calls of a side, and webhooks of an endpoint', () => {
    for (const side of ['caller', 'callee'] as const) {
      const where = `${side}_user_id=? AND ${side}_role=? AND product=?`
      expect(plan(callsSql(side))).toEqual([
        `SEARCH calls USING INDEX calls_by_${side} (${where} AND (started_at,call_uuid)>(?,?))`,
      ])
    }
    expect(plan(callsSql('transferrer'))).toEqual([
      'SEARCH calls USING INDEX calls_by_transferrer (<expr>=? AND <expr>=? AND product=? AND (started_at,call_uuid)>(?,?))',
    ])
    const part =
      'SEARCH webhook_deliveries USING INDEX webhook_deliveries_by_status (endpoint_id=? AND status=? AND id>?)'
    expect(plan(keptHooksSql).filter((step) => /SEARCH|SCAN|B-TREE/.test(step))).toEqual([part, part, part])
  })

  test('[GROUP1] groups: one with its members, a page of a product, those of a member', () => {
    const steps = [groupSql, groupsSql, groupsOfSql].flatMap(plan).filter((step) => /SEARCH|SCAN|B-TREE/.test(step))
    const key = 'PRIMARY KEY (product=? AND role=? AND'
    expect(steps).toEqual([
      `SEARCH g USING ${key} name=?)`,
      `SEARCH m USING ${key} group_name=?) LEFT-JOIN`,
      'SEARCH g USING PRIMARY KEY (product=? AND (role,name)>(?,?))',
      `SEARCH m USING ${key} group_name=?)`,
      'SEARCH call_group_members USING COVERING INDEX groups_of_member (product=? AND role=? AND user_id=? AND group_name>?)',
    ])
  })

  test('[ADM3] the audit log: all of it, of a product, about a participant', () => {
    const steps = [auditSql, auditOfProductSql, auditAboutSql].flatMap(plan)
    expect(steps.filter((step) => /SEARCH|SCAN|B-TREE/.test(step))).toEqual([
      'SEARCH audit USING PRIMARY KEY (id<?)',
      'SEARCH audit USING INDEX audit_of_product (product=? AND id<?)',
      'SEARCH audit USING INDEX audit_of_participant (product=? AND role=? AND user_id=? AND id<?)',
    ])
  })

  test('[HOOK3] webhooks: what is due at an endpoint, what stands before it in its call, lists, what is old enough', () => {
    const search = (index: string, where: string) => `SEARCH ${index} (${where})`
    const steps = plan(claimSql).filter((step) => /SEARCH|SCAN|B-TREE/.test(step))
    expect(steps).toEqual([
      search('webhook_deliveries USING INDEX webhook_deliveries_due', 'endpoint_id=? AND due_at<?'),
      'SCAN one',
      search('older USING COVERING INDEX webhook_deliveries_order', 'endpoint_id=? AND subject=? AND version<?'),
    ])
    // From endpoint to endpoint, one step each.
    const due = plan(dueSql).filter((step) => /webhook_deliveries|one/.test(step))
    expect(due).toEqual([
      search('webhook_deliveries USING COVERING INDEX webhook_deliveries_due', 'endpoint_id>?'),
      search('webhook_deliveries USING COVERING INDEX webhook_deliveries_due', 'endpoint_id>?'),
      search('one USING COVERING INDEX webhook_deliveries_due', 'endpoint_id=? AND due_at<?'),
    ])
    const stuck = plan(stuckSql).filter((step) => /SEARCH (?:webhook_deliveries|d|e) /.test(step))
    expect(stuck).toEqual([
      search('webhook_deliveries USING COVERING INDEX webhook_deliveries_due', 'endpoint_id>?'),
      search('webhook_deliveries USING COVERING INDEX webhook_deliveries_due', 'endpoint_id>?'),
      `${search('e USING INDEX sqlite_autoindex_webhook_endpoints_1', 'id=?')} LEFT-JOIN`,
      `${search('d USING INDEX sqlite_autoindex_webhook_deliveries_1', 'id=?')} LEFT-JOIN`,
      search('webhook_deliveries USING INDEX webhook_deliveries_by_status', 'endpoint_id=? AND status=?'),
    ])
    expect(plan(changedSql).filter((step) => /webhook_endpoints/.test(step))).toEqual([
      search('webhook_endpoints USING INDEX webhook_endpoints_in_order', '(revision,id)>(?,?)'),
    ])
    expect(plan(followSql)).toEqual([
      search('webhook_deliveries USING INDEX sqlite_autoindex_webhook_deliveries_1', 'id=?'),
      search('webhook_deliveries USING INDEX webhook_deliveries_order', 'endpoint_id=? AND subject=? AND version>?'),
    ])
    // What stands before it is looked at twice: to choose it, and to write it.
    const head = search('older USING INDEX webhook_deliveries_order', 'endpoint_id=? AND subject=? AND version<?')
    expect(plan(putOffSql).filter((step) => /^SEARCH|B-TREE/.test(step))).toEqual([
      search('webhook_deliveries USING INDEX webhook_deliveries_due', 'endpoint_id=? AND due_at<?'),
      head,
      search('webhook_deliveries USING COVERING INDEX sqlite_autoindex_webhook_deliveries_1', 'id=?'),
      head,
    ])
    const listed = search(
      'webhook_deliveries USING INDEX webhook_deliveries_by_status',
      'endpoint_id=? AND status=? AND id<?',
    )
    expect(plan(deliveriesSql('failed'))).toEqual([listed])
    expect(plan(deliveriesSql()).filter((step) => /SEARCH|SCAN|B-TREE/.test(step))).toEqual([listed, listed, listed])
    for (const sql of [pruneSql, pruneLeftSql, dropHooksSql, forgetRemovalsSql])
      expect(plan(sql).filter((step) => /^SCAN (?!webhook_removals|\(subquery)/.test(step))).toEqual([])
  })

  test('[SRV2] lists: along one index in its order, a participant along three', () => {
    for (const sqlOf of [listSql, edgeSql]) {
      for (const [along, indexes] of [
        ['product', ['calls_by_start']],
        ['live', ['live_calls_by_start']],
        ['participant', ['calls_by_caller', 'calls_by_callee', 'calls_by_uuid']],
      ] as const) {
        const steps = plan(sqlOf(along))
        const range = (index: string) => `INDEX ${index} (`
        const searches = steps.filter((step) => step.startsWith('SEARCH calls'))
        expect(searches).toEqual(indexes.map((index) => expect.stringContaining(range(index))))
        for (const step of searches.filter((step) => step !== byUuid))
          expect(step).toContain('product=? AND (started_at,call_uuid)>(?,?)')
        // The only scan is over the page that was found.
        const isPage = steps[0] === 'CO-ROUTINE calls'
        expect(steps.filter((step) => /^SCAN|TEMP B-TREE/.test(step))).toEqual(isPage ? ['SCAN calls'] : [])
      }
    }
    expect(plan(beginningSql)).toEqual([
      'SEARCH calls USING COVERING INDEX calls_by_uuid (call_uuid>? AND call_uuid<?)',
    ])
    expect(plan(seenSql)[0]).toBe('SEARCH calls USING INDEX calls_by_uuid (call_uuid=? AND product=?)')
  })

  test('load, live calls, calls that ended since, steps after a version', () => {
    expect(plan(loadSql)).toEqual(['SEARCH calls USING INDEX calls_by_uuid (call_uuid=? AND product=?)'])
    expect(plan(liveSql)).toEqual(['SEARCH calls USING INDEX calls_by_end (ended_at=? AND rowid>?)'])
    expect(plan(oldestSql)).toEqual(['SEARCH calls USING COVERING INDEX calls_by_end (ended_at<?)'])
    expect(plan(stepsAfterSql)).toEqual([
      'SEARCH call_events USING INDEX call_events_by_call (call_id=? AND version>?)',
    ])
    expect(plan(overPageSql)).toEqual([
      'SEARCH calls USING INDEX calls_by_end (ended_at>?)',
      'SEARCH call_events USING INDEX call_events_by_call (call_id=? AND version=?)',
    ])
  })
})
