import type { TimelineRow } from '../call/observed.ts'
import { StoreError } from '../ports/store-error.ts'
import type { TimelineStore } from '../ports/timeline.ts'

/** The most entries that wait for the store. If more come while it is away, they are dropped. */
export const mostWaiting = 10_000
const batchSize = 500

/** Entries that wait for the store. While it is away they stay, as many as there is room for. */
export function createWriteBehind(store: Pick<TimelineStore, 'add'>) {
  const waiting = new Map<string, TimelineRow>()
  let dropped = 0
  let writing: Promise<void> | undefined
  let next: Promise<void> | undefined

  function put(row: TimelineRow): void {
    const name = row.id
    if (waiting.size >= mostWaiting && !waiting.has(name)) dropped++
    else waiting.set(name, row)
  }

  /**
   * Writes the entries that wait when it begins, one batch after another. A replacement of an entry under way is in the
   * next round.
   */
  async function writeWaiting(): Promise<void> {
    for (let left = waiting.size; left > 0; left -= batchSize) {
      const batch = [...waiting.values()].slice(0, Math.min(batchSize, left))
      for (const { id } of batch) waiting.delete(id)
      try {
        await store.add(batch)
      } catch (error) {
        // Only what the store could not take is worth another try.
        if (error instanceof StoreError) for (const row of batch) if (!waiting.has(row.id)) put(row)
        if (!(error instanceof StoreError)) dropped += batch.length
        throw error
      }
    }
  }

  function begin(): Promise<void> {
    next = undefined
    const round = writeWaiting().finally(() => {
      if (writing === round) writing = undefined
    })
    writing = round
    return round
  }

  /** One round after another; requests during one share the next. */
  function write(): Promise<void> {
    if (writing === undefined && next === undefined) return begin()
    next ??= (writing ?? Promise.resolve()).then(begin, begin)
    return next
  }

  return {
    put,
    write,
    isWriting: () => writing !== undefined,
    /** An entry that its writer does not put. */
    drop: () => void dropped++,
    /** How many entries were not written since the last call of this. */
    takeDropped(): number {
      const count = dropped
      dropped = 0
      return count
    },
  }
}
