import type { Clock } from '../../ports.ts'
import type { Connections } from './connections.ts'

/** A batch holds its locks for a few milliseconds. */
const batchSize = 500
const pauseMs = 50
const intervalMs = 10 * 60_000

/**
 * Rows that another node is just removing are left to it. Events go with their call. A node's own clock may be wrong: what
 * is young by the database's stays.
 */
export const pruneSql = `
  DELETE FROM calls WHERE id IN (
    SELECT id FROM calls
    WHERE ended_at < least($1::float8, extract(epoch FROM clock_timestamp())::float8 * 1000 - $3::float8)::bigint
    ORDER BY ended_at LIMIT $2::int FOR UPDATE SKIP LOCKED
  ) RETURNING 1`

export interface Retention {
  /** Removes all calls that ended before an instant, a batch at a time; answers how many. */
  prune(before: number): Promise<number>
  start(): void
  stop(): void
}

export interface RetentionOptions {
  readonly connections: Connections
  readonly clock: Pick<Clock, 'now'>
  /** How long calls are kept after their end. */
  readonly retentionMs: number
  readonly onError: (error: unknown) => void
}

/** Removes calls that are older than anybody wants to keep them. Every node does it, at its own pace. */
export function createRetention({ connections, clock, retentionMs, onError }: RetentionOptions): Retention {
  let timer: ReturnType<typeof setTimeout> | undefined
  let stopped = false

  async function prune(before: number): Promise<number> {
    let removed = 0
    while (!stopped) {
      const rows = await connections.run(pruneSql, [before, batchSize, retentionMs], { repeatable: true })
      removed += rows.length
      if (rows.length < batchSize) break
      await Bun.sleep(pauseMs)
    }
    return removed
  }

  async function turn(): Promise<void> {
    try {
      await prune(clock.now() - retentionMs)
    } catch (error) {
      onError(error)
    }
    if (!stopped) timer = setTimeout(turn, intervalMs)
  }

  return {
    prune,
    start: () => void turn(),
    stop() {
      stopped = true
      clearTimeout(timer)
    },
  }
}
