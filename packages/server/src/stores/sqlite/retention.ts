import type { Database } from 'bun:sqlite'
import { dropSql as dropTimelineSql } from './timeline.ts'

/** So few calls at once that no commit waits for them for more than some milliseconds. */
export const mostPruned = 100
/** A step ends with the call that reaches this number of removed rows. One call may have hundreds. */
const mostRows = 1_000

/** The oldest of the calls that ended before an instant. */
export const oldestSql = 'SELECT id FROM calls WHERE ended_at < ? ORDER BY ended_at LIMIT ? OFFSET ?'

/** Removes some calls with their events and timelines in one transaction: `count` at the most, after the first `past`. Answers how many. */
export function createPruning(db: Database): (before: number, count: number, past: number) => number {
  const oldest = db.query<{ id: number }, [number, number, number]>(oldestSql)
  const dropLeft = db.query('DELETE FROM outbox WHERE seq IN (SELECT seq FROM call_events WHERE call_id = ?)')
  const dropEvents = db.query('DELETE FROM call_events WHERE call_id = ?')
  const dropTimeline = db.query(dropTimelineSql)
  const dropCall = db.query('DELETE FROM calls WHERE id = ?')
  const prune = db.transaction((before: number, count: number, past: number) => {
    let calls = 0
    let rows = 0
    for (const { id } of oldest.all(before, count, past)) {
      dropLeft.run(id)
      rows += dropEvents.run(id).changes + dropTimeline.run(id).changes + 1
      dropCall.run(id)
      calls++
      if (rows >= mostRows) break
    }
    return calls
  })
  return (before, count, past) => prune.immediate(before, count, past)
}
