import type { AtOnce } from '../ports/maybe.ts'
import type { SessionSockets } from '../ports/sessions.ts'
import { acknowledge } from './answers.ts'
import { callsThat, holdsPlace, isRinging } from './calls.ts'
import type { Registry } from './registry.ts'
import type { Sending } from './sending.ts'
import { prove, sinkOf } from './session.ts'

/** What the process that has a socket does with its session. */
export type Sockets = Omit<AtOnce<SessionSockets>, 'sinkToReplace' | 'resume' | 'hasMoved'>

export function createSockets(registry: Registry, { handOut }: Sending): Sockets {
  const { changed } = registry.changes
  return {
    open(identity, sink, at) {
      const { epoch, upstream } = registry.create(identity, sink, at)
      return { epoch, upstream }
    },
    ready(sessionId, sink) {
      const session = registry.get(sessionId)
      if (session?.socket.is !== 'open' || (sink !== undefined && session.socket.sink !== sink)) return
      handOut(session, session.socket)
    },
    detach(sessionId, sink, clean, at, how) {
      const session = registry.get(sessionId)
      if (session === undefined || sinkOf(session) !== sink) return false
      registry.now = at
      registry.disconnect(session, clean, at, how)
      return true
    },
    renew(sessionId, expiresAt) {
      const session = registry.changing(sessionId)
      if (session !== undefined) session.identity = { ...session.identity, expiresAt }
    },
    prove(sessionId, seq) {
      const session = registry.changing(sessionId)
      if (session !== undefined) prove(session, seq)
    },
    doubt(sessionId) {
      const session = registry.get(sessionId)
      if (session?.socket.is !== 'open') return []
      const { socket } = session
      const rings = callsThat(session, isRinging).filter((call) => !socket.unsure?.has(call))
      if (rings.length === 0) return []
      socket.unsure = new Set([...(socket.unsure ?? []), ...rings])
      changed(session)
      return rings
    },
    trust(sessionId) {
      const session = registry.get(sessionId)
      if (session?.socket.is !== 'open' || session.socket.unsure === undefined) return
      session.socket.unsure = undefined
      changed(session)
    },
    acknowledge(sessionId, call) {
      const session = registry.get(sessionId)
      if (session !== undefined && holdsPlace(session, call) && acknowledge(session, call)) changed(session)
    },
  }
}
