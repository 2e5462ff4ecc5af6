import type { Outage } from '../call/call.ts'
import type { Clock } from '../ports/clock.ts'
import { outageMs, type Uptime } from '../ports/nodes.ts'

const lookMs = 500
/** Twice as long as a call may last, as shipped: what was over before that stops no lost clock any more, in ms. */
const keptMs = 86_400_000

export interface LocalUptime extends Uptime {
  start(): void
  stop(): void
}

export interface StartUptime extends Uptime {
  /** People can come back from now on: just before the service listens. */
  serve(): void
}

/** The uptime of a service that is this process alone. Once in doubt about its store it asks: `look` resolves when it can be used. */
export function createLocalUptime(look: () => Promise<void>, clock: Clock): LocalUptime {
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
      const [outage] = outageSince(seenAt, clock.now(), clock)
      if (outage !== undefined) over = [...over.filter(({ to }) => to > outage.to - keptMs), outage]
      seenAt = clock.monotonic()
    } catch {
      // Whoever needs the store says what is wrong with it.
      isInDoubt = true
    } finally {
      isLooking = false
    }
  }

  return {
    outages() {
      const current = outageSince(seenAt, Number.POSITIVE_INFINITY, clock)
      return current.length === 0 ? over : [...over, ...current]
    },
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

/**
 * Adds what no store knows: until the service listens nobody can come back. Where no other node serves that is an outage,
 * from when this was created until `serve` [END3]. Before its end is known, nobody's end is told by it.
 */
export function createStartUptime(uptime: Uptime, isAlone: boolean, clock: Clock): StartUptime {
  const startedAt = clock.monotonic()
  let start: Outage | undefined
  return {
    outages: () => (start === undefined ? uptime.outages() : joined(uptime.outages(), start)),
    doubt: uptime.doubt,
    serve() {
      if (isAlone) start ??= outageSince(startedAt, clock.now(), clock)[0]
    },
  }
}

/** From then on the monotonic clock, where that is an outage by now. */
function outageSince(at: number, to: number, clock: Clock): readonly Outage[] {
  const awayMs = clock.monotonic() - at
  return awayMs > outageMs ? [{ from: clock.now() - awayMs, to }] : []
}

/** In their order, and one with all that it touches. */
function joined(outages: readonly Outage[], one: Outage): readonly Outage[] {
  const before = outages.filter(({ to }) => to < one.from)
  const after = outages.filter(({ from }) => from > one.to)
  const touched = [...outages.filter(({ from, to }) => to >= one.from && from <= one.to), one]
  const from = Math.min(...touched.map((outage) => outage.from))
  const to = Math.max(...touched.map((outage) => outage.to))
  return [...before, { from, to }, ...after]
}
