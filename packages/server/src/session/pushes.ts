import { participantKey } from '../call/call.ts'
import type { AtOnce } from '../ports/maybe.ts'
import { type AppendResult, isLast, type Push } from '../ports/push.ts'
import type { SessionPushes } from '../ports/sessions.ts'
import { callOf, finish, holdsPlace, rest, ringsAt, stopRinging } from './calls.ts'
import type { Finals } from './finals.ts'
import { noteVersion } from './news.ts'
import { isEarly, isLate } from './places.ts'
import type { Registry } from './registry.ts'
import type { Sending } from './sending.ts'
import { isOpen, type Session } from './session.ts'

/** Pushes to sessions. */
export interface Pushes extends Pick<AtOnce<SessionPushes>, 'appendRung'> {
  append(sessionId: string, push: Push): AppendResult
  /** To a session; what says how a call ended goes on to sessions of its device that came meanwhile. */
  appendTo(session: Session, push: Push): AppendResult
}

export interface PushesOptions {
  readonly registry: Registry
  /** Whether other processes send relays, too: each is taken once then [EXT4]. */
  readonly isShared: boolean
  readonly sending: Sending
  readonly finals: Pick<Finals, 'passOn'>
}

export function createPushes({ registry, isShared, sending, finals }: PushesOptions): Pushes {
  function appendTo(session: Session, push: Push): AppendResult {
    const result = sending.append(session, push)
    if (!isOpen(session) && isLast(push)) finals.passOn(session, push)
    return result
  }

  /** It rang there, and it gets no news of it: it has the place, or said so itself. */
  function silence(session: Session, push: Push): void {
    registry.changes.changed(session)
    // A late sender that says that it rings is not believed.
    if (push.kind === 'final') {
      stopRinging(session, push.call)
      finish(session, push.call)
    } else {
      // Messages that it sent before its answer still have to be handed over, also if it hears of its place after this
      // [REL2].
      callOf(session, push.call).isRinging = undefined
      noteVersion(session, push)
      rest(session, push.call)
    }
  }

  return {
    append(sessionId, push) {
      const session = registry.get(sessionId)
      if (session === undefined) return 'gone'
      if (isShared && isLate(session, push)) return 'late'
      return isShared && isEarly(session, push) ? 'early' : appendTo(session, push)
    },
    appendTo,
    appendRung(participant, push, except) {
      for (const session of registry.ofParticipant(participantKey(participant))) {
        if (!ringsAt(session, push.call)) continue
        // It may have the place by now, from the previous session.
        const hasPlace = push.kind === 'stop' && holdsPlace(session, push.call)
        if (hasPlace || except.includes(session.identity.sessionId)) silence(session, push)
        else appendTo(session, push)
      }
    },
  }
}
