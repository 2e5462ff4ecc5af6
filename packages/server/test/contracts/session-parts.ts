import type { Participant } from '../../src/call/call.ts'
import type { Push } from '../../src/ports/push.ts'
import type { OpenSession, ResumeRequest, SessionIdentity, Sessions, Sink } from '../../src/ports/sessions.ts'
import { newSessionId } from '../../src/session/session-id.ts'

/** What a suite needs of an adapter besides its port. */
export interface SessionsHarness {
  readonly sessions: Sessions
  /** Other processes have sessions, too: what a request did may have to be asked of who took it [EXT4]. */
  readonly isShared?: true
  /** Empties the store, where there is one besides the memory of who serves. */
  emptyStore(): Promise<void>
  /** Resolves when everything that was appended has been handed to its socket. */
  settled(): Promise<void>
  close(): Promise<void>
}

/** The windows of the adapter under test, in ms; far apart, so that one is not taken for the other. */
export const windowMs = 60_000
export const resumeWindowMs = 120_000
export type OpenSessions = (options: { windowMs: number; resumeWindowMs: number }) => Promise<SessionsHarness>

/** A push as it reached a client. */
export interface Told {
  readonly event: string
  readonly data: { readonly n: number }
  readonly seq?: number
  readonly version?: number
}

/** A socket that keeps what it is handed. */
export interface Socket extends Sink {
  readonly told: Told[]
  /** What `pushed` said, in order. */
  readonly pushedSeqs: number[]
  /** The codes that it was closed with. */
  readonly closes: number[]
  /** How often it was retired. */
  retirements: number
  isBusy: boolean
  /** False: what it is handed waits, and is not written. */
  writes: boolean
  writtenSeq: number
}

export function createSocket(): Socket {
  const told: Told[] = []
  const pushedSeqs: number[] = []
  const closes: number[] = []
  return {
    told,
    pushedSeqs,
    closes,
    retirements: 0,
    writes: true,
    writtenSeq: 0,
    send: (text) => void told.push(JSON.parse(text)),
    pushed(seq) {
      pushedSeqs.push(seq)
      if (this.writes) this.writtenSeq = seq
    },
    probe: async () => true,
    close: (code) => void closes.push(code),
    async retire() {
      this.retirements++
    },
    isBusy: false,
    isClosed: false,
  }
}

/** The `n` of what a socket was told, in order: every push of a test has one of its own. */
export const numbersOf = ({ told }: Pick<Socket, 'told'>) => told.map(({ data }) => data.n)
export const seqsOf = ({ told }: Pick<Socket, 'told'>) => told.map(({ seq }) => seq)

/** 1, 2, 3 … */
export const upTo = (last: number, first = 1) => Array.from({ length: last - first + 1 }, (_, index) => first + index)

let people = 0
/** A participant that no other test has: the sessions of one store do not meet. */
export function somebody(): Participant {
  people++
  return { product: 'shop', role: 'agent', userId: `user-${people}-${crypto.randomUUID()}` }
}

export interface Wish {
  readonly participant?: Participant
  readonly deviceId?: string | null | undefined
  readonly extended?: boolean
  readonly expiresAt?: number | undefined
  readonly appVersion?: string | null | undefined
}

export function identityOf(wish: Wish = {}): SessionIdentity {
  const { participant = somebody(), extended = true, expiresAt, appVersion } = wish
  const deviceId = 'deviceId' in wish ? wish.deviceId : 'phone'
  return { sessionId: newSessionId(participant), participant, deviceId, extended, expiresAt, appVersion }
}

/** A session with its socket. */
export interface Seen extends OpenSession {
  readonly identity: SessionIdentity
  readonly id: string
  readonly socket: Socket
}

/** A new session that has been told what there was. */
export async function openReady(sessions: Sessions, wish: Wish = {}, at = 0): Promise<Seen> {
  const identity = identityOf(wish)
  const socket = createSocket()
  const open = await sessions.open(identity, socket, at)
  await sessions.ready(identity.sessionId)
  return { ...open, identity, id: identity.sessionId, socket }
}

export const resumeOf = ({ id, epoch }: Seen, seq: number): ResumeRequest => ({ sessionId: id, epoch, seq })

/** Comes back as a session; undefined where it is refused. */
export async function comeBack(sessions: Sessions, seen: Seen, seq: number, at = 0): Promise<Seen | undefined> {
  const socket = createSocket()
  const open = await sessions.resume(resumeOf(seen, seq), seen.identity, socket, at)
  if (open === undefined) return undefined
  await sessions.ready(seen.id)
  return { ...seen, ...open, socket }
}

const text = (event: string, n: number, pad = 0) => JSON.stringify({ event, data: { n, pad: 'x'.repeat(pad) } })

/** Pushes of every kind; `n` tells one from another. */
export const pushes = {
  ringing: (call: string, version: number, n: number): Push => ({
    kind: 'ringing',
    call,
    version,
    text: text('call.ringing', n),
  }),
  state: (call: string, version: number, n: number): Push => ({
    kind: 'state',
    call,
    version,
    text: text('call.accepted', n),
  }),
  stop: (call: string, version: number, n: number): Push => ({
    kind: 'stop',
    call,
    version,
    text: text('call.cancelled', n),
  }),
  final: (call: string, version: number, n: number): Push => ({
    kind: 'final',
    call,
    version,
    text: text('call.ended', n),
  }),
  notice: (call: string, version: number | undefined, n: number): Push => ({
    kind: 'notice',
    call,
    version,
    text: text('call.status', n),
  }),
  peer: (call: string, version: number, n: number): Push => ({
    kind: 'peer',
    call,
    version,
    text: text('call.peer_away', n),
  }),
  media: (call: string, n: number): Push => ({
    kind: 'media',
    call,
    version: undefined,
    text: text('call.media', n),
  }),
  relay: (call: string, n: number, pad = 0): Push => ({
    kind: 'relay',
    call,
    version: undefined,
    text: text('webrtc.offer', n, pad),
  }),
}

export async function relays(sessions: Sessions, sessionId: string, call: string, ns: readonly number[], pad = 0) {
  const results = []
  for (const n of ns) results.push(await sessions.append(sessionId, pushes.relay(call, n, pad)))
  return results
}
