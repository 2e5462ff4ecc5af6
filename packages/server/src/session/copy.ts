import type { Push } from '../ports/push.ts'
import type { Upstream } from '../ports/sessions.ts'
import { copiedCalls, readCall, type SessionCall } from './calls.ts'
import { type LogEntry, SessionLog } from './log.ts'
import { createSession, forgetRings, lostSocket, mayResume, type Session } from './session.ts'
import { Taken } from './taken.ts'

/**
 * A session as another process can go on with it: its state as one text, and a text for each entry of its log. A change
 * of the shape gets another number: a reader that does not know it begins a new session [RES2].
 */
const shape = 2

/** These fields belong to one process. A copy holds all others. */
type OfOneProcess = 'participantKey' | 'participantHash' | 'log' | 'isTaken' | 'saving'
type Field = Exclude<keyof Session, OfOneProcess>

interface Codec<T> {
  /** Plain data. */
  readonly write: (value: T) => unknown
  readonly read: (saved: never, from: Origin) => T
}

/** The reader's knowledge besides a field. */
interface Origin {
  readonly log: readonly LogEntry[]
  /** The last seq of the log. */
  readonly last: number
  /** When the session lost its socket, if it had one. */
  readonly at: number
}

const asItIs = { write: (value: unknown) => value, read: (saved: never) => saved }

/** How a copy holds each field. The writer and the reader are made of this. */
const codecs: { readonly [Name in Field]: Codec<Session[Name]> } = {
  identity: asItIs,
  epoch: asItIs,
  earlier: asItIs,
  openedAt: asItIs,
  provenSeq: asItIs,
  turn: asItIs,
  broken: asItIs,
  hasLooked: asItIs,
  upstream: { write: finalOf, read: (saved: Omit<Upstream, 'final'>) => ({ ...saved, final: saved.handled }) },
  socket: {
    write: (socket) => (socket.is === 'open' ? null : { ...socket, busySink: undefined }),
    read: (saved: Session['socket'] | null, { at, last }) => saved ?? lostSocket(at, last, true),
  },
  calls: {
    write: (calls) => (calls === undefined || calls.size === 0 ? undefined : copiedCalls(calls)),
    read: (saved: Pairs<SessionCall> | undefined) => saved && new Map(saved.map(([id, call]) => [id, readCall(call)])),
  },
  taken: { write: (taken) => pairsOf(taken)?.map(([sender, each]) => [sender, each.write()]), read: takenOf },
}

type Pairs<T> = readonly (readonly [string, T])[]

const names = Object.keys(codecs) as Field[]

type State = { readonly [Name in Field]?: unknown } & {
  readonly shape: number
  /** The first and the last seq of the log; 0: there is none. */
  readonly seqs: readonly [first: number, last: number]
}

/** All of a session but its log. */
export function writeState(session: Session): string {
  const { log } = session
  const state: Record<string, unknown> = { shape, seqs: [log?.all()[0]?.seq ?? 0, log?.last ?? 0] }
  for (const name of names) state[name] = (codecs[name].write as Codec<unknown>['write'])(session[name])
  return JSON.stringify(state)
}

/**
 * Replies to relays that are not saved yet do not belong into a copy: the session that took those relays may be another node's
 * by now. The client sends these requests again [EXT4].
 */
function finalOf({ handled, final, replies, dropped }: Upstream): Omit<Upstream, 'final'> {
  return { handled: Math.min(handled, final), replies: replies.filter(({ n }) => n <= final), dropped }
}

function pairsOf<T>(map: ReadonlyMap<string, T> | undefined): [string, T][] | undefined {
  return map === undefined || map.size === 0 ? undefined : [...map]
}

function stateIn(text: string): State | undefined {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/**
 * A session from its copy, without a socket: if it had one, it lost that at `at`. Undefined if the copy has a shape that is not
 * known here.
 */
export function readSession(text: string, entries: readonly string[], at: number): Session | undefined {
  const state = stateIn(text)
  if (state?.shape !== shape) return undefined
  const log = entries.map(readEntry)
  const [first, last] = state.seqs
  const origin: Origin = { log, last: Math.max(last, log.at(-1)?.seq ?? 0), at }
  const read = Object.fromEntries(
    names.map((name) => [name, (codecs[name].read as (saved: unknown, from: Origin) => unknown)(state[name], origin)]),
  ) as Pick<Session, Field>
  const session = createSession(read.identity, undefined, read.epoch, read.upstream, read.openedAt)
  Object.assign(session, read)
  if (origin.last > 0) session.log = SessionLog.of(log, origin.last, session.provenSeq)
  // Its log was lost, and perhaps began again: what its client has missed is not in it.
  const found = log[0]?.seq ?? 0
  if (first === 0 ? found > last + 1 : found !== first) session.broken = true
  if (state.socket === null && !mayResume(session)) forgetRings(session)
  return session
}

/** The log says what was taken since the rest was saved. */
function takenOf(saved: Pairs<string> | undefined, { log }: Origin): Map<string, Taken> | undefined {
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
  const { kind, version = '', source, text, call, forPlace, parcel = '', device, needs = '' } = push
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
    needs,
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
  const [seq, at, kind, version, forPlace, sessionId = '', n, parcel = '', device = '', needs = ''] = about
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
    ...(needs !== '' && { needs: needs as NonNullable<Push['needs']> }),
  }
  return { seq: Number(seq), push, at: Number(at), bytes: text.length }
}
