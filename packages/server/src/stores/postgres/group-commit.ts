import { StoreError } from '../../ports/store-error.ts'
import { commitSql, encodeBatch, encodeHooks, hookedCommitSql, rowsOf, type Write } from './batch.ts'
import type { Connections, Row } from './connections.ts'

/** Figures since the start, for metrics and tests. */
export interface CommitCounts {
  readonly commits: number
  readonly transitions: number
}

export interface GroupCommit {
  /**
   * The rows of the steps in the outbox where the transition is committed, undefined where a guard failed and nothing was
   * written. At the deadline, on the clock of performance.now(), nobody waits any more: what has been sent by then is of
   * unknown outcome.
   */
  commit(write: Write, deadline: number): Promise<readonly number[] | undefined>
  readonly counts: CommitCounts
}

/** A batch stays well within the time limit, and its locks within those of the server. */
const maxBatch = 200
/** Where PostgreSQL ended a transaction for the sake of others (deadlock, serialization), it is sent again so often. */
const maxRepeats = 3

interface Waiting {
  readonly write: Write
  resolve(rows: readonly number[] | undefined): void
  reject(error: Error): void
}

/**
 * Commits transitions over a few connections. One is sent at once where a connection is free; what comes meanwhile goes
 * together with the next one, in one statement. No two transitions of a batch touch the same call or participant.
 */
export function createGroupCommit(connections: Connections): GroupCommit {
  /** In the order of arrival. */
  const queue = new Set<Waiting>()
  const counts = { commits: 0, transitions: 0 }

  function send(): void {
    while (queue.size > 0 && connections.free > 0) void commitBatch(takeBatch())
  }

  /** In the order of arrival; what meets a row of an earlier one waits for the next batch. */
  function takeBatch(): Waiting[] {
    const batch: Waiting[] = []
    const keys = new Set<string>()
    for (const waiting of queue) {
      if (batch.length === maxBatch) break
      if (!waiting.write.keys.some((key) => keys.has(key))) batch.push(waiting)
      for (const key of waiting.write.keys) keys.add(key)
    }
    for (const waiting of batch) queue.delete(waiting)
    return batch
  }

  async function commitBatch(batch: readonly Waiting[]): Promise<void> {
    try {
      const rows = await write(batch)
      counts.commits++
      counts.transitions += batch.length
      for (const [t, { resolve }] of batch.entries()) resolve(rows[t])
    } catch (error) {
      // A value that PostgreSQL refuses: the other transitions of the batch do not suffer from it.
      if (!(error instanceof StoreError) && batch.length > 1) for (const one of batch) void commitBatch([one])
      else for (const { reject } of batch) reject(error as Error)
    } finally {
      send()
    }
  }

  async function write(batch: readonly Waiting[]): Promise<(readonly number[] | undefined)[]> {
    const writes = batch.map((waiting) => waiting.write)
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
  }

  return {
    async commit(write, deadline) {
      const { promise, resolve, reject } = Promise.withResolvers<readonly number[] | undefined>()
      const giveUp = () => {
        const isQueued = queue.delete(waiting)
        reject(new StoreError(isQueued ? 'unavailable' : 'unknown', 'The commit took too long.'))
      }
      const timer = setTimeout(giveUp, Math.max(1, deadline - performance.now()))
      const waiting: Waiting = { write, resolve, reject }
      queue.add(waiting)
      send()
      try {
        return await promise
      } finally {
        clearTimeout(timer)
      }
    },
    get counts() {
      return { ...counts }
    },
  }
}

function isRolledBack(error: unknown): boolean {
  const cause = error instanceof StoreError ? (error.cause as { errno?: unknown } | undefined) : undefined
  return String(cause?.errno).startsWith('40')
}
