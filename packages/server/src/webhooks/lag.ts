/** More than this says no more about it: one long pause is not a load. In ms. */
const mostMs = 4
/** How much of what is known a new look replaces. */
const weight = 0.2

export interface Lag {
  /** Asks for a timer of 1 ms, and answers how late such timers are of late, in ms. */
  look(): Promise<number>
}

/** How far the event loop is behind: so late is a timer, because other work is before it. */
export function createLag(): Lag {
  let lag = 0
  return {
    async look() {
      const askedAt = performance.now()
      await Bun.sleep(1)
      lag += weight * (Math.min(performance.now() - askedAt - 1, mostMs) - lag)
      return lag
    },
  }
}
