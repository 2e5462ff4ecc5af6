import type { Push } from '../../src/ports/push.ts'
import { createSocket, resumeOf, type Seen, type Socket } from '../../src/ports/sessions.fixture.ts'
import type { Sessions } from '../../src/ports/sessions.ts'

/** What a suite needs of an adapter besides its port. */
export interface SessionsHarness {
  readonly sessions: Sessions
  /** Other processes have sessions, too: only the session that took a request may know its effect [EXT4]. */
  readonly isShared?: true
  /** Empties the store, where there is one besides the memory of who serves. */
  emptyStore(): Promise<void>
  /** Resolves when everything that was appended has been handed to its socket. */
  settled(): Promise<void>
  close(): Promise<void>
}

/** The windows of the adapter under test, in ms; far apart, so that no test can mix them up. */
export const windowMs = 60_000
export const resumeWindowMs = 120_000
export type OpenSessions = (options: { windowMs: number; resumeWindowMs: number }) => Promise<SessionsHarness>

/** The `n` of the pushes that a socket got, in order: every push of a test has one of its own. */
export const numbersOf = ({ told }: Pick<Socket, 'told'>) => told.map(({ data }) => data.n)
export const seqsOf = ({ told }: Pick<Socket, 'told'>) => told.map(({ seq }) => seq)

/** 1, 2, 3 … */
export const upTo = (last: number, first = 1) => Array.from({ length: last - first + 1 }, (_, index) => first + index)

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
