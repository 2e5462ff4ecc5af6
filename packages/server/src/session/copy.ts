import type { Push } from '../ports/push.ts'
import type { Upstream } from '../ports/sessions.ts'
import { type LogEntry, SessionLog } from './log.ts'
import type { Kept, Parcel } from './parcel.ts'
import { createSession, loseSocket, type Session } from './session.ts'
import { Taken } from './taken.ts'

/**
 * A session as another process can go on with it: its state as one text, and a text for each entry of its log. Who reads
 * it is of the same version or of the next one; another shape is given another number.
 */
const shape = 1

type Pairs<T> = readonly (readonly [string, T])[]

interface State {
  readonly shape: number
  readonly identity: Session['identity']
  readonly epoch: string
  readonly upstream: Omit<Upstream, 'final'>
  readonly hasSocket: boolean
  /** `first`: of its log; 0 where that is empty. */
  readonly seqs: readonly [last: number, proven: number, readyFrom: number, lost: number, first: number]
  readonly times: readonly [openedAt: number, lostAt: number, idleSince: number]
  readonly flags: readonly [closed: boolean, closedByClient: boolean, broken: boolean]
  readonly ringing?: readonly string[] | undefined
  readonly places?: readonly string[] | undefined
  readonly unsettled?: readonly string[] | undefined
  readonly placeVersions?: Pairs<number> | undefined
  readonly versions?: Pairs<number> | undefined
  readonly peerVersions?: Pairs<number> | undefined
  readonly media?: Pairs<Push> | undefined
  readonly acknowledged?: Pairs<number> | undefined
  readonly overSinceOpen?: readonly string[] | undefined
  readonly over?: readonly string[] | undefined
  readonly kept?: Pairs<Kept> | undefined
  readonly gates?: Pairs<Push[] | null> | undefined
  readonly passed?: readonly string[] | undefined
  readonly parcels?: Pairs<Parcel> | undefined
  readonly accepted?: readonly string[] | undefined
  readonly taken?: Pairs<string> | undefined
  readonly turn?: number | undefined
  readonly isLostUnseen?: true | undefined
  readonly awaitedMs?: number | undefined
}

/** All of a session but its log. */
export function writeState(session: Session): string {
  const { log, identity, epoch, upstream } = session
  const state: State = {
    shape,
    identity: { ...identity, deviceId: identity.deviceId === undefined ? undefined : identity.deviceId },
    epoch,
    upstream: finalOf(upstream),
    hasSocket: session.sink !== undefined,
    seqs: [log?.last ?? 0, session.provenSeq, session.readyFrom, session.lostSeq, log?.all()[0]?.seq ?? 0],
    times: [session.openedAt, session.lostAt, session.idleSince],
    flags: [session.closed, session.closedByClient, session.broken],
    ringing: listOf(session.ringing),
    places: listOf(session.places),
    unsettled: listOf(session.unsettled),
    placeVersions: listOf(session.placeVersions),
    versions: listOf(session.versions),
    peerVersions: listOf(session.peerVersions),
    media: listOf(session.media),
    acknowledged: listOf(session.acknowledged),
    overSinceOpen: session.overSinceOpen && [...session.overSinceOpen],
    over: session.over,
    kept: listOf(session.kept),
    gates: listOf(session.gates),
    passed: session.passed,
    parcels: listOf(session.parcels),
    accepted: session.accepted,
    taken: session.taken && [...session.taken].map(([sender, taken]) => [sender, taken.write()] as const),
    turn: session.turn === 0 ? undefined : session.turn,
    isLostUnseen: session.isLostUnseen || undefined,
    awaitedMs: session.awaitedMs,
  }
  return JSON.stringify(state)
}

/**
 * Where this is saved, what the replies after those say of relays may not be: the session that took them is another one, and
 * may be another node's by now. Its client sends those requests again [EXT4].
 */
function finalOf({ handled, final, replies, dropped }: Upstream): State['upstream'] {
  return { handled: Math.min(handled, final), replies: replies.filter(({ n }) => n <= final), dropped }
}

function stateIn(text: string): State | undefined {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/**
 * A session from its copy, without a socket: where it had one, it lost it at `at`. Undefined where the copy is of a shape
 * that is not known here.
 */
export function readSession(state: string, entries: readonly string[], at: number): Session | undefined {
  const read = stateIn(state)
  if (read?.shape !== shape) return undefined
  const [openedAt, lostAt, idleSince] = read.times
  const [last, provenSeq, readyFrom, lostSeq, first] = read.seqs
  const [closed, closedByClient, broken] = read.flags
  const upstream = { ...read.upstream, final: read.upstream.handled }
  const session = createSession(read.identity, undefined, read.epoch, upstream, openedAt)
  const log = entries.map(readEntry)
  if (last > 0 || log.length > 0) session.log = SessionLog.of(log, last, provenSeq)
  Object.assign(session, { provenSeq, readyFrom, lostSeq, lostAt, idleSince, closed, closedByClient, broken })
  // Its log was lost, and perhaps began again: what its client has missed is not in it.
  const found = log[0]?.seq ?? 0
  if (first === 0 ? found > last + 1 : found !== first) session.broken = true
  session.ringing = setOf(read.ringing)
  session.places = setOf(read.places)
  session.unsettled = setOf(read.unsettled)
  session.placeVersions = mapOf(read.placeVersions)
  session.versions = mapOf(read.versions)
  session.peerVersions = mapOf(read.peerVersions)
  session.media = mapOf(read.media)
  session.acknowledged = mapOf(read.acknowledged)
  session.overSinceOpen = setOf(read.overSinceOpen)
  session.over = read.over && [...read.over]
  session.kept = mapOf(read.kept)
  session.gates = mapOf(read.gates)
  session.passed = read.passed && [...read.passed]
  session.parcels = mapOf(read.parcels)
  session.accepted = read.accepted && [...read.accepted]
  session.taken = takenOf(read.taken, log)
  session.turn = read.turn ?? 0
  session.awaitedMs = read.awaitedMs
  if (read.hasSocket) loseSocket(session, false, at, {})
  session.isLostUnseen = read.hasSocket || read.isLostUnseen === true
  return session
}

/** The log says what was taken since the rest was saved. */
function takenOf(saved: Pairs<string> | undefined, log: readonly LogEntry[]): Map<string, Taken> | undefined {
  const taken = new Map(saved?.map(([sender, text]) => [sender, Taken.read(text)]))
  for (const { push } of log) {
    if (push.source === undefined) continue
    const { sessionId, n } = push.source
    const known = taken.get(sessionId) ?? new Taken()
    known.take(n)
    taken.set(sessionId, known)
  }
  return taken.size === 0 ? undefined : taken
}

const kinds = [
  'ringing',
  'stop',
  'state',
  'relay',
  'media',
  'final',
  'notice',
  'peer',
] as const satisfies Push['kind'][]

/** An entry of a log. A push is one line of JSON, and what follows it may be anything. */
export function writeEntry({ seq, push, at }: LogEntry): string {
  const { kind, version = '', source, text, call, forPlace, parcel = '', device } = push
  const { sessionId = '', n = '' } = source ?? {}
  const about = [
    seq,
    at,
    kinds.indexOf(kind),
    version,
    forPlace === true ? 1 : '',
    sessionId,
    n,
    parcel,
    writeDevice(device),
  ]
  return `${about.join(' ')}\n${text}\n${call}`
}

/** It may have spaces and line ends in it. */
const writeDevice = (device: string | undefined) => (device === undefined ? '' : Buffer.from(device).toBase64())
const readDevice = (field: string) => Buffer.from(Uint8Array.fromBase64(field)).toString()

function readEntry(entry: string): LogEntry {
  const first = entry.indexOf('\n')
  const second = entry.indexOf('\n', first + 1)
  const about = entry.slice(0, first).split(' ')
  const [seq, at, kind, version, forPlace, sessionId = '', n, parcel = '', device = ''] = about
  const text = entry.slice(first + 1, second)
  const push: Push = {
    kind: kinds[Number(kind)] ?? 'notice',
    call: entry.slice(second + 1),
    version: version === '' ? undefined : Number(version),
    text,
    ...(sessionId !== '' && { source: { sessionId, n: Number(n) } }),
    ...(forPlace === '1' && { forPlace: true }),
    ...(parcel !== '' && { parcel }),
    ...(device !== '' && { device: readDevice(device) }),
  }
  return { seq: Number(seq), push, at: Number(at), bytes: text.length }
}

function listOf<T>(from: Iterable<T> | undefined): readonly T[] | undefined {
  const list = from === undefined ? [] : [...from]
  return list.length === 0 ? undefined : list
}

function setOf(from: readonly string[] | undefined): Set<string> | undefined {
  return from === undefined ? undefined : new Set(from)
}

function mapOf<T>(from: Pairs<T> | undefined): Map<string, T> | undefined {
  return from === undefined ? undefined : new Map(from)
}
