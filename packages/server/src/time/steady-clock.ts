import type { Clock } from '../ports/clock.ts'

/** A wall clock that is this far from where the monotonic one expects it has jumped, in ms. */
const jumpMs = 1_000

/**
 * The clock of the calls: it shows wall-clock time and runs at the monotonic clock's pace. A jump of the wall clock
 * (NTP, a suspended machine, a hand) does not show until `follow`, so that no ring or lost place ends because of it.
 */
export interface SteadyClock {
  now(): number
  /** Monotonic, ms. */
  monotonic(): number
  /** By how many ms the wall clock jumped; 0 while it did not. */
  jumped(): number
  /** Takes the wall clock's time over from now on. */
  follow(): void
}

export function createSteadyClock(clock: Clock): SteadyClock {
  let wall = clock.now()
  let monotonic = clock.monotonic()
  const now = () => Math.round(wall + clock.monotonic() - monotonic)
  return {
    now,
    monotonic: () => clock.monotonic(),
    jumped() {
      const difference = clock.now() - now()
      return Math.abs(difference) > jumpMs ? difference : 0
    },
    follow() {
      wall = clock.now()
      monotonic = clock.monotonic()
    },
  }
}
