import { participantKey } from '../call/call.ts'
import { isLast, type Push } from '../ports/push.ts'
import {
  type Departure,
  type ResumeRequest,
  type SessionIdentity,
  type Sink,
  sessionLogLimits,
  type Upstream,
} from '../ports/sessions.ts'
import { type LogEntry, SessionLog } from './log.ts'
import type { Kept, Parcel } from './parcel.ts'
import type { Taken } from './taken.ts'

/** Of a call's versions, where none is named. */
export const newestVersion = Number.MAX_SAFE_INTEGER

/** One session, with its socket or waiting. Sets are made when first needed: most sessions are idle. */
export interface Session {
  /** Another one with each new token. */
  identity: SessionIdentity
  readonly participantKey: string
  /** Names the incarnation of the log: who comes back names it, too [RES2]. */
  readonly epoch: string
  readonly upstream: Upstream
  log: SessionLog | undefined
  sink: Sink | undefined
  /** The socket that it lost last: what came on it may still be under way. */
  lostSink: Sink | undefined
  /** False until the state of the participant's calls was read; pushes wait in the log. */
  ready: boolean
  /** What `ready` hands out comes after this seq. */
  readyFrom: number
  /** The client has received everything up to here. */
  provenSeq: number
  readonly openedAt: number
  lostAt: number
  /** Nobody saw when: its owner died. */
  isLostUnseen: boolean
  /** The last of its log when it lost its socket. */
  lostSeq: number
  /** When the window began in which it is remembered: with the loss, or with the end of its last call. */
  idleSince: number
  /** Its client closed its last socket, and has not come back. */
  closed: boolean
  /** Its client closed it for good. */
  closedByClient: boolean
  /** Milliseconds within which the service expects its client back, if it closed the last socket with 1012 [PEER1]. */
  awaitedMs: number | undefined
  /** Its owner was silent, and may go on: until its time is over the store says that the session is another node's. */
  isTaken: boolean
  /** Something of its log went to another session: it cannot be resumed any more [RES2]. */
  broken: boolean
  /** Calls that ring here. */
  ringing: Set<string> | undefined
  /** The rings that were reported as unsure; undefined while its client answers pings [PING1]. */
  unsure: Set<string> | undefined
  /** Calls in which it holds a place, and of those the ones that it took only by connecting. */
  places: Set<string> | undefined
  unsettled: Set<string> | undefined
  /** By which version of its call it has a place, or has it no more: what is told late of an older one changes nothing. */
  placeVersions: Map<string, number> | undefined
  /** The last version of each of its calls that it was told. */
  versions: Map<string, number> | undefined
  /** The same of what it was told of the other side's absence [PEER1]. */
  peerVersions: Map<string, number> | undefined
  /** What the peer of each of its calls sends, as it said last [MEDIA1]. */
  media: Map<string, Push> | undefined
  /** Up to which seq its client has each call's pushes because its media flows, where no pong has proven them [PLACE5]. */
  acknowledged: Map<string, number> | undefined
  /** Calls of whose end it was told since it connected; undefined once it has what dead sockets left behind. */
  overSinceOpen: Set<string> | undefined
  /** The calls of whose end it was told last: what of them comes late is no news. */
  over: string[] | undefined
  /** What it sent for calls that were not accepted yet [REL2]. */
  kept: Map<string, Kept> | undefined
  /** Relays that wait until what was kept before the accept has gone in front of them; null once they went. */
  gates: Map<string, Push[] | null> | undefined
  /** Calls that were answered elsewhere, oldest first. */
  passed: string[] | undefined
  /** What it gave to who took its place, until that has it for sure. */
  parcels: Map<string, Parcel> | undefined
  /** What it took so from others, oldest first. */
  accepted: string[] | undefined
  /** Which requests of each sender it has taken [EXT4]. */
  taken: Map<string, Taken> | undefined
  /** Whose turn it was last of those that came back: of several at once the newest wins [RES1]. */
  turn: number
  /** What a save has to write: whether it is in the list of those, whether more than its log has changed, whether it was saved. */
  isListed: boolean
  isChanged: boolean
  isSaved: boolean
  /** What the store has of it is worth nothing: all of it is written. */
  isStale: boolean
  /** How often it has changed its owner: what an owner of before saves is refused. */
  fence: number
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
    epoch,
    upstream,
    log: undefined,
    sink,
    lostSink: undefined,
    ready: false,
    readyFrom: 0,
    provenSeq: 0,
    openedAt: at,
    lostAt: at,
    isLostUnseen: false,
    lostSeq: 0,
    idleSince: at,
    closed: false,
    closedByClient: false,
    awaitedMs: undefined,
    isTaken: false,
    broken: false,
    ringing: undefined,
    unsure: undefined,
    places: undefined,
    unsettled: undefined,
    versions: undefined,
    peerVersions: undefined,
    media: undefined,
    acknowledged: undefined,
    overSinceOpen: sink === undefined ? undefined : new Set(),
    over: undefined,
    kept: undefined,
    gates: undefined,
    passed: undefined,
    placeVersions: undefined,
    parcels: undefined,
    accepted: undefined,
    taken: undefined,
    turn: 0,
    isListed: false,
    isChanged: false,
    isSaved: false,
    isStale: false,
    fence: 1,
  }
}

/** Its client may come back to it, and finds its log whole [RES1]. */
export function mayResume({ identity, closedByClient, broken }: Session): boolean {
  return identity.extended && !closedByClient && !broken
}

/** Nothing waits in it, nothing can come to it, and nobody can resume it. */
export function isForgettable(session: Session): boolean {
  if (mayResume(session) || session.isTaken || (session.parcels?.size ?? 0) > 0) return false
  const { places, ringing, log } = session
  return (places?.size ?? 0) === 0 && (ringing?.size ?? 0) === 0 && (log === undefined || log.size === 0)
}

/** The client has received everything up to `seq`. An extended one may still ask for it again [RES1]. */
export function prove(session: Session, seq: number): void {
  // What was not given out yet cannot have arrived.
  if (seq > (session.log?.last ?? 0)) return
  session.provenSeq = Math.max(session.provenSeq, seq)
  if (!session.identity.extended) session.log?.prove(seq, session.unsettled)
}

/** Calls whose ring its client was not proven to have received, and has where it has everything up to `seq`. */
export function ringsUntil({ log, provenSeq }: Session, seq: number): string[] {
  const isUnproven = (entry: LogEntry) => entry.seq > provenSeq && entry.seq <= seq && entry.push.kind === 'ringing'
  return log?.find(isUnproven).map(({ push }) => push.call) ?? []
}

/** It has had no socket at least since then, or may have had none. */
export function goneSince({ isLostUnseen, openedAt, lostAt }: Session): number {
  return isLostUnseen ? openedAt : lostAt
}

/** The calls that it has, or had, to do with, as far as it remembers them. */
export function callsOf({ log, places, ringing, versions, over, kept }: Session): Set<string> {
  const calls = new Set([...(places ?? []), ...(ringing ?? []), ...(versions?.keys() ?? []), ...(over ?? [])])
  for (const call of kept?.keys() ?? []) calls.add(call)
  for (const { push } of log?.all() ?? []) calls.add(push.call)
  return calls
}

/** It has no call, nothing rings there, and its client is proven to have received everything. */
export function isIdle({ ready, places, ringing, parcels, kept, log, provenSeq }: Session): boolean {
  const hasCall = [places, ringing, parcels, kept].some((each) => (each?.size ?? 0) > 0)
  return ready && !hasCall && (log?.last ?? 0) <= provenSeq
}

/** Whether its client was not proven to have received how a call ended. */
export function hasUndeliveredFinal(session: Session): boolean {
  const from = session.identity.extended ? session.provenSeq : 0
  return session.log?.all().some(({ seq, push }) => seq > from && isLast(push)) ?? false
}

/** Whether something waits in its log that says how a call ended: for who comes back [WS4]. */
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
  const sent = sentSeq(session)
  // One that is quiet has nothing to wait for, and much that it keeps in memory.
  session.lostSink = session.sink?.isBusy ? session.sink : undefined
  session.sink = undefined
  session.unsure = undefined
  session.ready = false
  session.lostAt = at
  session.isLostUnseen = false
  session.lostSeq = session.log?.last ?? 0
  session.idleSince = at
  session.closed = closed
  session.closedByClient = clean
  session.awaitedMs = awaitedMs
  if (clean) {
    const isKept = ({ seq, push }: LogEntry) => seq > sent || session.unsettled?.has(push.call) === true
    session.log?.retain(isKept)
  }
  // It rings again for who comes back: the time that remains is another one.
  if (!mayResume(session)) session.log?.retain(({ push }) => push.kind !== 'ringing')
}

/** Up to where the socket was sent everything: what it was handed in its last moment may not have been written. */
function sentSeq({ sink, ready, readyFrom, log }: Session): number {
  return Math.min(sink?.writtenSeq ?? 0, ready ? (log?.last ?? 0) : readyFrom)
}

/** Whether a resume can be exact [RES1, RES2]. */
export function canResume(session: Session, request: ResumeRequest, at: number, windowMs: number): boolean {
  if (!mayResume(session)) return false
  if (session.epoch !== request.epoch || (request.replied ?? 0) < session.upstream.dropped) return false
  if (session.sink === undefined) {
    if (at - session.lostAt > windowMs) return false
    // What nobody was told since is not what its client has.
    if (request.seq > session.lostSeq && !mayBeAhead(session, request.seq)) return false
  }
  // As many as it lacks are its client's already.
  const seq = session.sink === undefined ? Math.min(request.seq, session.lostSeq) : request.seq
  return session.log === undefined ? seq === 0 : session.log.reachesBackTo(seq)
}

/**
 * An owner that was cut off from the store, and is taken for dead, may have told its client more relays than it had saved:
 * what came here since gets later numbers [RES1].
 */
function mayBeAhead({ isLostUnseen, lostSeq }: Session, seq: number): boolean {
  return isLostUnseen && seq - lostSeq <= sessionLogLimits.events
}

/** Goes on after what its client has. */
export function catchUpWith(session: Session, seq: number): void {
  if (session.sink !== undefined || seq <= session.lostSeq) return
  session.log ??= new SessionLog()
  session.log.renumber(session.lostSeq, seq)
}

/** What its client, or whoever takes its places, is told comes after this seq. */
export function heardSeq(session: Session): number {
  const { sink, ready, readyFrom, log, lostSeq, provenSeq, identity } = session
  if (sink !== undefined) return ready ? (log?.last ?? 0) : readyFrom
  if (mayResume(session)) return lostSeq
  return identity.extended ? provenSeq : 0
}
