import type { Participant } from '../call/call.ts'
import { andThen, type MaybePromise } from '../ports/maybe.ts'
import type { SessionLookup } from '../ports/sessions.ts'

/**
 * Whether a participant may have one more socket: at most `maxSockets`, and the oldest that hold no place make room [WS7].
 * Of several that connect at the same moment to several nodes more may come in; the next one puts that right.
 */
export function createRoom(
  sessions: SessionLookup,
  maxSockets: number,
): (participant: Participant) => MaybePromise<boolean> {
  function closeOldest([oldest, ...others]: readonly string[], tooMany: number): MaybePromise<boolean> {
    if (oldest === undefined) return false
    return andThen(sessions.holdsAny(oldest), (holds) => {
      if (holds) return closeOldest(others, tooMany)
      return andThen(sessions.sinkOf(oldest), (sink) => {
        // With a code that says "come back" two tabs would displace each other for ever.
        sink?.close(4409, 'too many connections')
        return tooMany === 1 || closeOldest(others, tooMany - 1)
      })
    })
  }

  return (participant) =>
    andThen(sessions.liveOf(participant), (live) => {
      const tooMany = live.length - maxSockets + 1
      return tooMany <= 0 || closeOldest(live, tooMany)
    })
}
