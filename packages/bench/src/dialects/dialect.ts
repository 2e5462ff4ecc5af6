// What the generator must know of a system to be its client.
import type { Side } from '../candidate.ts'
import type { Way } from '../connection.ts'
import type { FrameSocket, Framing } from '../frame-socket.ts'

export interface Client {
  id: string
  socket: FrameSocket
}

/** Two clients between whom candidates flow. */
export interface Pair {
  caller: Client
  callee: Client
  /** Ringwire's call; the others route by the name of the receiver. */
  callUuid: string
}

export interface Dialect {
  /** Set if a message is not one text frame. */
  framing?: Framing
  /** Everything that must exist before clients can connect, e.g. tokens; it is fetched outside the measured time. */
  credentials(port: number, ids: readonly string[]): Promise<string[]>
  upgradeRequest(port: number, id: string, credential: string): string
  /** After the upgrade: resolves when the system has said that this client is in. */
  ready(client: Client): Promise<void>
  /** Brings two clients to where candidates flow between them. */
  join(pair: Pair): Promise<void>
  /** The message that carries the candidate from one side to the other. */
  candidateMessage(pair: Pair, from: Side): string
  /** Whether a message is that candidate from that side; gives the first thing that is not as it must be. */
  wrongWith(text: string, pair: Pair, from: Side): string | null
  /** A message between the counted ones: true when it is a matter of course (and has been answered). */
  harmless(text: string, client: Client): boolean
  leave(pair: Pair): Promise<void>
  /** What a client must send now and then to stay connected; the server does not answer it. */
  heartbeat: string | null
  /** How clients reach the system; without it over plain TCP on this machine. */
  way?: Way
  /** Set if messages are numbered in both directions, as in Ringwire's extended mode. */
  numbered?: Numbered
}

export interface Numbered {
  /** The number that `candidateMessage` carries: the first one. */
  readonly first: number
  /** What stands before the number in a message that is sent, and at the end of one that comes. */
  readonly sentAfter: string
  readonly receivedAfter: string
  /** How a reply to a message begins; every message gets one. */
  readonly reply: string | null
}

export function other(side: Side): Side {
  return side === 'caller' ? 'callee' : 'caller'
}

export function upgradeHead(port: number, path: string, headers: string[] = []): string {
  const lines = [
    `GET ${path} HTTP/1.1`,
    `Host: 127.0.0.1:${port}`,
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
    ...headers,
  ]
  return `${lines.join('\r\n')}\r\n\r\n`
}

export function sameCandidate(found: unknown, sent: unknown): string | null {
  return JSON.stringify(found) === JSON.stringify(sent) ? null : 'another candidate than the one that was sent'
}

/** Narrows parsed JSON to an object whose members may be read. */
export function members(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {}
}
