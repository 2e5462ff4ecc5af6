/** A process that did nothing for this time stood still: stopped, swapped out, on a paused machine. In ms. */
const stallMs = 3_000

export interface StallWatch {
  /**
   * Called before anything is read from a client: what comes first after a stall may come before any timer. Answers the
   * time: its callers need it, and a look at the clock for each message shows in measurements.
   */
  look(): number
}

/** Notices that the process stood still. To be looked at more often than every 3 s. */
export function createStallWatch(now: () => number, onStall: () => void): StallWatch {
  let lookedAt = now()
  return {
    look() {
      const at = now()
      if (at - lookedAt >= stallMs) onStall()
      lookedAt = at
      return at
    },
  }
}
