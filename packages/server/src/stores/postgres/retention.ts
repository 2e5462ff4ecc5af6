import type { RetentionOptions } from '../sql/retention.ts'
import type { Connections } from './connections.ts'

/** A node's own clock may be wrong: what is young by the database's stays. */
export const pruneSql = 'SELECT prune_calls($1::float8, $2::float8, $3::int, $4::int) AS count'

export function createRemoval(connections: Pick<Connections, 'run'>, retentionMs: number): RetentionOptions['remove'] {
  return async (before, count, past) => {
    const [row] = await connections.run(pruneSql, [before, retentionMs, count, past], { repeatable: true })
    return row.count
  }
}
