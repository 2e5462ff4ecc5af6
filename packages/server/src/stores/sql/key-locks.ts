/** Locks by name inside this process. Those who wait get the lock in the order of asking. */
export interface KeyLocks {
  /** Takes the lock where it is free. */
  take(key: string): boolean
  acquire(key: string): Promise<void>
  release(key: string): void
}

export function createKeyLocks(): KeyLocks {
  const waiting = new Map<string, (() => void)[] | null>()

  function take(key: string): boolean {
    if (waiting.has(key)) return false
    waiting.set(key, null)
    return true
  }

  return {
    take,
    acquire(key) {
      if (take(key)) return Promise.resolve()
      return new Promise((resolve) => {
        const queue = waiting.get(key)
        if (queue) queue.push(resolve)
        else waiting.set(key, [resolve])
      })
    },
    // The lock goes to the next one directly: nobody gets in between.
    release(key) {
      const next = waiting.get(key)?.shift()
      if (next === undefined) waiting.delete(key)
      else next()
    },
  }
}
