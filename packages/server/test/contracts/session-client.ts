import { createSocket, identityOf, type Seen, type Wish } from '../../src/ports/sessions.fixture.ts'
import type { SessionIdentity, Sessions } from '../../src/ports/sessions.ts'
import type { SessionsHarness } from './session-parts.ts'

/**
 * The client end of a session in a walk: what it has seen, which after a cut may be less than what its socket was handed,
 * but never less than what it has proven.
 */
export interface WalkingClient {
  readonly identity: SessionIdentity
  readonly epoch: string
  /** The `n` of every push seen, in the order of their numbers. */
  readonly seen: number[]
  proven: number
  /** Its socket, and how much of what it was handed was read; undefined: it has none. */
  line: { readonly socket: Seen['socket']; read: number } | undefined
  lostAt: number
}

export async function connectClient(sessions: Sessions, wish: Wish): Promise<WalkingClient> {
  const identity = identityOf(wish)
  const socket = createSocket()
  const { epoch } = await sessions.open(identity, socket, 0)
  await sessions.ready(identity.sessionId)
  return { identity, epoch, seen: [], proven: 0, line: { socket, read: 0 }, lostAt: 0 }
}

/** Reads what its socket was handed, but for the last few; each must be the next in number. */
export function read(client: WalkingClient, allBut = 0): void {
  const { line, seen, identity } = client
  if (line === undefined) return
  const { told } = line.socket
  while (line.read < told.length - allBut) {
    const { seq, data } = told[line.read]!
    line.read++
    seen.push(data.n)
    if (identity.extended && seq !== seen.length) throw new Error(`seq ${seq} where ${seen.length} was next`)
  }
}

/** The client answers a ping: the service knows that it has what it has read. */
export async function proveRead(sessions: Sessions, client: WalkingClient): Promise<void> {
  if (client.line === undefined || client.seen.length === 0) return
  client.proven = client.seen.length
  await sessions.prove(client.identity.sessionId, client.proven)
}

/** The network is gone; the last few pushes did not arrive, unless they are proven. */
export async function cut(
  { sessions, settled }: SessionsHarness,
  client: WalkingClient,
  unread: number,
  at: number,
): Promise<void> {
  const { line, identity } = client
  if (line === undefined) return
  await settled()
  read(client, unread)
  client.line = undefined
  client.lostAt = at
  const detached = await sessions.detach(identity.sessionId, line.socket, false, at)
  if (!detached) throw new Error('a session lost its socket, and it is not noted')
}

/** Comes back after what it has seen; false where it is refused. Each push that comes has to be the next in number. */
export async function resume(
  { sessions, settled }: SessionsHarness,
  client: WalkingClient,
  at: number,
): Promise<boolean> {
  const { identity, epoch, seen } = client
  const socket = createSocket()
  const request = { sessionId: identity.sessionId, epoch, seq: seen.length }
  const open = await sessions.resume(request, identity, socket, at)
  if (open === undefined) return false
  if (open.epoch !== epoch) throw new Error('a session came back under another epoch')
  client.line = { socket, read: 0 }
  await sessions.ready(identity.sessionId)
  await settled()
  return true
}
