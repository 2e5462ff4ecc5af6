import type { Database } from 'bun:sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { historySql, liveSql, loadSql, overPageSql, stepsAfterSql } from '../../src/adapters/sqlite/call-reads.ts'
import { openConnection } from '../../src/adapters/sqlite/connection.ts'
import { migrate } from '../../src/adapters/sqlite/migrations.ts'
import { oldestSql } from '../../src/adapters/sqlite/retention.ts'
import { temporaryDataDir } from './sqlite-harness.ts'

/** What SQLite says it will do for each read. */
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

  test('[HIST1] history: two ranges, each in the order of its index, merged', () => {
    const steps = plan(historySql)
    expect(steps.filter((step) => /^SCAN|TEMP B-TREE/.test(step))).toEqual([])
    const searches = steps.filter((step) => step.startsWith('SEARCH'))
    const range = (side: string) =>
      `SEARCH calls USING INDEX calls_by_${side} (${side}_user_id=? AND ${side}_role=? AND product=? AND (started_at,call_uuid)<(?,?))`
    expect(searches).toEqual([range('caller'), range('callee')])
  })

  test('load, live calls, calls that ended since, steps after a version', () => {
    expect(plan(loadSql)).toEqual(['SEARCH calls USING INDEX calls_by_uuid (call_uuid=? AND product=?)'])
    expect(plan(liveSql)).toEqual(['SEARCH calls USING INDEX calls_by_end (ended_at=?)'])
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
