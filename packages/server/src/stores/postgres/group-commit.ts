import type { Timers } from '../../ports/clock.ts'
import { StoreError } from '../../ports/store-error.ts'

/** Figures since the start, for metrics and tests. */
export interface CommitCounts {
  readonly commits: number
  readonly transitions: number
}

/** A transition on its way to the database. */
export interface Transition {
  /** The keys that it locks there: no two of a batch have one in common. */
  readonly keys: readonly string[]
}

/** Where batches go. */
export interface Writers<W extends Transition> {
  /** How many batches can be sent at once. */
  readonly free: number
  /** Of each transition the rows of its steps in the outbox; undefined where its guard failed. */
  write(batch: readonly W[]): Promise<readonly (readonly number[] | undefined)[]>
}

export interface GroupCommit<W extends Transition> {
  /**
   * The rows of the steps in the outbox where the transition is committed, undefined where a guard failed and nothing was
   * written. At the deadline, on the clock of its timers, nobody waits any more: what has been sent by then is of
   * unknown outcome.
   */
  commit(write: W, deadline: number): Promise<readonly number[] | undefined>
  readonly counts: CommitCounts
}

/** A batch stays well within the time limit, and its locks within those of the server. */
const maxBatch = 200

const machine: Pick<Timers, 'after' | 'monotonic'> = {
  monotonic: () => performance.now(),
  after(ms, what) {
    const timer = setTimeout(what, ms)
    return () => clearTimeout(timer)
  },
}

interface Waiting<W> {
  readonly write: W
  resolve(rows: readonly number[] | undefined): void
  reject(error: Error): void
}

/**
 * Commits transitions over a few connections. One is sent at once where a connection is free; what comes meanwhile goes
 * together with the next one, in one statement. No two transitions of a batch touch the same call or participant.
 */
export function createGroupCommit<W extends Transition>(writers: Writers<W>, timers = machine): GroupCommit<W> {
  /** In the order of arrival. */
  const queue = new Set<Waiting<W>>()
  const counts = { commits: 0, transitions: 0 }

  function send(): void {
    while (queue.size > 0 && writers.free > 0) void commitBatch(takeBatch())
  }

  /** In the order of arrival; what meets a row of an earlier one waits for the next batch. */
  function takeBatch(): Waiting<W>[] {
    const batch: Waiting<W>[] = []
    const keys = new Set<string>()
    for (const waiting of queue) {
      if (batch.length === maxBatch) break
      if (!waiting.write.keys.some((key) => keys.has(key))) batch.push(waiting)
      for (const key of waiting.write.keys) keys.add(key)
    }
    for (const waiting of batch) queue.delete(waiting)
    return batch
  }

  async function commitBatch(batch: readonly Waiting<W>[]): Promise<void> {
    try {
      const rows = await writers.write(batch.map((waiting) => waiting.write))
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

  return {
    async commit(write, deadline) {
      const { promise, resolve, reject } = Promise.withResolvers<readonly number[] | undefined>()
      const giveUp = () => {
        const isQueued = queue.delete(waiting)
        reject(new StoreError(isQueued ? 'unavailable' : 'unknown', 'The commit took too long.'))
      }
      const cancel = timers.after(Math.max(1, deadline - timers.monotonic()), giveUp)
      const waiting: Waiting<W> = { write, resolve, reject }
      queue.add(waiting)
      send()
      try {
        return await promise
      } finally {
        cancel()
      }
    },
    get counts() {
      return { ...counts }
    },
  }
}
