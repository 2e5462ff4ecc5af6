import type { Outage } from '../../call/call.ts'
import type { Clock } from '../../ports/clock.ts'
import { outageMs, type Uptime } from '../../ports/nodes.ts'

const lookMs = 500

export interface LocalUptime extends Uptime {
  /** People can come back from now on: just before the service listens. */
  serve(): void
  stop(): void
}

/**
 * The uptime of a service that consists of this process. From here until it serves nobody can come back; before the end
 * of that time is known, no call ends by it. Once in doubt about its store it asks: `look` resolves when it can be used.
 * No call lasts longer than `keptMs`: what was over before that stops no lost clock any more.
 */
export function createLocalUptime(look: () => Promise<void>, keptMs: number, clock: Clock): LocalUptime {
  /** A lost clock needs every one of its absence, however many they are [END3]. */
  let over: readonly Outage[] = []
  let timer: Timer | undefined
  let isLooking = false
  let isInDoubt = false
  /** When the service was seen whole last, on the monotonic clock. */
  let seenAt = clock.monotonic()

  async function lookAgain(): Promise<void> {
    if (isLooking) return
    isLooking = true
    try {
      if (isInDoubt) {
        isInDoubt = false
        await look()
      }
      seeWhole()
    } catch {
      // The code that needs the store says what is wrong with it.
      isInDoubt = true
    } finally {
      isLooking = false
    }
  }

  function seeWhole(): void {
    const [outage] = outageSince(seenAt, clock.now(), clock)
    if (outage !== undefined) over = [...over.filter(({ to }) => to > outage.to - keptMs), outage]
    seenAt = clock.monotonic()
  }

  return {
    outages() {
      if (timer === undefined) return over
      const current = outageSince(seenAt, Number.POSITIVE_INFINITY, clock)
      return current.length === 0 ? over : [...over, ...current]
    },
    doubt() {
      isInDoubt = true
    },
    serve() {
      seeWhole()
      timer = setInterval(() => void lookAgain(), lookMs)
    },
    stop: () => clearInterval(timer),
  }
}

/** From then on the monotonic clock, where that is an outage by now. */
function outageSince(at: number, to: number, clock: Clock): readonly Outage[] {
  const awayMs = clock.monotonic() - at
  return awayMs > outageMs ? [{ from: clock.now() - awayMs, to }] : []
}
