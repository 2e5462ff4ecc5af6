import { participantKey } from '../call/call.ts'
import { isLast } from '../ports/push.ts'
import {
  type Departure,
  type ResumedSession,
  type ResumeRequest,
  type SeenSession,
  type SessionIdentity,
  type Sink,
  sessionLogLimits,
  type Upstream,
} from '../ports/sessions.ts'
import {
  callsThat,
  hasParcel,
  isLive,
  isRinging,
  isThere,
  isUnsettled,
  placesOf,
  type SessionCall,
  someCall,
} from './calls.ts'
import { type LogEntry, SessionLog } from './log.ts'
import type { Taken } from './taken.ts'

/** Of a call's versions, where none is named. */
export const newestVersion = Number.MAX_SAFE_INTEGER

/**
 * The socket of a session.
 *
 *     open ── the socket closed, or its owner died ──▶ lost
 *       ▲                                               │
 *       └─────────── the client resumed ────────────────┘
 */
export type Socket = OpenSocket | LostSocket

export interface OpenSocket {
  readonly is: 'open'
  readonly sink: Sink
  /** False until the state of the participant's calls was read; until then pushes wait in the log. */
  isReady: boolean
  /** The socket gets the pushes after this seq. */
  readonly readyFrom: number
  /** The rings that were reported as unsure; undefined while the client answers pings [PING1]. */
  unsure: Set<string> | undefined
}

export interface LostSocket {
  readonly is: 'lost'
  /** In ms since the epoch. */
  at: number
  /** The session's owner died, so nobody saw when its client left. */
  readonly isUnseen: boolean
  /** The last seq of the log at that time. */
  readonly seq: number
  /** The client closed the socket, and may come back, or has said goodbye; undefined: it did neither. */
  readonly closed: 'for now' | 'for good' | undefined
  /** Milliseconds within which the service expects the client back, if it closed the socket with 1012 [PEER1]. */
  readonly awaitedMs: number | undefined
  /** When the time began after which the session is forgotten: with the loss, or with the end of its last call. */
  idleSince: number
  /** The socket, if something that came on it is still under way. */
  readonly busySink: Sink | undefined
}

/** A name that a log had, and what belongs to it: under another owner the session may have gone on differently. */
export interface EarlierEpoch {
  readonly epoch: string
  /** The last push. */
  readonly seq: number
  /** Stands for all that the session knew of its calls; copies of earlier versions lack it. */
  readonly calls?: string
}

/** What the next save writes of a session, and under which fence. */
export interface Saving {
  isListed: boolean
  /** More than the log has changed. */
  isChanged: boolean
  isSaved: boolean
  /** The store's copy is worth nothing, so the next save writes all of it. */
  isStale: boolean
  /** How often the session has changed its owner. The store refuses a save by an earlier owner. */
  fence: number
}

/** One session. Maps are made when first needed: most sessions are idle. */
export interface Session {
  /** Another one with each new token. */
  identity: SessionIdentity
  readonly participantKey: string
  /** Names its participant in a store that several processes share. Made when it is first needed there. */
  participantHash: string | undefined
  /** Names the incarnation of the log. A client that comes back names it too [RES2]. */
  epoch: string
  /** What the log was called under earlier owners, oldest first. See `branchOff` in branches.ts. */
  earlier: readonly EarlierEpoch[] | undefined
  readonly upstream: Upstream
  log: SessionLog | undefined
  socket: Socket
  readonly openedAt: number
  /** The client has received everything up to here. */
  provenSeq: number
  /** The calls that the session knows. Those with which it has nothing to do any more come in the order in which it left them. */
  calls: Map<string, SessionCall> | undefined
  /** Which requests of each sender it has taken [EXT4]. */
  taken: Map<string, Taken> | undefined
  /** Counts the sockets that came back. Of several at once the newest wins [RES1]. */
  turn: number
  /** A part of the log went to another session, so this one cannot be resumed any more [RES2]. */
  broken: boolean
  /** The session has asked for what dead sockets of its device left behind [WS4]. */
  hasLooked: boolean
  /** The owner was silent, and may go on. Until its time is over the store says that the session is still that owner's. */
  isTaken: boolean
  readonly saving: Saving
}

export function createSession(
  identity: SessionIdentity,
  sink: Sink | undefined,
  epoch: string,
  upstream: Upstream,
  at: number,
): Session {
  return {
    identity,
    participantKey: participantKey(identity.participant),
    participantHash: undefined,
    epoch,
    earlier: undefined,
    upstream,
    log: undefined,
    socket: sink === undefined ? lostSocket(at) : openSocket(sink, 0),
    openedAt: at,
    provenSeq: 0,
    calls: undefined,
    taken: undefined,
    turn: 0,
    broken: false,
    hasLooked: sink === undefined,
    isTaken: false,
    saving: { isListed: false, isChanged: false, isSaved: false, isStale: false, fence: 1 },
  }
}

/** A session whose client has come back: what goes by the connection is that of the new one. */
export function renewedIdentity(
  before: SessionIdentity,
  { expiresAt, appVersion, can }: SessionIdentity,
): SessionIdentity {
  const { can: _, ...rest } = before
  return { ...rest, expiresAt, appVersion, ...(can !== undefined && { can }) }
}

export function openSocket(sink: Sink, readyFrom: number): OpenSocket {
  return { is: 'open', sink, isReady: false, readyFrom, unsure: undefined }
}

/** The socket of a session that has none, or has lost it unseen. */
export function lostSocket(at: number, seq = 0, isUnseen = false): LostSocket {
  return { is: 'lost', at, isUnseen, seq, closed: undefined, awaitedMs: undefined, idleSince: at, busySink: undefined }
}

export const isOpen = ({ socket }: Session) => socket.is === 'open'

export function sinkOf({ socket }: Session): Sink | undefined {
  return socket.is === 'open' ? socket.sink : undefined
}

/** Its client may be there. A socket that is closed stays the session's until what came on it is done. */
export const hasClient = ({ socket }: Session) => socket.is === 'open' && !socket.sink.isClosed

export function lostOf(session: Session | undefined): LostSocket | undefined {
  return session?.socket.is === 'lost' ? session.socket : undefined
}

/** A call rings at the session, and its client does not answer pings: it may be asleep [PING1]. */
export function isUnsure(socket: Socket): boolean {
  return socket.is === 'open' && socket.unsure !== undefined
}

/** As a backend is shown it [SRV2]. */
export function seenOf({ identity, openedAt, socket }: Session): SeenSession {
  const { sessionId, deviceId, extended, appVersion = null } = identity
  return { sessionId, deviceId, extended, openedAt, appVersion, isUnsure: isUnsure(socket) }
}

/** The socket on which something may be under way that the client asked for. */
export function sinkToRetire({ socket }: Session): Sink | undefined {
  return socket.is === 'open' ? socket.sink : socket.busySink
}

/** The client may come back to it, and finds its log whole [RES1]. */
export function mayResume({ identity, socket, broken }: Session): boolean {
  return identity.extended && !broken && !(socket.is === 'lost' && socket.closed === 'for good')
}

/** It has no socket, nothing waits in it, nothing can come to it, and nobody can resume it. */
export function isForgettable(session: Session): boolean {
  if (isOpen(session) || mayResume(session) || session.isTaken || (session.log?.size ?? 0) > 0) return false
  return !someCall(session, (call) => isThere(call) || hasParcel(call))
}

/** The client has received everything up to `seq`. An extended one may still ask for it again [RES1]. */
export function prove(session: Session, seq: number): void {
  // A push that was not given out yet cannot have arrived.
  if (seq > (session.log?.last ?? 0)) return
  session.provenSeq = Math.max(session.provenSeq, seq)
  if (!session.identity.extended) session.log?.prove(seq, callsThat(session, isUnsettled))
}

/** Calls whose ring its client was not proven to have received, and has where it has everything up to `seq`. */
function ringsUntil({ log, provenSeq }: Session, seq: number): string[] {
  const isUnproven = (entry: LogEntry) => entry.seq > provenSeq && entry.seq <= seq && entry.push.kind === 'ringing'
  return log?.find(isUnproven).map(({ push }) => push.call) ?? []
}

/** The session as its resume finds it; its client has everything up to `seq`. */
export function resumedAt(session: Session, seq: number): ResumedSession {
  const { epoch, upstream } = session
  const ringing = callsThat(session, isRinging)
  return { epoch, upstream, rings: ringsUntil(session, seq), ringing, places: placesOf(session) }
}

/** It has had no socket at least since then, or may have had none. */
export function goneSince({ socket, openedAt }: Session): number {
  return socket.is === 'lost' && !socket.isUnseen ? socket.at : openedAt
}

/** The calls that it has, or had, to do with, as far as it remembers them. */
export function callsOf({ log, calls }: Session): Set<string> {
  const all = new Set(calls?.keys())
  for (const { push } of log?.all() ?? []) all.add(push.call)
  return all
}

/** It has no call, nothing rings there, and its client is proven to have received everything. */
export function isIdle(session: Session): boolean {
  const { socket, log, provenSeq } = session
  return socket.is === 'open' && socket.isReady && !someCall(session, isLive) && (log?.last ?? 0) <= provenSeq
}

/** Whether its client was not proven to have received how a call ended. */
export function hasUndeliveredFinal(session: Session): boolean {
  const from = session.identity.extended ? session.provenSeq : 0
  return session.log?.all().some(({ seq, push }) => seq > from && isLast(push)) ?? false
}

/** Whether something waits in its log that says how a call ended, for a client that comes back [WS4]. */
export function hasLast({ log }: Session): boolean {
  return log?.all().some(({ push }) => isLast(push)) ?? false
}

/** Its socket is gone, and with it what nobody will ask for. */
export function loseSocket(
  session: Session,
  clean: boolean,
  at: number,
  { closed = clean, awaitedMs }: Departure,
): void {
  const { socket, log } = session
  const sent = sentSeq(session)
  session.socket = {
    ...lostSocket(at, log?.last ?? 0),
    closed: clean ? 'for good' : closed ? 'for now' : undefined,
    awaitedMs,
    // A socket that is quiet has nothing to wait for, and much that it keeps in memory.
    busySink: socket.is === 'open' && socket.sink.isBusy ? socket.sink : undefined,
  }
  if (clean) {
    const isKept = ({ seq, push }: LogEntry) => seq > sent || session.calls?.get(push.call)?.place === 'unsettled'
    log?.retain(isKept)
  }
  // It rings again for a client that comes back: the time that remains is another one.
  if (!mayResume(session)) forgetRings(session)
}

export function forgetRings({ log }: Session): void {
  log?.retain(({ push }) => push.kind !== 'ringing')
}

/** Up to where the socket was sent everything: what it was handed in its last moment may not have been written. */
function sentSeq({ socket, log }: Session): number {
  if (socket.is === 'lost') return 0
  return Math.min(socket.sink.writtenSeq, socket.isReady ? (log?.last ?? 0) : socket.readyFrom)
}

/** Whether a resume can be exact [RES1, RES2]. */
export function canResume(session: Session, request: ResumeRequest, at: number, windowMs: number): boolean {
  if (!mayResume(session)) return false
  if (!isOfLog(session, request) || (request.replied ?? 0) < session.upstream.dropped) return false
  const { socket, log } = session
  if (socket.is === 'lost') {
    if (at - socket.at > windowMs) return false
    // The client cannot have seen a push that no socket got.
    if (request.seq > socket.seq && !mayBeAhead(socket, request.seq)) return false
  }
  // As many as it lacks are its client's already.
  const seq = socket.is === 'lost' ? Math.min(request.seq, socket.seq) : request.seq
  return log === undefined ? seq === 0 : log.reachesBackTo(seq)
}

/**
 * An owner that was cut off from the store, and is taken for dead, may have told its client more relays than it had saved:
 * what came here since gets later numbers [RES1].
 */
function mayBeAhead({ isUnseen, seq: lostSeq }: LostSocket, seq: number): boolean {
  return isUnseen && seq - lostSeq <= sessionLogLimits.events
}

/** Goes on after what its client has. Answers whether its client has relays that were not saved. */
export function catchUpWith(session: Session, { epoch, seq }: Pick<ResumeRequest, 'epoch' | 'seq'>): boolean {
  const { socket } = session
  if (socket.is === 'open' || seq <= socket.seq) return false
  session.log ??= new SessionLog()
  session.log.renumber(socket.seq, seq)
  session.earlier = session.earlier?.map((each) => (each.epoch === epoch ? { ...each, seq } : each))
  return true
}

/** Whether everything that its client saw comes from this log. */
function isOfLog({ epoch, earlier, socket }: Session, request: ResumeRequest): boolean {
  if (epoch === request.epoch) return true
  const named = earlier?.findLast((each) => each.epoch === request.epoch)
  if (named === undefined) return false
  if (request.seq <= named.seq) return true
  // Only the owner that had the socket may have told its client more than it had saved. Those since have told it nothing.
  return socket.is === 'lost' && named.seq === socket.seq && mayBeAhead(socket, request.seq)
}

/** Its client, or the next holder of its places, gets the pushes after this seq. */
export function heardSeq(session: Session): number {
  const { socket, log, provenSeq, identity } = session
  if (socket.is === 'open') return socket.isReady ? (log?.last ?? 0) : socket.readyFrom
  if (mayResume(session)) return socket.seq
  return identity.extended ? provenSeq : 0
}
