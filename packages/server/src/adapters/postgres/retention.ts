import type { Connections } from './connections.ts'

/** A batch holds its locks for a few milliseconds. */
const batchSize = 500

/**
 * Rows that another node is just removing are left to it. Events go with their call, and so does its timeline. A node's own clock may be wrong: what
 * is young by the database's stays.
 */
export const pruneSql = `
  WITH gone AS (
    DELETE FROM calls WHERE id IN (
      SELECT id FROM calls
      WHERE ended_at < least($1::float8, extract(epoch FROM clock_timestamp())::float8 * 1000 - $3::float8)::bigint
      ORDER BY ended_at LIMIT $2::int FOR UPDATE SKIP LOCKED
    ) RETURNING product, call_uuid
  ), timelines AS (
    DELETE FROM call_timeline AS t USING gone WHERE t.product = gone.product AND t.call_uuid = gone.call_uuid
  ) SELECT 1 FROM gone`

/** Removes the oldest of the calls that ended before an instant; answers how many. */
export function createRemoval(connections: Connections, retentionMs: number): (before: number) => Promise<number> {
  return async (before) => {
    const rows = await connections.run(pruneSql, [before, batchSize, retentionMs], { repeatable: true })
    return rows.length
  }
}
