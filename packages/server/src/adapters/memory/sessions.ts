import { participantKey } from '../../call/call.ts'
import type { AppendResult, Push, SessionIdentity, Sessions, Sink } from '../../ports.ts'
import { type LogEntry, SessionLog } from './session-log.ts'

/** One session, with its socket or waiting. Sets are made when first needed: most sessions are idle. */
interface Session {
  readonly identity: SessionIdentity
  readonly participantKey: string
  log: SessionLog | undefined
  sink: Sink | undefined
  /** False until the state of the participant's calls was read; pushes wait in the log. */
  ready: boolean
  closedByClient: boolean
  /** Calls that ring here. */
  ringing: Set<string> | undefined
  /** Calls in which it holds a place, and of those the ones that it took only by connecting. */
  places: Set<string> | undefined
  unsettled: Set<string> | undefined
  /** The last version of each of its calls that it was told. */
  versions: Map<string, number> | undefined
  /** Calls of whose end it was told since it connected; undefined once it has what dead sockets left behind. */
  overSinceOpen: Set<string> | undefined
}

export interface MemorySessionsOptions {
  /** How long final notices are worth telling, in ms [WS4]. */
  readonly windowMs: number
}

/** Dead sessions without a place that are remembered for a participant: as many as it may have sockets [WS7]. */
const maxDead = 20

/** The sessions of one process: the embedded default. */
export function createMemorySessions(options: MemorySessionsOptions): Sessions {
  const sessions = new Map<string, Session>()
  const live = new Map<string, Set<Session>>()
  const detached = new Map<string, Set<Session>>()
  /** The time, as whoever uses this last said. */
  let now = 0

  function add(index: Map<string, Set<Session>>, session: Session): void {
    const set = index.get(session.participantKey)
    if (set === undefined) index.set(session.participantKey, new Set([session]))
    else set.add(session)
  }
  function remove(index: Map<string, Set<Session>>, session: Session): void {
    const set = index.get(session.participantKey)
    set?.delete(session)
    if (set?.size === 0) index.delete(session.participantKey)
  }

  function create(identity: SessionIdentity, sink: Sink | undefined): void {
    const session: Session = {
      identity,
      participantKey: participantKey(identity.participant),
      log: undefined,
      sink,
      ready: false,
      closedByClient: false,
      ringing: undefined,
      places: undefined,
      unsettled: undefined,
      versions: undefined,
      overSinceOpen: sink === undefined ? undefined : new Set(),
    }
    sessions.set(identity.sessionId, session)
    add(sink === undefined ? detached : live, session)
  }

  function forget(session: Session): void {
    remove(detached, session)
    sessions.delete(session.identity.sessionId)
  }

  /** A client that connects and dies again and again does not fill the memory. */
  function forgetOldest(key: string): void {
    const dead = detached.get(key)
    if (dead === undefined || dead.size <= maxDead) return
    const oldest = [...dead].find(({ places }) => (places?.size ?? 0) === 0)
    if (oldest !== undefined) forget(oldest)
  }

  function append(session: Session, push: Push, at = now): AppendResult {
    if (!isNews(session, push)) return 'dropped'
    session.log ??= new SessionLog()
    if (session.sink === undefined) {
      if (session.closedByClient && push.kind !== 'state') return 'dropped'
      return session.log.appendWaiting(push, at) === undefined ? 'full' : 'kept'
    }
    const seq = session.log.append(push, at)
    if (!session.ready) return 'kept'
    session.sink.send(push.text)
    session.sink.pushed(seq)
    return 'sent'
  }

  return {
    open(identity, sink) {
      create(identity, sink)
    },
    ready(sessionId) {
      const session = sessions.get(sessionId)
      if (session?.sink === undefined || session.ready) return
      session.ready = true
      for (const { seq, push } of session.log?.all() ?? []) {
        session.sink.send(push.text)
        session.sink.pushed(seq)
      }
    },
    openDetached(identity, at) {
      now = Math.max(now, at)
      if (!sessions.has(identity.sessionId)) create(identity, undefined)
    },
    detach(sessionId, clean, at) {
      const session = sessions.get(sessionId)
      if (session?.sink === undefined) return
      now = at
      session.sink = undefined
      session.closedByClient = clean
      remove(live, session)
      add(detached, session)
      if (clean) {
        session.log?.retain(({ push }) => push.kind === 'state')
        session.ringing = undefined
      }
      session.log?.retain(({ push }) => push.kind !== 'ringing')
      if (isForgettable(session)) forget(session)
      else forgetOldest(session.participantKey)
    },
    sinkOf: (sessionId) => sessions.get(sessionId)?.sink,
    liveOf(participant) {
      const set = live.get(participantKey(participant))
      return set === undefined ? [] : [...set].map((session) => session.identity.sessionId)
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
          if (except.includes(session.identity.sessionId)) {
            session.ringing.delete(push.call)
            session.versions?.delete(push.call)
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
      session?.log?.prove(seq, session.unsettled)
    },
    hold(sessionId, call, settled) {
      const session = sessions.get(sessionId)
      if (session === undefined) return
      session.places ??= new Set()
      session.places.add(call)
      if (settled) settle(session, call)
      else {
        session.unsettled ??= new Set()
        session.unsettled.add(call)
      }
    },
    release(sessionId, call) {
      const session = sessions.get(sessionId)
      if (session === undefined) return
      session.places?.delete(call)
      settle(session, call)
      session.ringing?.delete(call)
      session.versions?.delete(call)
      if (session.sink !== undefined) return
      // Whoever comes back is told how the call ended, and nothing else of it [WS4].
      session.log?.retain(({ push }) => push.call !== call || push.kind === 'final')
      if (isForgettable(session)) forget(session)
    },
    holdsAny: (sessionId) => (sessions.get(sessionId)?.places?.size ?? 0) > 0,
    inCall(sessionId) {
      const session = sessions.get(sessionId)
      return (session?.places?.size ?? 0) > 0 || (session?.ringing?.size ?? 0) > 0
    },
    move(call, from, to) {
      const source = sessions.get(from)
      const target = sessions.get(to)
      if (source === undefined || target === undefined || source === target) return
      for (const { push, at } of source.log?.take((entry) => entry.push.call === call) ?? []) append(target, push, at)
    },
    owing({ sessionId, participant, deviceId }) {
      const others = [...(live.get(participantKey(participant)) ?? [])]
      return others
        .filter(({ identity, log }) => {
          if (identity.sessionId === sessionId || identity.deviceId !== deviceId) return false
          return log?.all().some(({ push }) => push.kind === 'final')
        })
        .map(({ identity }) => identity.sessionId)
    },
    collectFinals(identity) {
      const target = sessions.get(identity.sessionId)
      const told = target?.overSinceOpen
      if (target === undefined || told === undefined) return
      for (const source of [...(detached.get(target.participantKey) ?? [])]) {
        const device = source.identity.deviceId
        if (device !== undefined && device !== identity.deviceId) continue
        // One dead socket's notice is for one session that comes back, and nobody hears the same twice.
        const isOwed = ({ push }: LogEntry) =>
          push.kind === 'final' && !target.places?.has(push.call) && !told.has(push.call)
        // From before a restart: how many sockets it stands for is not known.
        const entries = device === undefined ? source.log?.all().filter(isOwed) : source.log?.take(isOwed)
        for (const { push, at } of entries ?? []) append(target, push, at)
        if (isForgettable(source)) forget(source)
      }
      target.overSinceOpen = undefined
    },
    sweep(at) {
      now = at
      for (const set of [...detached.values()]) {
        for (const session of [...set]) {
          session.log?.retain((entry) => entry.push.kind !== 'final' || now - entry.at < options.windowMs)
          if (isForgettable(session)) forget(session)
        }
      }
    },
  }
}

/** A place that does not pass on any more: what its holder has received is for nobody else [PLACE2]. */
function settle(session: Session, call: string): void {
  if (session.unsettled?.delete(call)) session.log?.forgetProven(session.unsettled)
}

/** Whether a push tells the session something that it may know and does not know yet [ORD3, PLACE1]. */
function isNews(session: Session, push: Push): boolean {
  if (push.kind === 'relay') return true
  const { call, version } = push
  const last = session.versions?.get(call)
  if (version !== undefined && last !== undefined && version <= last) return false
  if (push.kind === 'final') {
    session.ringing?.delete(call)
    session.versions?.delete(call)
    session.overSinceOpen?.add(call)
    return true
  }
  if (push.kind === 'ringing') {
    session.ringing ??= new Set()
    session.ringing.add(call)
  }
  if (version !== undefined) {
    session.versions ??= new Map()
    session.versions.set(call, version)
  }
  return true
}

/** Nothing waits in it, and nothing can come to it any more. */
function isForgettable(session: Session): boolean {
  return (
    (session.places?.size ?? 0) === 0 &&
    (session.ringing?.size ?? 0) === 0 &&
    (session.log === undefined || session.log.size === 0)
  )
}
