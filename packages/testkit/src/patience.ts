import { availableParallelism, loadavg } from 'node:os'

/** How many processes want to run for each core; 1 where a core is free. */
export function busyness(): number {
  return Math.max(1, (loadavg()[0] ?? 0) / availableParallelism())
}

/**
 * A bound for something that has to be soon, in whole ms: as it is where a core is free, and longer by as many times as more
 * processes want to run than there are cores. Whoever waits for a core waits longer, and that is nobody's fault.
 */
export function soon(ms: number): number {
  return Math.ceil(ms * busyness())
}

/** Between two looks, in ms: close together at first, and rarer for what takes its time. */
const firstPauseMs = 2
const longestPauseMs = 50

/**
 * Resolves when something is so that nobody tells of. The time in ms is a bound for failures, `soon()` of it, never a pace:
 * where what is awaited can be told of (a message, a line of a log), await that.
 */
export async function until(what: string, isSo: () => unknown, ms = 45_000): Promise<void> {
  const begin = performance.now()
  for (let pauseMs = firstPauseMs; !(await isSo()); pauseMs = Math.min(pauseMs * 1.5, longestPauseMs)) {
    if (performance.now() - begin > soon(ms)) throw new Error(`waited ${ms} ms until ${what}`)
    await new Promise((resolve) => setTimeout(resolve, pauseMs))
  }
}
