import { randomBytes } from 'node:crypto'
import { participantKey, sameParticipant } from '../../call/call.ts'
import { type AppendResult, isLast, isRelay, type Push } from '../../ports/push.ts'
import type { SessionIdentity, Sessions, Sink, Upstream } from '../../ports/sessions.ts'
import { StoreError } from '../../ports/store-error.ts'
import {
  awaitsState,
  canResume,
  closeGate,
  createSession,
  finish,
  hold,
  isForgettable,
  isNews,
  keep,
  loseLog,
  loseSocket,
  mayResume,
  moveKept,
  noteMedia,
  noteVersion,
  owesFinal,
  pass,
  prove,
  render,
  type Session,
  settle,
  takeKept,
  takeUnproven,
  untoldMedia,
} from './session.ts'
import { SessionLog } from './session-log.ts'

export interface MemorySessionsOptions {
  /** How long final notices are worth telling, in ms [WS4]. */
  readonly windowMs: number
  /** How long an extended session can be resumed, in ms [RES1]. */
  readonly resumeWindowMs: number
  /** The log of a session was lost while its socket is open, and these calls ring there [RES4]. */
  readonly onLogLost: (identity: SessionIdentity, epoch: string, ringing: readonly string[]) => void
}

/** The same port, with every answer at once. */
export type MemorySessions = {
  readonly [Method in keyof Sessions]: (...args: Parameters<Sessions[Method]>) => Awaited<ReturnType<Sessions[Method]>>
} & {
  /** Loses every log, as a store does that is emptied. */
  loseLogs(): void
  /** Sessions without a socket that are remembered. */
  countAway(): number
}

/** Dead sessions without a place that are remembered for a participant: as many as it may have sockets [WS7]. */
const maxDead = 20

/** By participant, oldest first. */
type Index = Map<string, Session[]>

/** The sessions of one process: the embedded default. */
export function createMemorySessions(options: MemorySessionsOptions): MemorySessions {
  const sessions = new Map<string, Session>()
  // A participant has few sessions, and mostly one: a list of one costs a third of a set of one.
  const live: Index = new Map()
  const detached: Index = new Map()
  /** Calls, and up to which version they were told. */
  const told = new Map<string, { readonly version: number; readonly overAt: number | undefined }>()
  /** The time, as whoever uses this last said. */
  let now = 0
  let epoch = newEpoch()
  const longestMs = Math.max(options.windowMs, options.resumeWindowMs)
  const isWorthTelling = (at: number) => now - at < options.windowMs

  function add(index: Index, session: Session): void {
    const known = index.get(session.participantKey)
    if (known === undefined) index.set(session.participantKey, [session])
    else if (!known.includes(session)) known.push(session)
  }
  function remove(index: Index, session: Session): void {
    const known = index.get(session.participantKey)
    const at = known?.indexOf(session) ?? -1
    if (known === undefined || at < 0) return
    if (known.length === 1) index.delete(session.participantKey)
    else known.splice(at, 1)
  }

  function create(identity: SessionIdentity, sink: Sink | undefined, at: number): Session {
    const upstream: Upstream = { handled: 0, replies: [], dropped: 0 }
    const session = createSession(identity, sink, epoch, upstream, at)
    sessions.set(identity.sessionId, session)
    add(sink === undefined ? detached : live, session)
    return session
  }

  function disconnect(session: Session, clean: boolean, at: number, closed = clean): void {
    loseSocket(session, clean, at, closed)
    remove(live, session)
    add(detached, session)
    if (isForgettable(session)) forget(session)
    else forgetOldest(session.participantKey)
  }

  function forget(session: Session): void {
    remove(detached, session)
    sessions.delete(session.identity.sessionId)
  }

  /** A client that connects and dies again and again does not fill the memory. */
  function forgetOldest(key: string): void {
    const dead = detached.get(key)
    if (dead === undefined || dead.length <= maxDead) return
    const oldest = dead.find(({ places }) => (places?.size ?? 0) === 0)
    if (oldest !== undefined) forget(oldest)
  }

  function append(session: Session, push: Push, at = now): AppendResult {
    // What is held back goes in front of the call's end: after it nobody opens the gate.
    if (push.kind === 'final') openGate(session, push.call, [])
    noteMedia(session, push)
    if (!isNews(session, push) || awaitsState(session, push)) return 'dropped'
    const gate = isRelay(push) ? session.gates?.get(push.call) : undefined
    if (gate !== undefined) {
      gate.push(push)
      return 'kept'
    }
    session.log ??= new SessionLog()
    if (session.sink === undefined) {
      // What a session cannot hold, its resume will not claim to have; one that nobody resumes has nobody to tell.
      if (mayResume(session)) session.log.append(push, at)
      else if (session.log.appendWaiting(push, at) === undefined) return 'full'
      return 'kept'
    }
    const seq = session.log.append(push, at)
    if (!session.ready) return 'kept'
    hand(session, session.sink, seq, push)
    return 'sent'
  }

  function openGate(session: Session, call: string, first: readonly Push[]): void {
    const held = session.gates?.get(call)
    if (held === undefined) return
    session.gates?.delete(call)
    for (const push of [...first, ...held]) append(session, push)
  }

  function release(session: Session, call: string): void {
    session.places?.delete(call)
    session.media?.delete(call)
    settle(session, call)
    session.ringing?.delete(call)
    session.kept?.delete(call)
    session.gates?.delete(call)
    if (session.sink !== undefined) return
    // Whoever comes back is told how the call ended, and nothing else of it [WS4].
    if (!mayResume(session)) session.log?.retain(({ push }) => push.call !== call || isLast(push))
    if (isForgettable(session)) forget(session)
  }

  function handOut(session: Session, sink: Sink): void {
    const { due, log, readyFrom } = session
    if (!session.opened || session.ready || (due !== undefined && due.text === undefined)) return
    // More came than the log holds before any of it could be told: nothing is, rather than a part [RES2].
    if (session.identity.extended && log?.reachesBackTo(readyFrom) === false) {
      sink.close(1013, 'try again later')
      return
    }
    session.ready = true
    session.due = undefined
    if (due?.text !== undefined)
      hand(session, sink, 1, { kind: 'notice', call: '', version: undefined, text: due.text })
    for (const { seq, push } of log?.all() ?? []) if (seq > readyFrom) hand(session, sink, seq, push)
  }

  function hand(session: Session, sink: Sink, seq: number, push: Push): void {
    sink.send(render(session, seq, push))
    sink.pushed(seq)
  }

  function owned(sessionId: string, identity: SessionIdentity): Session | undefined {
    const session = sessions.get(sessionId)
    if (session === undefined || !sameParticipant(session.identity.participant, identity.participant)) return undefined
    // A base session is over with its socket, and not to be touched while it has one.
    return session.identity.extended && session.identity.deviceId === identity.deviceId ? session : undefined
  }

  return {
    open(identity, sink, at) {
      const session = create(identity, sink, at)
      return { epoch: session.epoch, upstream: session.upstream }
    },
    sinkToReplace(sessionId, identity) {
      const session = owned(sessionId, identity)
      return session?.sink ?? session?.lostSink
    },
    resume(request, identity, sink, at) {
      if (sink.isClosed) throw new StoreError('unavailable', 'the connection was closed meanwhile')
      const session = owned(request.sessionId, identity)
      if (session === undefined) return undefined
      if (!canResume(session, request, at, options.resumeWindowMs)) {
        session.broken = true
        // Its socket was retired for this one: what it had is there for who takes its places.
        if (session.sink !== undefined) disconnect(session, false, at)
        return undefined
      }
      session.identity = { ...session.identity, expiresAt: identity.expiresAt }
      session.sink = sink
      session.lostSink = undefined
      session.closed = false
      session.ready = false
      session.opened = false
      session.readyFrom = request.seq
      remove(detached, session)
      add(live, session)
      prove(session, request.seq)
      for (const push of untoldMedia(session, request.seq)) append(session, push)
      return { epoch: session.epoch, upstream: session.upstream }
    },
    ready(sessionId, sink) {
      const session = sessions.get(sessionId)
      if (session?.sink === undefined || (sink !== undefined && session.sink !== sink)) return
      session.opened = true
      handOut(session, session.sink)
    },
    reset(sessionId, named, text) {
      const session = sessions.get(sessionId)
      if (session?.sink === undefined || session.due?.epoch !== named) return
      session.due.text = text
      handOut(session, session.sink)
    },
    openDetached(identity, at) {
      now = Math.max(now, at)
      if (!sessions.has(identity.sessionId)) create(identity, undefined, at)
    },
    detach(sessionId, sink, clean, at, closed) {
      const session = sessions.get(sessionId)
      if (session === undefined || session.sink !== sink) return false
      now = at
      disconnect(session, clean, at, closed)
      return true
    },
    wasClosed: (sessionId) => sessions.get(sessionId)?.closed ?? false,
    hasMoved(sessionId, sink) {
      const other = sessions.get(sessionId)?.sink
      return other !== undefined && other !== sink
    },
    heldHere(sessionId) {
      const session = sessions.get(sessionId)
      return session?.sink === undefined ? undefined : session.identity
    },
    sinkOf: (sessionId) => sessions.get(sessionId)?.sink,
    liveOf(participant, at = Number.POSITIVE_INFINITY, began = Number.NEGATIVE_INFINITY) {
      const there = live.get(participantKey(participant))?.filter(({ openedAt }) => openedAt <= at) ?? []
      const good = there.filter(({ identity }) => identity.expiresAt === undefined || identity.expiresAt > began)
      return good.map(({ identity }) => identity.sessionId)
    },
    renew(sessionId, expiresAt) {
      const session = sessions.get(sessionId)
      if (session !== undefined) session.identity = { ...session.identity, expiresAt }
    },
    append(sessionId, push) {
      const session = sessions.get(sessionId)
      return session === undefined ? 'gone' : append(session, push)
    },
    appendRung(participant, push, except) {
      const key = participantKey(participant)
      for (const index of [live, detached]) {
        for (const session of [...(index.get(key) ?? [])]) {
          if (!session.ringing?.has(push.call)) continue
          // It may have the place by now, from the session of before.
          const hasPlace = push.kind === 'stop' && session.places?.has(push.call) === true
          if (hasPlace || except.includes(session.identity.sessionId)) {
            session.ringing.delete(push.call)
            if (!session.places?.has(push.call)) session.kept?.delete(push.call)
            // Whoever is late to say that it rings is not believed.
            if (push.kind === 'final') finish(session, push.call)
            else {
              noteVersion(session, push)
              pass(session, push.call)
            }
          } else append(session, push)
        }
      }
    },
    ring(sessionId, call) {
      const session = sessions.get(sessionId)
      if (session === undefined) return
      session.ringing ??= new Set()
      session.ringing.add(call)
    },
    prove(sessionId, seq) {
      const session = sessions.get(sessionId)
      if (session !== undefined) prove(session, seq)
    },
    keep(sessionId, push) {
      const session = sessions.get(sessionId)
      return session === undefined ? 'gone' : keep(session, push)
    },
    takeKept(sessionId, call) {
      const session = sessions.get(sessionId)
      return session === undefined ? [] : takeKept(session, call)
    },
    hold(sessionId, call, settled, gate = false, version = Number.POSITIVE_INFINITY) {
      const session = sessions.get(sessionId)
      if (session === undefined) return false
      hold(session, call, settled)
      // Who was told of what came after the answer has the answer's gate behind it.
      if (gate && (session.versions?.get(call) ?? 0) <= version) closeGate(session, call)
      return true
    },
    openGate(sessionId, call, first) {
      const session = sessions.get(sessionId)
      if (session !== undefined) openGate(session, call, first)
    },
    release(sessionId, call) {
      const session = sessions.get(sessionId)
      if (session === undefined) return
      finish(session, call)
      release(session, call)
    },
    knowsEnd: (sessionId, call) => sessions.get(sessionId)?.over?.includes(call) ?? false,
    holdsAny: (sessionId) => (sessions.get(sessionId)?.places?.size ?? 0) > 0,
    inCall(sessionId) {
      const session = sessions.get(sessionId)
      return (session?.places?.size ?? 0) > 0 || (session?.ringing?.size ?? 0) > 0
    },
    move(call, from, to, settled, _version, gate = false) {
      const source = sessions.get(from)
      const target = sessions.get(to)
      if (target === undefined) return false
      if (source === undefined || source === target) return true
      hold(target, call, settled)
      moveKept(call, source, target)
      const isOwed = (push: Push) => push.call === call && push.kind !== 'media'
      for (const { push, at } of takeUnproven(source, isOwed)) append(target, push, at)
      const media = source.media?.get(call)
      if (media !== undefined) append(target, media)
      if (gate) closeGate(target, call)
      release(source, call)
      return true
    },
    owing({ sessionId, participant, deviceId }) {
      const others = live.get(participantKey(participant)) ?? []
      return others
        .filter(({ identity }) => identity.sessionId !== sessionId && identity.deviceId === deviceId)
        .filter(owesFinal)
        .map(({ identity }) => identity.sessionId)
    },
    collectFinals(identity) {
      const target = sessions.get(identity.sessionId)
      const known = target?.overSinceOpen
      if (target === undefined || known === undefined) return
      // Where one of its sockets had the place, the device hears how the call ended, not that another socket answered.
      for (const kind of ['final', 'stop'] as const) {
        for (const source of [...(detached.get(target.participantKey) ?? [])]) {
          const { deviceId: device, isNotOf } = source.identity
          if (device === undefined ? isNotOf === identity.deviceId : device !== identity.deviceId) continue
          // One dead socket's notice is for one session that comes back, and nobody hears the same twice.
          const isOwed = (push: Push) => push.kind === kind && !target.places?.has(push.call) && !known.has(push.call)
          // From before a restart: how many sockets it stands for is not known.
          const entries =
            device === undefined ? source.log?.find(({ push }) => isOwed(push)) : takeUnproven(source, isOwed)
          for (const { push, at } of entries ?? []) append(target, push, at)
          if (isForgettable(source)) forget(source)
        }
      }
      target.overSinceOpen = undefined
    },
    toldOf: (call) => told.get(call)?.version ?? 0,
    toldExactly: (call) => ({ version: told.get(call)?.version ?? 0, before: 0 }),
    tellAll() {},
    setTold(call, version, isOver) {
      if ((told.get(call)?.version ?? 0) <= version) told.set(call, { version, overAt: isOver ? now : undefined })
    },
    sweep(at) {
      now = at
      for (const [call, { overAt }] of told) {
        if (overAt !== undefined && !isWorthTelling(overAt)) told.delete(call)
      }
      for (const set of [...detached.values()]) {
        for (const session of [...set]) {
          if (!mayResume(session)) session.log?.retain(({ push, at }) => !isLast(push) || isWorthTelling(at))
          const isIdle = (session.places?.size ?? 0) === 0 && (session.ringing?.size ?? 0) === 0
          if (!isIdle) session.idleSince = now
          else if (isForgettable(session) || now - session.idleSince >= longestMs) forget(session)
        }
      }
    },
    countAway: () => [...detached.values()].reduce((count, { length }) => count + length, 0),
    loseLogs() {
      epoch = newEpoch()
      for (const session of sessions.values()) {
        loseLog(session, epoch)
        if (session.sink !== undefined) options.onLogLost(session.identity, epoch, [...(session.ringing ?? [])])
      }
    },
  }
}

function newEpoch(): string {
  return randomBytes(8).toString('base64url')
}
