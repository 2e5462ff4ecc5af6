import { type Participant, participantKey, sameParticipant } from '../call/call.ts'
import { isLast, type Push } from '../ports/push.ts'
import type { Departure, SessionIdentity, Sessions, Sink, Upstream } from '../ports/sessions.ts'
import { StoreError } from '../ports/store-error.ts'
import { type Among, createAmong } from './among.ts'
import { acknowledge } from './answers.ts'
import {
  callOf,
  callsThat,
  finish,
  hasPlace,
  holdsPlace,
  isAware,
  isRinging,
  isThere,
  knowsOver,
  someCall,
} from './calls.ts'
import { type Changes, createChanges } from './changes.ts'
import { Index } from './index.ts'
import { socketAhead } from './late.ts'
import { untoldMedia } from './news.ts'
import { closeGate, hold, isEarly, isLate, keep, openGate, takeKept, untaken } from './places.ts'
import { createSending } from './sending.ts'
import {
  canResume,
  catchUpWith,
  createSession,
  isForgettable,
  isIdle,
  isOpen,
  loseSocket,
  lostOf,
  mayResume,
  newestVersion,
  openSocket,
  prove,
  renewedIdentity,
  resumedAt,
  type Session,
  seenOf,
  sinkOf,
  sinkToRetire,
} from './session.ts'

export interface SessionTableOptions {
  /** How long final notices are worth telling, in ms [WS4]. */
  readonly windowMs: number
  /** How long an extended session can be resumed, in ms [RES1]. */
  readonly resumeWindowMs: number
  /** Names the incarnation of a log that begins. */
  readonly newEpoch: () => string
  /** Whether other processes have sessions, too: what changes is noted for a save, and relays are taken once [EXT4]. */
  readonly isShared?: boolean
  /** Something has changed that a save has to write, and nothing had before. */
  readonly onChanged?: () => void
}

/** What a session table does not do: whether something is saved, and whose a session is by now. */
type Beyond = 'confirm' | 'hasMoved' | 'findAt'

/** The port's methods, with every answer at once. */
type AtOnce = {
  readonly [Method in Exclude<keyof Sessions, Beyond>]: (
    ...args: Parameters<Sessions[Method]>
  ) => Awaited<ReturnType<Sessions[Method]>>
}

/** The sessions of one process, in its memory: no I/O, no clock, no random. */
export interface SessionTable extends AtOnce, Omit<Among, keyof AtOnce | 'leave' | 'appendTo'> {
  /** The time, as whoever uses this last said. */
  readonly now: number
  get(sessionId: string): Session | undefined
  all(): IterableIterator<Session>
  /** See `socketAhead`; undefined where nobody with this identity may resume the session. */
  socketAhead(sessionId: string, identity: SessionIdentity, seq: number | undefined): Sink | undefined
  /** The sessions of a participant, those with a socket first. */
  ofParticipant(participantKey: string): readonly Session[]
  append(sessionId: string, push: Push): ReturnType<AtOnce['append']>
  /** Takes up a session as another process has left it; it has no socket. */
  adopt(session: Session): void
  /** It is over, whatever it holds. */
  forget(sessionId: string): void
  /** Another process has it from now on. */
  drop(sessionId: string): Session | undefined
  readonly changes: Changes
  /** Sessions without a socket that are remembered. */
  countAway(): number
}

/** Dead sessions without a place that are remembered for a participant: as many as it may have sockets [WS7]. */
const maxDead = 20

export function createSessionTable(options: SessionTableOptions): SessionTable {
  const { isShared = false } = options
  const sessions = new Map<string, Session>()
  const live = new Index()
  const detached = new Index()
  let now = 0
  const longestMs = Math.max(options.windowMs, options.resumeWindowMs)
  const isWorthTelling = (at: number) => now - at < options.windowMs
  const changes = createChanges(isShared, options.onChanged)
  const { changed } = changes
  const { append, handOut } = createSending({ isShared, now: () => now, changed, logged: changes.logged })

  function add(session: Session): void {
    sessions.set(session.identity.sessionId, session)
    if (isOpen(session)) live.add(session)
    else detached.add(session)
    changed(session)
  }

  function create(identity: SessionIdentity, sink: Sink | undefined, at: number): Session {
    const upstream: Upstream = { handled: 0, final: 0, replies: [], dropped: 0 }
    const session = createSession(identity, sink, options.newEpoch(), upstream, at)
    add(session)
    return session
  }

  function openDetached(identity: SessionIdentity, at: number): void {
    now = Math.max(now, at)
    if (sessions.has(identity.sessionId)) return
    // Its owner may only have stood still, and writes it again: the fence is above all that a session has by changing owners.
    create(identity, undefined, at).saving.fence = Math.max(1, Math.floor(now))
  }

  function disconnect(session: Session, clean: boolean, at: number, how: Departure = {}): void {
    loseSocket(session, clean, at, how)
    changed(session)
    live.remove(session)
    detached.add(session)
    if (isForgettable(session)) forget(session)
    else forgetOldest(session.participantKey)
  }

  function forget(session: Session): void {
    remove(session)
    changes.forgotten(session)
  }

  function remove(session: Session): void {
    detached.remove(session)
    live.remove(session)
    sessions.delete(session.identity.sessionId)
  }

  /** A client that connects and dies again and again does not fill the memory. */
  function forgetOldest(key: string): void {
    const dead = detached.of(key)
    if (dead.length <= maxDead) return
    const oldest = dead.find((session) => !someCall(session, hasPlace))
    if (oldest !== undefined) forget(oldest)
  }

  function ownedBy(sessionId: string, identity: SessionIdentity): Session | undefined {
    const session = sessions.get(sessionId)
    if (session === undefined || !sameParticipant(session.identity.participant, identity.participant)) return undefined
    // A base session is over with its socket, and not to be touched while it has one.
    return session.identity.extended && session.identity.deviceId === identity.deviceId ? session : undefined
  }

  function liveOf(
    participant: Participant,
    at = Number.POSITIVE_INFINITY,
    began = Number.NEGATIVE_INFINITY,
  ): readonly string[] {
    const there = live.of(participantKey(participant)).filter(({ openedAt }) => openedAt <= at)
    const good = there.filter(({ identity }) => identity.expiresAt === undefined || identity.expiresAt > began)
    return good.map(({ identity }) => identity.sessionId)
  }

  function changing(sessionId: string): Session | undefined {
    const session = sessions.get(sessionId)
    if (session !== undefined) changed(session)
    return session
  }

  function is(sessionId: string, test: (session: Session) => boolean): boolean {
    const session = sessions.get(sessionId)
    return session !== undefined && test(session)
  }

  const { leave, appendTo, ...among } = createAmong({ sessions, live, detached, changed, append, forget })

  return {
    ...among,
    changes,
    get now() {
      return now
    },
    get: (sessionId) => sessions.get(sessionId),
    all: () => sessions.values(),
    ofParticipant: (key) => [...live.of(key), ...detached.of(key)],
    open(identity, sink, at) {
      const session = create(identity, sink, at)
      return { epoch: session.epoch, upstream: session.upstream }
    },
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
      changed(session)
      if (!canResume(session, request, at, options.resumeWindowMs)) {
        session.broken = true
        // Its socket was retired for this one: what it had is there for who takes its places.
        if (isOpen(session)) disconnect(session, false, at)
        return undefined
      }
      catchUpWith(session, request)
      session.identity = renewedIdentity(session.identity, identity)
      session.socket = openSocket(sink, request.seq)
      detached.remove(session)
      live.add(session)
      const resumed = resumedAt(session, request.seq)
      prove(session, request.seq)
      for (const push of untoldMedia(session, request.seq)) append(session, untaken(push))
      return resumed
    },
    ready(sessionId, sink) {
      const session = sessions.get(sessionId)
      if (session?.socket.is !== 'open' || (sink !== undefined && session.socket.sink !== sink)) return
      handOut(session, session.socket)
    },
    adopt: add,
    forget(sessionId) {
      const session = sessions.get(sessionId)
      if (session !== undefined) forget(session)
    },
    drop(sessionId) {
      const session = sessions.get(sessionId)
      if (session === undefined) return undefined
      remove(session)
      changes.dropped(session)
      return session
    },
    detach(sessionId, sink, clean, at, how) {
      const session = sessions.get(sessionId)
      if (session === undefined || sinkOf(session) !== sink) return false
      now = at
      disconnect(session, clean, at, how)
      return true
    },
    hasHungUp(sessionId) {
      const session = sessions.get(sessionId)
      return session?.identity.extended === true && lostOf(session)?.closed === 'for good'
    },
    wasClosed: (sessionId) => lostOf(sessions.get(sessionId))?.closed !== undefined,
    awaitedMs: (sessionId) => lostOf(sessions.get(sessionId))?.awaitedMs,
    heldHere(sessionId) {
      const session = sessions.get(sessionId)
      return session?.socket.is === 'open' ? session.identity : undefined
    },
    unaware(participant, call) {
      const here = live.of(participantKey(participant))
      const isUnaware = (session: Session) =>
        session.socket.is === 'open' && session.socket.isReady && !isAware(session, call)
      return here.filter(isUnaware).map(({ identity }) => identity)
    },
    sinkOf(sessionId) {
      const session = sessions.get(sessionId)
      return session && sinkOf(session)
    },
    liveOf,
    appendLive(...args) {
      const [participant, push, at, began] = args
      for (const id of liveOf(participant, at, began)) append(sessions.get(id) as Session, push)
    },
    seen: (participant) => live.of(participantKey(participant)).map(seenOf),
    renew(sessionId, expiresAt) {
      const session = changing(sessionId)
      if (session !== undefined) session.identity = { ...session.identity, expiresAt }
    },
    append(sessionId, push) {
      const session = sessions.get(sessionId)
      if (session === undefined) return 'gone'
      if (isShared && isLate(session, push)) return 'late'
      return isShared && isEarly(session, push) ? 'early' : appendTo(session, push)
    },
    prove(sessionId, seq) {
      const session = changing(sessionId)
      if (session !== undefined) prove(session, seq)
    },
    doubt(sessionId) {
      const session = sessions.get(sessionId)
      if (session?.socket.is !== 'open') return []
      const { socket } = session
      const rings = callsThat(session, isRinging).filter((call) => !socket.unsure?.has(call))
      if (rings.length === 0) return []
      socket.unsure = new Set([...(socket.unsure ?? []), ...rings])
      changed(session)
      return rings
    },
    trust(sessionId) {
      const session = sessions.get(sessionId)
      if (session?.socket.is !== 'open' || session.socket.unsure === undefined) return
      session.socket.unsure = undefined
      changed(session)
    },
    acknowledge(sessionId, call) {
      const session = sessions.get(sessionId)
      if (session !== undefined && holdsPlace(session, call) && acknowledge(session, call)) changed(session)
    },
    keep(sessionId, push) {
      const session = sessions.get(sessionId)
      if (session === undefined) return 'gone'
      const countKept = () => session.calls?.get(push.call)?.kept?.pushes.length
      const before = countKept()
      const result = keep(session, push)
      // What was refused, or is there already, costs no save.
      if (countKept() !== before) changed(session)
      return result
    },
    apply(sessionId, { call, version = newestVersion, orOpen, ...step }) {
      if (orOpen !== undefined) openDetached(orOpen.identity, orOpen.at)
      const session = changing(sessionId)
      if (session === undefined) return undefined
      if (step.isRinging) callOf(session, call).isRinging = true
      const holds = step.place !== undefined && hold(session, call, step.place === 'settled', version)
      if (holds && (step.gate || step.isAnswered)) closeGate(session, call, version)
      const early = step.isAnswered ? takeKept(session, call) : []
      for (const push of step.pushes ?? []) appendTo(session, push)
      if (step.early !== undefined) openGate(session, call, step.early, append)
      if (step.isOver) {
        finish(session, call)
        leave(session, call)
      }
      return early
    },
    knowsEnd: (sessionId, call) => is(sessionId, (session) => knowsOver(session, call)),
    holdsAny: (sessionId) => is(sessionId, (session) => someCall(session, hasPlace)),
    isIdle: (sessionId) => is(sessionId, isIdle),
    inCall: (sessionId) => is(sessionId, (session) => someCall(session, isThere)),
    sweep(at) {
      now = at
      for (const session of detached.all()) {
        if (!mayResume(session) && session.log?.all().some(({ push, at }) => isLast(push) && !isWorthTelling(at))) {
          session.log.retain(({ push, at }) => !isLast(push) || isWorthTelling(at))
          changed(session)
        }
        const { socket } = session
        if (socket.is === 'open') continue
        if (someCall(session, isThere)) socket.idleSince = now
        else if (isForgettable(session) || now - socket.idleSince >= longestMs) forget(session)
      }
    },
    countAway: () => detached.count(),
  }
}
