import type { Outbox as OutboxStore } from '../ports/outbox.ts'

/** The most that are removed at a time, and no later than at the next sweep. */
const removalSize = 500

/** Rows of the outbox whose steps have reached everybody. They are removed together, later. */
export function createRemovals(store: Pick<OutboxStore, 'remove'>, onError: (error: unknown) => void) {
  let done: number[] = []
  let removing: Promise<void> | undefined

  /** One removal at a time. A failed removal is tried again. */
  function remove(): Promise<void> {
    removing ??= removeAll().finally(() => {
      removing = undefined
    })
    return removing
  }

  async function removeAll(): Promise<void> {
    while (done.length > 0) {
      const rows = done.slice(0, removalSize)
      await store.remove(rows)
      done = done.slice(rows.length)
    }
  }

  return {
    remove,
    has: (row: number): boolean => done.includes(row),
    /** They wait for the next removal. */
    add(rows: readonly number[]): void {
      done.push(...rows)
    },
    /** The same, and many of them are removed at once. */
    note(rows: readonly number[]): void {
      done.push(...rows)
      if (done.length >= removalSize) remove().catch(onError)
    },
  }
}
