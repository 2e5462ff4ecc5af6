import type { Database } from 'bun:sqlite'
import { dropSql as dropTimelineSql } from './timeline.ts'

/** So few that no commit waits for them for more than some milliseconds. */
const batchSize = 100

/** The oldest of the calls that ended before an instant. */
export const oldestSql = 'SELECT id FROM calls WHERE ended_at < ? ORDER BY ended_at LIMIT ?'

/** Removes some calls with their events and timelines in one transaction; answers how many calls. */
export function createPruning(db: Database): (before: number) => number {
  const oldest = db.query<{ id: number }, [number, number]>(oldestSql)
  const dropLeft = db.query('DELETE FROM outbox WHERE seq IN (SELECT seq FROM call_events WHERE call_id = ?)')
  const dropEvents = db.query('DELETE FROM call_events WHERE call_id = ?')
  const dropTimeline = db.query(dropTimelineSql)
  const dropCall = db.query('DELETE FROM calls WHERE id = ?')
  const prune = db.transaction((before: number) => {
    const ids = oldest.all(before, batchSize)
    for (const { id } of ids) {
      dropLeft.run(id)
      dropEvents.run(id)
      dropTimeline.run(id)
      dropCall.run(id)
    }
    return ids.length
  })
  return (before) => prune.immediate(before)
}
