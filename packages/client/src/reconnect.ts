/** Milliseconds. */
export interface PauseBounds {
  readonly baseMs: number
  readonly maxMs: number
}

/** The service's words about coming back. */
export interface PauseHints {
  /** It restarts: come back at any time within this. */
  readonly jitterMs?: number | undefined
  /** It is too much: not before this. */
  readonly retryAfterMs?: number | undefined
}

export interface Pause {
  readonly ms: number
  /** The service asked for it: a network that comes back does not shorten it. */
  readonly isAsked: boolean
}

/** No hint makes a client stay away for longer than this. */
const maxHintMs = 300_000

/**
 * The pause before the next attempt, after `failures` of them since the last stable connection (1 is the first). Full
 * jitter: anywhere from nothing to the bound, so that those who lost the same service do not come back in step.
 */
export function pauseBefore(failures: number, hints: PauseHints, bounds: PauseBounds, random: number): Pause {
  const bound = Math.min(bounds.maxMs, bounds.baseMs * 2 ** Math.min(failures - 1, 30))
  const floor = Math.min(hints.retryAfterMs ?? 0, maxHintMs)
  const spread = Math.max(bound, Math.min(hints.jitterMs ?? 0, maxHintMs))
  return { ms: floor + random * spread, isAsked: floor > 0 || spread > bound }
}

/** The reason of close code 1012 is `restart, jitter_ms=N` [CLOSE]. */
export function readJitterHint(reason: string): number {
  return Number(/\bjitter_ms=(\d{1,9})\b/.exec(reason)?.[1] ?? 0)
}
