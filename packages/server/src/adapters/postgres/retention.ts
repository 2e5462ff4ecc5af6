import type { Connections } from './connections.ts'
import { lockCallsSql } from './erasure.ts'

/** A batch holds its locks for a few milliseconds. */
const batchSize = 500

/** A node's own clock may be wrong: what is young by the database's stays. */
export const oldestSql = `
  SELECT id::float8 AS id FROM calls
  WHERE ended_at < least($1::float8, extract(epoch FROM clock_timestamp())::float8 * 1000 - $3::float8)::bigint
  ORDER BY ended_at LIMIT $2::int`
/** Events go with their call, and so does its timeline. */
export const pruneSql = (ids: readonly number[]) => `
  WITH gone AS (
    DELETE FROM calls WHERE id = ANY ('{${ids}}'::bigint[]) RETURNING product, call_uuid
  ), timelines AS (
    DELETE FROM call_timeline AS t USING gone WHERE t.product = gone.product AND t.call_uuid = gone.call_uuid
  ) SELECT 1 FROM gone`

/** Removes the oldest of the calls that ended before an instant; answers how many. */
export function createRemoval(
  connections: Pick<Connections, 'run'>,
  retentionMs: number,
): (before: number) => Promise<number> {
  const repeatable = { repeatable: true }
  return async (before) => {
    for (;;) {
      const found: { id: number }[] = await connections.run(oldestSql, [before, batchSize, retentionMs], repeatable)
      const ids = found.map(({ id }) => id)
      if (ids.length === 0) return 0
      // Without parameters, both are one transaction.
      const both = `${lockCallsSql(ids)};${pruneSql(ids)}`
      const [, gone]: unknown[][] = await connections.run(both, [], repeatable)
      // Another node may have been faster: these are gone, and there may be more.
      if (gone !== undefined && gone.length > 0) return gone.length
    }
  }
}
