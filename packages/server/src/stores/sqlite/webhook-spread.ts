import type { Database } from 'bun:sqlite'
import { attempt } from './connection.ts'
import type { HookWrites, SettledRow } from './webhook-writes.ts'

/**
 * Whether commits may have written for endpoints what is not spread yet: after a start they may. One flag, for the commits
 * and the deliveries of one process.
 */
export interface Staged {
  isAny: boolean
}

export type Spread = ReturnType<typeof createSpread>

/** Makes deliveries of what commits wrote for endpoints. */
export function createSpread(db: Database, writes: HookWrites, staged: Staged) {
  /** Spreads under way: what they write is not there yet. */
  let underWay = 0
  const ends = db.query<{ oldest: number | null; newest: number | null }, []>(
    // Each by itself is a look at one end of the table.
    'SELECT (SELECT min(seq) FROM webhook_steps) AS oldest, (SELECT max(seq) FROM webhook_steps) AS newest',
  )

  /**
   * Stores what became of attempts, and spreads in the same commit where it `spreads`: true where more is to be spread. The next
   * one spreads the steps that are committed while this one is under way.
   */
  async function settle(attempted: readonly SettledRow[], spreads: boolean): Promise<boolean> {
    if (spreads) {
      staged.isAny = false
      underWay++
    }
    try {
      const isMore = (await writes.hooks({ type: 'settle', attempted, spreads })) === 1
      staged.isAny ||= isMore
      return isMore
    } catch (error) {
      staged.isAny ||= spreads
      throw error
    } finally {
      if (spreads) underWay--
    }
  }

  /** All that was committed before it was called, and no more: calls go on meanwhile. */
  async function all(): Promise<void> {
    const last = await attempt(() => ends.get()?.newest ?? null)
    if (last === null) return
    for (let isMore = true; isMore; ) {
      isMore = (await settle([], true)) && (await attempt(() => (ends.get()?.oldest ?? last) <= last))
    }
  }

  const isStaged = () => staged.isAny
  return { settle, all, isStaged, mayHaveMore: () => isStaged() || underWay > 0 }
}
