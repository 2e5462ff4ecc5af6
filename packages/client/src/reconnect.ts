import type { Environment } from './environment.ts'

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
/** An attempt that came this far counts as a stable connection: the pauses begin anew. */
const stableMs = 10_000
/** The network that comes and goes brings an attempt at most this often. */
const wakeIntervalMs = 1_000

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
export function readJitterHint(reason = ''): number {
  return Number(/\bjitter_ms=(\d{1,9})\b/.exec(reason)?.[1] ?? 0)
}

/** The pauses between the attempts of one connection. `run` begins an attempt. */
export function createPauses(env: Environment, bounds: PauseBounds, run: () => void) {
  /** Since the last stable connection. */
  let failures = 0
  let onlineSince = Number.POSITIVE_INFINITY
  let lastAttempt = 0
  let isAsked = false
  let endTimer: () => void = () => {}

  return {
    /** An attempt begins. Gives its number, which counts from 1 since the last stable connection. */
    begin(): number {
      endTimer()
      lastAttempt = env.now()
      return failures + 1
    },
    online(): void {
      onlineSince = env.now()
    },
    /** The attempt has failed, or its connection is lost. Gives when the next one begins. */
    start(hints: PauseHints): { readonly attempt: number; readonly retryAt: number } {
      const now = env.now()
      if (now - onlineSince >= stableMs) failures = 0
      onlineSince = Number.POSITIVE_INFINITY
      const pause = pauseBefore(++failures, hints, bounds, env.random())
      isAsked = pause.isAsked
      endTimer = env.after(pause.ms, run)
      return { attempt: failures, retryAt: now + pause.ms }
    },
    /** There is no need to wait, unless the service asked for it. */
    hurry(): void {
      if (!isAsked && env.now() - lastAttempt >= wakeIntervalMs) run()
    },
    /** For good. */
    reset(): void {
      endTimer()
      failures = 0
    },
  }
}

export type Pauses = ReturnType<typeof createPauses>
