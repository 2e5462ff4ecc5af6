import type { Timers } from '../ports/clock.ts'
import { forgetOldest } from '../ports/oldest.ts'

/** The nodes whose processes were found dead, and did not say since that they live. All times are of `timers.monotonic`. */
export interface Deaths {
  /** The process of a node was found dead just now. */
  found(node: string): void
  /** A node said in one of the stores that it lives, no earlier than `at`. Its signs from before its death prove nothing. */
  said(node: string, at: number): void
  has(node: string): boolean
}

const mostDeaths = 1_000

export function createDeaths(timers: Pick<Timers, 'monotonic'>): Deaths {
  const foundAt = new Map<string, number>()
  return {
    found(node) {
      foundAt.set(node, timers.monotonic())
      forgetOldest(foundAt, mostDeaths)
    },
    said(node, at) {
      const diedAt = foundAt.get(node)
      if (diedAt !== undefined && at > diedAt) foundAt.delete(node)
    },
    has: (node) => foundAt.has(node),
  }
}
