import type { Outage } from '../call/call.ts'
import type { Clock } from '../ports/clock.ts'
import { mostOutages, outageMs, type Uptime } from '../ports/nodes.ts'

const lookMs = 500

export interface LocalUptime extends Uptime {
  start(): void
  stop(): void
}

/** The uptime of a service that is this process alone. Once in doubt about its store it asks: `look` resolves when it can be used. */
export function createLocalUptime(look: () => Promise<void>, clock: Clock): LocalUptime {
  const over: Outage[] = []
  let timer: Timer | undefined
  let isLooking = false
  let isInDoubt = false
  /** When the service was seen whole last, on the monotonic clock. */
  let seenAt = clock.monotonic()

  /** Since then, where that is an outage by now. */
  function current(to: number): readonly Outage[] {
    const awayMs = clock.monotonic() - seenAt
    return awayMs > outageMs ? [{ from: clock.now() - awayMs, to }] : []
  }

  async function lookAgain(): Promise<void> {
    if (isLooking) return
    isLooking = true
    try {
      if (isInDoubt) {
        isInDoubt = false
        await look()
      }
      over.push(...current(clock.now()))
      if (over.length > mostOutages) over.shift()
      seenAt = clock.monotonic()
    } catch {
      // Whoever needs the store says what is wrong with it.
      isInDoubt = true
    } finally {
      isLooking = false
    }
  }

  return {
    outages: () => [...over, ...current(Number.POSITIVE_INFINITY)],
    doubt() {
      isInDoubt = true
    },
    start() {
      seenAt = clock.monotonic()
      timer = setInterval(() => void lookAgain(), lookMs)
    },
    stop: () => clearInterval(timer),
  }
}
