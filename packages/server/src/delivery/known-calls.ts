import { type Call, callKey, isLive } from '../call/call.ts'
import { lateRelayMs } from '../call/decide.ts'

/** The calls that this process knows, and for each the last version that has reached everybody. */
export interface KnownCalls {
  /** As this process saw them last. A call that is over stays for a minute [END1]. If several nodes serve, it may be old. */
  readonly calls: ReadonlyMap<string, Call>
  /** The keys of calls of which something could not be handed on. */
  readonly undelivered: Set<string>
  /** Takes note of a version, if it is newer than what is known. */
  learn(call: Call): void
  /** A known call has reached everybody up to this version. */
  hear(key: string, version: number): void
  /** The last version of a call that has reached everybody; 0 if nothing is known of that. */
  toldOf(key: string): number
  /**
   * Forgets calls that are over for longer than a minute, and those that ended elsewhere: their keys are not among the live
   * ones of two sweeps. Answers the latter.
   */
  sweep(now: number, live: ReadonlySet<string>): readonly Call[]
}

/** `onLearned` hears of every version that was news. */
export function createKnownCalls(onLearned: (call: Call) => void): KnownCalls {
  const calls = new Map<string, Call>()
  const told = new Map<string, number>()
  const undelivered = new Set<string>()
  /** Calls that were live as far as this process knows, and not among the live ones of the last sweep. */
  let missing = new Set<string>()

  const toldOf = (key: string) => told.get(key) ?? 0

  function forget(key: string): boolean {
    told.delete(key)
    return calls.delete(key)
  }

  return {
    calls,
    undelivered,
    learn(call) {
      const key = callKey(call)
      const before = calls.get(key)
      if (before !== undefined && before.version >= call.version) return
      calls.set(key, call)
      onLearned(call)
    },
    hear(key, version) {
      if (calls.has(key) && toldOf(key) < version) told.set(key, version)
    },
    toldOf,
    sweep(now, live) {
      const before = missing
      missing = new Set()
      const ended: Call[] = []
      for (const [key, call] of calls) {
        if (!isLive(call)) {
          if (now - call.endedAt > lateRelayMs) {
            forget(key)
            undelivered.delete(key)
          }
        } else if (!live.has(key)) {
          // It may have begun after the live ones were read.
          if (!before.has(key)) missing.add(key)
          else if (forget(key)) ended.push(call)
        }
      }
      return ended
    },
  }
}
