import type { CallClock } from '../call/call.ts'
import type { Clock, Jumps } from '../ports/clock.ts'

/** A wall clock that is this far from where the monotonic one expects it has jumped, in ms. */
const jumpMs = 1_000
/** Processes that go by one clock do not measure a jump alike: two of them differ by less than this, in ms. */
const nearMs = 2 * jumpMs

/**
 * The clock of the calls: it shows wall-clock time and runs at the monotonic clock's pace. A jump of the wall clock
 * (NTP, a suspended machine, a hand) does not show until all have agreed on it. From then on instants that were written before
 * it are read as what they are by then, so no ring or lost place ends because of it [END3].
 */
export interface SteadyClock {
  now(): number
  /** Monotonic, ms. */
  monotonic(): number
  /** By how many ms the wall clock jumped since all agreed last; 0 while it did not. */
  jumped(): number
  /** Says by how much the wall clock has jumped, if it has. Rejects with a `StoreError`. */
  follow(): Promise<void>
  /** The clock by which a call that is written now has its deadlines. */
  written(): CallClock
  /** Now, in ms since the epoch, as if the wall clock had never jumped: for time that passes, and is shown to nobody. */
  unjumped(): number
}

export function createSteadyClock(clock: Clock, jumps: Jumps = createOwnJumps()): SteadyClock {
  const { of } = jumps
  let wall = clock.now()
  let monotonic = clock.monotonic()
  let written: CallClock = { of, jumpedMs: jumps.sum() }
  const shown = () => Math.round(wall + clock.monotonic() - monotonic)
  const isNear = (at: number) => Math.abs(clock.now() - at) <= nearMs

  /** All have agreed on a jump. A process that began right after the jump has the right time already. */
  function agree(jumpedMs: number): void {
    const before = shown()
    const after = before + jumpedMs - written.jumpedMs
    wall = isNear(after) || isNear(before) ? clock.now() : after
    monotonic = clock.monotonic()
    written = { of, jumpedMs }
  }

  function current(): CallClock {
    const sum = jumps.sum()
    if (sum !== written.jumpedMs) agree(sum)
    return written
  }

  function now(): number {
    current()
    return shown()
  }

  function jumped(): number {
    const difference = clock.now() - now()
    return Math.abs(difference) > jumpMs ? difference : 0
  }

  return {
    now,
    monotonic: () => clock.monotonic(),
    jumped,
    async follow() {
      const ms = Math.round(jumped())
      if (ms !== 0) await jumps.add(ms, written.jumpedMs)
    },
    written: current,
    unjumped: () => now() - written.jumpedMs,
  }
}

/** Of one process that goes by a clock of its own, under the name `of`. */
export function createOwnJumps(of = ''): Jumps {
  let sum = 0
  return {
    of,
    sum: () => sum,
    async add(ms) {
      sum += ms
    },
  }
}
