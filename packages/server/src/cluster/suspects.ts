import type { Timers } from '../ports/clock.ts'

/** Nodes that left a question unanswered. */
export interface Suspects {
  /** Suspects a node during the next second. `isKnown`: whether its signs were seen, so that they can be missed. */
  add(node: string, isKnown: () => boolean): void
  names(): readonly string[]
  /**
   * Which of them are dead by a look that was sent at `sentAt`: they were without their signs for long enough. `lost` is
   * undefined if the look proves nothing.
   */
  judge(lost: ReadonlySet<string> | undefined, sentAt: number): readonly string[]
  /** How long to wait before the next look, in ms: no longer than until the one that may decide. */
  pauseMs(): number
}

/** A node has to be without its signs for this time, in ms: it makes a connection that only broke again before that. */
const missingMs = 150
/** How often the signs of suspected nodes are looked for, in ms. */
const lookMs = 50
/** How long one unanswered question is a reason to look, in ms. */
const suspectedMs = 1_000

interface Suspect {
  until: number
  /** When the first look that found no sign had been answered, if every look since has found none either. */
  missingSince: number | undefined
}

export function createSuspects(timers: Pick<Timers, 'monotonic'>): Suspects {
  const suspects = new Map<string, Suspect>()
  return {
    add(node, isKnown) {
      const until = timers.monotonic() + suspectedMs
      const known = suspects.get(node)
      if (known !== undefined) known.until = until
      else if (isKnown()) suspects.set(node, { until, missingSince: undefined })
    },
    names: () => [...suspects.keys()],
    judge(lost, sentAt) {
      const now = timers.monotonic()
      const dead: string[] = []
      for (const [node, suspect] of suspects) {
        if (lost?.has(node) !== true) {
          suspect.missingSince = undefined
          if (now > suspect.until) suspects.delete(node)
        } else if (suspect.missingSince === undefined) suspect.missingSince = now
        else if (sentAt - suspect.missingSince >= missingMs) {
          suspects.delete(node)
          dead.push(node)
        }
      }
      return dead
    },
    pauseMs() {
      const now = timers.monotonic()
      const left = [...suspects.values()].map(({ missingSince = now }) => missingSince + missingMs - now)
      return Math.max(1, Math.min(lookMs, ...left))
    },
  }
}
