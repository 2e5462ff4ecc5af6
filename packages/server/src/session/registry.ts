import type { Departure, SessionIdentity, Sink } from '../ports/sessions.ts'
import { hasPlace, someCall } from './calls.ts'
import type { Changes } from './changes.ts'
import { Index } from './index.ts'
import { createSession, isForgettable, isOpen, loseSocket, openSocket, type Session } from './session.ts'

/** The sessions of one process, by id and by participant. Their changes are noted for the next save. */
export interface Registry {
  /** The time, as it was said last, in ms since the epoch. */
  now: number
  readonly changes: Changes
  /** Sessions with a socket. */
  readonly live: Index
  /** Sessions without a socket. */
  readonly detached: Index
  get(sessionId: string): Session | undefined
  /** The same, and what changes in it now is noted. */
  changing(sessionId: string): Session | undefined
  all(): IterableIterator<Session>
  /** The sessions of a participant, those with a socket first. */
  ofParticipant(participantKey: string): readonly Session[]
  add(session: Session): void
  create(identity: SessionIdentity, sink: Sink | undefined, at: number): Session
  /** The session has a new socket; what the socket is handed comes after `readyFrom`. */
  connect(session: Session, sink: Sink, readyFrom: number): void
  disconnect(session: Session, clean: boolean, at: number, how?: Departure): void
  /** The session is over, whatever it holds. */
  forget(session: Session): void
  /** The session is over if nobody needs it any more. */
  forgetIfUnused(session: Session): void
  /** Another process has the session from now on. */
  drop(session: Session): void
}

/** Dead sessions without a place that are remembered for a participant: as many as it may have sockets [WS7]. */
const maxDead = 20

export function createRegistry(changes: Changes, newEpoch: () => string): Registry {
  const sessions = new Map<string, Session>()
  const [live, detached] = [new Index(), new Index()]
  const { changed } = changes

  function add(session: Session): void {
    sessions.set(session.identity.sessionId, session)
    if (isOpen(session)) live.add(session)
    else detached.add(session)
    changed(session)
  }

  function remove(session: Session): void {
    detached.remove(session)
    live.remove(session)
    sessions.delete(session.identity.sessionId)
  }

  function forget(session: Session): void {
    remove(session)
    changes.forgotten(session)
  }

  /** A client that connects and dies again and again does not fill the memory. */
  function forgetOldest(key: string): void {
    const dead = detached.of(key)
    const oldest = dead.length > maxDead ? dead.find((session) => !someCall(session, hasPlace)) : undefined
    if (oldest !== undefined) forget(oldest)
  }

  return {
    now: 0,
    changes,
    live,
    detached,
    add,
    forget,
    get: (sessionId) => sessions.get(sessionId),
    changing(sessionId) {
      const session = sessions.get(sessionId)
      if (session !== undefined) changed(session)
      return session
    },
    all: () => sessions.values(),
    ofParticipant: (key) => [...live.of(key), ...detached.of(key)],
    create(identity, sink, at) {
      const upstream = { handled: 0, final: 0, replies: [], dropped: 0 }
      const session = createSession(identity, sink, newEpoch(), upstream, at)
      add(session)
      return session
    },
    connect(session, sink, readyFrom) {
      session.socket = openSocket(sink, readyFrom)
      detached.remove(session)
      live.add(session)
    },
    disconnect(session, clean, at, how = {}) {
      loseSocket(session, clean, at, how)
      changed(session)
      live.remove(session)
      detached.add(session)
      if (isForgettable(session)) forget(session)
      else forgetOldest(session.participantKey)
    },
    forgetIfUnused(session) {
      if (isForgettable(session)) forget(session)
    },
    drop(session) {
      remove(session)
      changes.dropped(session)
    },
  }
}
