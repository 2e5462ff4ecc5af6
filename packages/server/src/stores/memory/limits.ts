import type { Budget, Counter, Counters } from '../../limits/counters.port.ts'

/** Enough to count everybody on one node; over it the oldest window is forgotten, so memory has a bound. */
const maxSubjects = 50_000

/** The same port, with every answer at once. */
export interface MemoryCounters extends Counters {
  counter(name: string, budget: Budget): MemoryCounter
}

/** Counts only for this process. */
export function createMemoryCounters(options: { readonly maxSubjects?: number } = {}): MemoryCounters {
  return { counter: (_name, budget) => createMemoryCounter(budget, options.maxSubjects ?? maxSubjects) }
}

export interface MemoryCounter extends Counter {
  consume(subject: string): number
  refund(subject: string): void
  /** How many subjects are counted right now. */
  size(): number
}

export function createMemoryCounter(budget: Budget, bound: number): MemoryCounter {
  /** All windows last equally long, so the order of insertion is the order of their ends. */
  const windows = new Map<string, { count: number; readonly end: number }>()

  function forgetOver(now: number): void {
    for (const [oldest, { end }] of windows) {
      if (end > now) break
      windows.delete(oldest)
    }
  }

  return {
    consume(subject) {
      const now = performance.now()
      forgetOver(now)
      const window = windows.get(subject)
      if (window !== undefined) {
        if (window.count >= budget.count) return Math.max(1, Math.ceil(window.end - now))
        window.count++
        return 0
      }
      if (windows.size >= bound) for (const oldest of windows.keys()) if (windows.delete(oldest)) break
      windows.set(subject, { count: 1, end: now + budget.seconds * 1_000 })
      return 0
    },
    refund(subject) {
      forgetOver(performance.now())
      const window = windows.get(subject)
      if (window !== undefined && window.count > 0) window.count--
    },
    size: () => windows.size,
  }
}
