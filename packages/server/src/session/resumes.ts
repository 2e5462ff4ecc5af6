import { sameParticipant } from '../call/call.ts'
import type { AtOnce } from '../ports/maybe.ts'
import type { SessionIdentity, SessionSockets, Sink } from '../ports/sessions.ts'
import { StoreError } from '../ports/store-error.ts'
import { socketAhead } from './late.ts'
import { forgetUntoldMedia, untoldMedia } from './news.ts'
import { untaken } from './places.ts'
import type { Registry } from './registry.ts'
import type { Sending } from './sending.ts'
import {
  canResume,
  catchUpWith,
  isOpen,
  prove,
  renewedIdentity,
  resumedAt,
  type Session,
  sinkToRetire,
} from './session.ts'

/** Clients that come back to their sessions. */
export interface Resumes extends Pick<AtOnce<SessionSockets>, 'sinkToReplace' | 'resume'> {
  /** See `socketAhead` in late.ts; undefined if this identity may not resume the session. */
  socketAhead(sessionId: string, identity: SessionIdentity, seq: number | undefined): Sink | undefined
}

export function createResumes(registry: Registry, { append }: Sending, windowMs: number): Resumes {
  function ownedBy(sessionId: string, identity: SessionIdentity): Session | undefined {
    const session = registry.get(sessionId)
    if (session === undefined || !sameParticipant(session.identity.participant, identity.participant)) return undefined
    // A base session is over with its socket, and not to be touched while it has one.
    return session.identity.extended && session.identity.deviceId === identity.deviceId ? session : undefined
  }

  return {
    sinkToReplace(sessionId, identity) {
      const session = ownedBy(sessionId, identity)
      return session && sinkToRetire(session)
    },
    socketAhead(sessionId, identity, seq) {
      const session = ownedBy(sessionId, identity)
      return session && socketAhead(session, seq)
    },
    resume(request, identity, sink, at) {
      if (sink.isClosed) throw new StoreError('unavailable', 'the connection was closed meanwhile')
      const session = ownedBy(request.sessionId, identity)
      if (session === undefined) return undefined
      registry.changes.changed(session)
      if (!canResume(session, request, at, windowMs)) {
        session.broken = true
        // Its socket was retired for this one: its messages are there for the next holder of its places.
        if (isOpen(session)) registry.disconnect(session, false, at)
        return undefined
      }
      if (catchUpWith(session, request)) forgetUntoldMedia(session, request.seq)
      session.identity = renewedIdentity(session.identity, identity)
      registry.connect(session, sink, request.seq)
      const resumed = resumedAt(session, request.seq)
      prove(session, request.seq)
      for (const push of untoldMedia(session, request.seq)) append(session, untaken(push))
      return resumed
    },
  }
}
