import type { Clock } from '../ports/clock.ts'

/** The time of this machine. */
export function createSystemClock(): Clock {
  return { now: () => Date.now(), monotonic: () => performance.now() }
}
