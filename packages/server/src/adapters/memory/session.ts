import { participantKey } from '../../call/call.ts'
import { baseText, isLast, isRelay, type Push } from '../../ports/push.ts'
import {
  type KeepResult,
  type ResumeRequest,
  type SessionIdentity,
  type Sink,
  type Upstream,
  waitingLimits,
} from '../../ports/sessions.ts'
import { type LogEntry, SessionLog } from './session-log.ts'

/** One session, with its socket or waiting. Sets are made when first needed: most sessions are idle. */
export interface Session {
  /** Another one with each new token. */
  identity: SessionIdentity
  readonly participantKey: string
  /** Names the incarnation of the log; another one after the log was lost [RES2]. */
  epoch: string
  readonly upstream: Upstream
  log: SessionLog | undefined
  sink: Sink | undefined
  /** The socket that it lost last: what came on it may still be under way. */
  lostSink: Sink | undefined
  /** False until the state of the participant's calls was read; pushes wait in the log. */
  ready: boolean
  /** It may be told what waits, once it has heard of a loss that is to be told first. */
  opened: boolean
  /** Its log was lost, and it has not heard of that yet [RES4]. */
  due: { readonly epoch: string; text: string | undefined } | undefined
  /** What `ready` hands out comes after this seq. */
  readyFrom: number
  /** The client has received everything up to here. */
  provenSeq: number
  readonly openedAt: number
  lostAt: number
  /** The last of its log when it lost its socket. */
  lostSeq: number
  /** When the window began in which it is remembered: with the loss, or with the end of its last call. */
  idleSince: number
  /** Its client closed its last socket, and has not come back. */
  closed: boolean
  /** Its client closed it for good. */
  closedByClient: boolean
  /** Something of its log went to another session: it cannot be resumed any more [RES2]. */
  broken: boolean
  /** Calls that ring here. */
  ringing: Set<string> | undefined
  /** Calls in which it holds a place, and of those the ones that it took only by connecting. */
  places: Set<string> | undefined
  unsettled: Set<string> | undefined
  /** The last version of each of its calls that it was told. */
  versions: Map<string, number> | undefined
  /** The same of what it was told of the other side's absence [PEER1]. */
  peerVersions: Map<string, number> | undefined
  /** What the peer of each of its calls sends, as it said last [MEDIA1]. */
  media: Map<string, Push> | undefined
  /** Calls of whose end it was told since it connected; undefined once it has what dead sockets left behind. */
  overSinceOpen: Set<string> | undefined
  /** The calls of whose end it was told last: what of them comes late is no news. */
  over: string[] | undefined
  /** What it sent for calls that were not accepted yet [REL2]. */
  kept: Map<string, Kept> | undefined
  /** Relays that wait until what was kept before the accept has gone in front of them. */
  gates: Map<string, Push[]> | undefined
  /** Calls that were answered elsewhere, oldest first. */
  passed: string[] | undefined
}

/** Relays that wait for the accept; `taken` once it came. */
export interface Kept {
  readonly pushes: Push[]
  bytes: number
  taken: boolean
}

const mostOver = 64
const mostPassed = 32

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
    opened: false,
    due: undefined,
    readyFrom: 0,
    provenSeq: 0,
    openedAt: at,
    lostAt: at,
    lostSeq: 0,
    idleSince: at,
    closed: false,
    closedByClient: false,
    broken: false,
    ringing: undefined,
    places: undefined,
    unsettled: undefined,
    versions: undefined,
    peerVersions: undefined,
    media: undefined,
    overSinceOpen: sink === undefined ? undefined : new Set(),
    over: undefined,
    kept: undefined,
    gates: undefined,
    passed: undefined,
  }
}

/** Whether a push tells the session something that it may know and does not know yet [ORD3, PLACE1]. */
export function isNews(session: Session, push: Push): boolean {
  const isForExtended = push.kind === 'notice' || push.kind === 'peer' || push.kind === 'media'
  if (isForExtended && !session.identity.extended) return false
  if (isRelay(push)) return true
  if (push.kind === 'peer') return isPeerNews(session, push)
  const { call, version } = push
  const last = session.versions?.get(call)
  if (version !== undefined && last !== undefined && version <= last) return false
  if (session.over?.includes(call)) return false
  if (push.kind === 'stop') {
    session.ringing?.delete(call)
    session.kept?.delete(call)
    session.overSinceOpen?.add(call)
  }
  if (push.kind === 'final') {
    session.ringing?.delete(call)
    session.kept?.delete(call)
    session.overSinceOpen?.add(call)
    finish(session, call)
    return true
  }
  if (push.kind === 'ringing') {
    // A call rings once at a session, however often its session comes back.
    if (session.ringing?.has(call)) return false
    session.ringing ??= new Set()
    session.ringing.add(call)
  }
  noteVersion(session, push)
  if (push.kind === 'stop') pass(session, call)
  return true
}

function isPeerNews(session: Session, { call, version = 0 }: Push): boolean {
  if (session.over?.includes(call) || version <= (session.peerVersions?.get(call) ?? 0)) return false
  session.peerVersions ??= new Map()
  session.peerVersions.set(call, version)
  return true
}

/** Remembers what a peer said last of its media: whoever comes to have the place is told [MEDIA1]. */
export function noteMedia(session: Session, push: Push): void {
  if (push.kind !== 'media' || session.over?.includes(push.call)) return
  session.media ??= new Map()
  session.media.set(push.call, push)
}

/** What the peers of its calls said last of their media, and its client, which saw everything up to `seq`, does not find in its log. */
export function untoldMedia(session: Session, seq: number): readonly Push[] {
  const told = session.log?.find((entry) => entry.seq > seq && entry.push.kind === 'media') ?? []
  return [...(session.media?.values() ?? [])].filter(({ call }) => !told.some(({ push }) => push.call === call))
}

/** Whether a session has yet to hear that its call was accepted: told twice, its client would offer twice [PLACE5]. */
export function awaitsState(session: Session, { kind, call }: Push): boolean {
  if (kind !== 'state') return false
  const from = heardSeq(session)
  const waits = session.log?.find(({ seq, push }) => seq > from && push.kind === 'state' && push.call === call)
  return waits !== undefined && waits.length > 0
}

/** What its client, or whoever takes its places, is told comes after this seq. */
function heardSeq(session: Session): number {
  const { sink, ready, readyFrom, log, lostSeq, provenSeq, identity } = session
  if (sink !== undefined) return ready ? (log?.last ?? 0) : readyFrom
  if (mayResume(session)) return lostSeq
  return identity.extended ? provenSeq : 0
}

/** It hears no more of a call. */
export function finish(session: Session, call: string): void {
  session.versions?.delete(call)
  session.peerVersions?.delete(call)
  session.over ??= []
  if (session.over.includes(call)) return
  if (session.over.push(call) > mostOver) session.over.shift()
}

/** A call goes on elsewhere, and the session hears no more of it: of so many the version is remembered. */
export function pass(session: Session, call: string): void {
  session.passed ??= []
  if (session.passed.push(call) <= mostPassed) return
  const oldest = session.passed.shift() as string
  if (!session.passed.includes(oldest) && !session.places?.has(oldest)) session.versions?.delete(oldest)
}

/** What it was told last of a call. */
export function noteVersion(session: Session, { call, version }: Push): void {
  if (version === undefined) return
  session.versions ??= new Map()
  session.versions.set(call, Math.max(version, session.versions.get(call) ?? 0))
}

/** Its client may come back to it, and finds its log whole [RES1]. */
export function mayResume({ identity, closedByClient, broken }: Session): boolean {
  return identity.extended && !closedByClient && !broken
}

/** Nothing waits in it, nothing can come to it, and nobody can resume it. */
export function isForgettable(session: Session): boolean {
  if (mayResume(session)) return false
  const { places, ringing, log } = session
  return (places?.size ?? 0) === 0 && (ringing?.size ?? 0) === 0 && (log === undefined || log.size === 0)
}

/** A push as the session's client reads it: extended ones are numbered [EXT1]. */
export function render(session: Session, seq: number, push: Push): string {
  if (!session.identity.extended) return baseText(push)
  const version = push.version === undefined ? '' : `,"version":${push.version}`
  return `${push.text.slice(0, -1)},"seq":${seq}${version}}`
}

/**
 * What its client was not proven to have received about a call, for whoever takes its place [PLACE2]. It rings there no
 * more: a place is of a call that was answered.
 */
export function takeUnproven(session: Session, wanted: (push: Push) => boolean): LogEntry[] {
  const { log } = session
  if (log === undefined) return []
  const matches = (push: Push) => push.kind !== 'ringing' && wanted(push)
  if (!session.identity.extended) return log.take(({ push }) => matches(push))
  // What a session got that took the place only by connecting may have come to the wrong tab.
  const isUnproven = (seq: number, push: Push) => seq > session.provenSeq || session.unsettled?.has(push.call) === true
  const isOwed = ({ seq, push }: LogEntry) => isUnproven(seq, push) && matches(push)
  const owed = log.find(isOwed)
  // Who resumes this session now would not get what was given away. With a socket the numbers stay as they are.
  if (owed.length > 0) session.broken = true
  if (session.sink === undefined) log.retain((entry) => !isOwed(entry))
  return owed
}

/** The client has received everything up to `seq`. An extended one may still ask for it again [RES1]. */
export function prove(session: Session, seq: number): void {
  // What was not given out yet cannot have arrived: the proof is of a log that was lost meanwhile.
  if (seq > (session.log?.last ?? 0)) return
  session.provenSeq = Math.max(session.provenSeq, seq)
  if (!session.identity.extended) session.log?.prove(seq, session.unsettled)
}

/** A place that does not pass on any more: what its holder has received is for nobody else [PLACE2]. */
export function settle(session: Session, call: string): void {
  if (session.unsettled?.delete(call) && !session.identity.extended) session.log?.forgetProven(session.unsettled)
}

/** Whether its client was not proven to have received how a call ended. */
export function owesFinal(session: Session): boolean {
  const from = session.identity.extended ? session.provenSeq : 0
  return session.log?.all().some(({ seq, push }) => seq > from && isLast(push)) ?? false
}

/** Its socket is gone, and with it what nobody will ask for. */
export function loseSocket(session: Session, clean: boolean, at: number, closed: boolean): void {
  const sent = sentSeq(session)
  // One that is quiet has nothing to wait for, and much that it keeps in memory.
  session.lostSink = session.sink?.isBusy ? session.sink : undefined
  session.sink = undefined
  session.ready = false
  session.opened = false
  session.due = undefined
  session.lostAt = at
  session.lostSeq = session.log?.last ?? 0
  session.idleSince = at
  session.closed = closed
  session.closedByClient = clean
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
  if (session.sink === undefined && at - session.lostAt > windowMs) return false
  return session.log === undefined ? request.seq === 0 : session.log.reachesBackTo(request.seq)
}

/** Keeps a relay until its call is accepted [REL2]. */
export function keep(session: Session, push: Push): KeepResult {
  session.kept ??= new Map()
  const kept = session.kept.get(push.call) ?? { pushes: [], bytes: 0, taken: false }
  if (kept.taken) return 'closed'
  if (kept.pushes.length >= waitingLimits.entries || kept.bytes + push.text.length > waitingLimits.bytes) return 'full'
  kept.pushes.push(push)
  kept.bytes += push.text.length
  session.kept.set(push.call, kept)
  return 'kept'
}

export function takeKept(session: Session, call: string): readonly Push[] {
  session.kept ??= new Map()
  const kept = session.kept.get(call) ?? { pushes: [], bytes: 0, taken: true }
  kept.taken = true
  session.kept.set(call, kept)
  return kept.pushes
}

/** A place that passes on while it rings takes along what its holder sent. */
export function moveKept(call: string, source: Session, target: Session): void {
  const kept = source.kept?.get(call)
  if (kept === undefined) return
  target.kept ??= new Map()
  target.kept.set(call, kept)
}

/** The session has a place, again or for the first time. */
export function hold(session: Session, call: string, settled: boolean): void {
  session.places ??= new Set()
  session.places.add(call)
  if (settled) settle(session, call)
  else {
    session.unsettled ??= new Set()
    session.unsettled.add(call)
  }
}

/** Relays of the call are held back from now on. */
export function closeGate(session: Session, call: string): void {
  session.gates ??= new Map()
  if (!session.gates.has(call)) session.gates.set(call, [])
}

/** Starts the log again, as after a loss of everything that was in it. */
export function loseLog(session: Session, epoch: string): void {
  session.epoch = epoch
  session.log = new SessionLog()
  session.versions = undefined
  session.provenSeq = 0
  session.readyFrom = 0
  if (!session.identity.extended) return
  // The first of the new log is for what is told of the loss.
  session.log.reserve()
  session.readyFrom = 1
  if (session.sink === undefined) return
  session.ready = false
  session.due = { epoch, text: undefined }
}
