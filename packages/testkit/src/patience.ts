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
