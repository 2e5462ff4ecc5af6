import { StoreError } from '../../ports/store-error.ts'
import { commitSql, encodeBatch, encodeHooks, hookedCommitSql, rowsOf, type Write } from './batch.ts'
import type { Connections, Row } from './connections.ts'
import type { Writers } from './group-commit.ts'

/**
 * PostgreSQL may end a transaction for the sake of others (deadlock, serialization). Such a batch is sent again, at most
 * this many times.
 */
const maxRepeats = 3

/** Writes a batch of transitions in one statement. */
export function createWriters(connections: Connections): Writers<Write> {
  return {
    get free() {
      return connections.free
    },
    async write(writes) {
      const hooks = encodeHooks(writes)
      const [sql, values] =
        hooks === null ? [commitSql, encodeBatch(writes)] : [hookedCommitSql, [...encodeBatch(writes), hooks]]
      for (let repeats = 0; ; repeats++) {
        try {
          const rows: Row[] = await connections.run(sql, values, { repeatable: false })
          return rowsOf(writes, rows[0])
        } catch (error) {
          if (repeats === maxRepeats || !isRolledBack(error)) throw error
        }
      }
    },
  }
}

function isRolledBack(error: unknown): boolean {
  const cause = error instanceof StoreError ? (error.cause as { errno?: unknown } | undefined) : undefined
  return String(cause?.errno).startsWith('40')
}
