import { type Call, type CallRef, callKey, isLive, isNamedIn, type Participant } from '../../call/call.ts'
import { forgetOldest } from '../../ports/oldest.ts'

/**
 * Calls as this process saw them last. Others write too, so what is known here may be old: it is believed only where the
 * guard on the version checks it.
 */
export interface KnownCalls {
  find(ref: CallRef): Call | undefined
  /** An older version than the known one is not news. */
  note(call: Call): void
  forget(ref: CallRef): void
  /** Calls of a participant that are over are stored without its name. */
  forgetOverOf(participant: Participant): void
}

export function createKnownCalls(most: number): KnownCalls {
  /** The one that was noted last is the last one. */
  const calls = new Map<string, Call>()
  return {
    find: (ref) => calls.get(callKey(ref)),
    note(call) {
      const key = callKey(call)
      const known = calls.get(key)
      if (known !== undefined && known.version >= call.version) return
      calls.delete(key)
      calls.set(key, call)
      forgetOldest(calls, most)
    },
    forget(ref) {
      calls.delete(callKey(ref))
    },
    forgetOverOf(participant) {
      for (const [key, call] of calls) if (!isLive(call) && isNamedIn(call, participant)) calls.delete(key)
    },
  }
}
