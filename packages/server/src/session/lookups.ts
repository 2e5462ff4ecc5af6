import { participantKey } from '../call/call.ts'
import type { AtOnce } from '../ports/maybe.ts'
import type { SessionLookup } from '../ports/sessions.ts'
import { hasLeft, hasPlace, isAware, isThere, knowsOver, someCall } from './calls.ts'
import type { Registry } from './registry.ts'
import { isIdle, lostOf, type Session, seenOf, sinkOf } from './session.ts'

/** Who is there, and what a session has to do with calls. */
export function createLookups({ get, live }: Registry): AtOnce<SessionLookup> {
  function is(sessionId: string, test: (session: Session) => boolean): boolean {
    const session = get(sessionId)
    return session !== undefined && test(session)
  }

  return {
    hasHungUp(sessionId) {
      const session = get(sessionId)
      return session?.identity.extended === true && lostOf(session)?.closed === 'for good'
    },
    wasClosed: (sessionId) => lostOf(get(sessionId))?.closed !== undefined,
    awaitedMs: (sessionId) => lostOf(get(sessionId))?.awaitedMs,
    heldHere(sessionId) {
      const session = get(sessionId)
      return session?.socket.is === 'open' ? session.identity : undefined
    },
    unaware(participant, call) {
      const here = live.of(participantKey(participant))
      const isUnaware = (session: Session) =>
        session.socket.is === 'open' && session.socket.isReady && !isAware(session, call)
      return here.filter(isUnaware).map(({ identity }) => identity)
    },
    sinkOf(sessionId) {
      const session = get(sessionId)
      return session && sinkOf(session)
    },
    liveOf(participant, at = Number.POSITIVE_INFINITY, began = Number.NEGATIVE_INFINITY) {
      const there = live.of(participantKey(participant)).filter(({ openedAt }) => openedAt <= at)
      const good = there.filter(({ identity }) => identity.expiresAt === undefined || identity.expiresAt > began)
      return good.map(({ identity }) => identity.sessionId)
    },
    mayRing: (participant, began, needs) =>
      live.of(participantKey(participant)).some(({ identity: { expiresAt, can = [] } }) => {
        const isGood = expiresAt === undefined || expiresAt > began
        return isGood && (needs === undefined || can.includes(needs))
      }),
    seen: (participant) => live.of(participantKey(participant)).map(seenOf),
    knowsEnd: (sessionId, call) => is(sessionId, (session) => knowsOver(session, call)),
    hasLeft: (sessionId, call) => is(sessionId, (session) => hasLeft(session, call)),
    holdsAny: (sessionId) => is(sessionId, (session) => someCall(session, hasPlace)),
    isIdle: (sessionId) => is(sessionId, isIdle),
    inCall: (sessionId) => is(sessionId, (session) => someCall(session, isThere)),
  }
}
