import type { Waiter } from '../calls/request.ts'
import { createSystemTimers } from '../time/timers.ts'
import { encodeError } from './answer.ts'
import { createBacklog } from './backlog.ts'
import { Connection } from './connection.ts'
import type { Dispatch, DispatchResult, SignalingSession } from './dispatch.ts'
import type { ConnectionTiming, Socket } from './outlet.ts'
import { createSenders } from './senders.ts'

export const session: SignalingSession = {
  participant: { product: 'shop', role: 'agent', userId: 'ann' },
  sessionId: 's',
  deviceId: null,
  displayName: 'Ann',
  node: 'n',
  allowedActions: [],
  allowedPeerRoles: [],
  contextType: 'order',
  contextId: '1',
  issuedAt: 0,
  key: null,
  expiresAt: 0,
  extended: false,
}
export const timing: ConnectionTiming = { pingIntervalMs: 25_000, pongTimeoutMs: 10_000, probeTimeoutMs: 20 }

export const nothing: DispatchResult = { reply: undefined, malformed: false, n: undefined }

/** What is around a connection: a test sets it, and reads what came of it. */
interface World {
  /** What the socket was given, in order. */
  wire: string[]
  pings: Uint8Array[]
  unsent: number
  /** The sum of the reports of that. */
  unsentInAll: number
  /** How often the socket was asked for that. */
  measured: number
  now: number
  proven: number[]
  rung: string[]
  /** Whether the client answers pings, each time that something was said of it. */
  silent: boolean[]
  flushes: number
  isSaved: boolean
  causes: string[]
  /** Texts that the dispatch was given, and with each the last request that took effect before it. */
  handled: string[]
  handledBefore: number[]
  /** Whether the session is another socket's by now. */
  hasMoved: boolean
  /** Bytes that may wait for the participant. */
  room: number
  /** How the dispatch answers. */
  answer: (text: string, waiter: Waiter | undefined) => DispatchResult | Promise<DispatchResult>
}

const fresh = (): World => ({
  wire: [],
  pings: [],
  unsent: 0,
  unsentInAll: 0,
  measured: 0,
  now: 0,
  proven: [],
  rung: [],
  silent: [],
  flushes: 0,
  isSaved: true,
  causes: [],
  handled: [],
  handledBefore: [],
  hasMoved: false,
  room: Number.POSITIVE_INFINITY,
  answer: (text) => ({ reply: `reply ${text}`, malformed: text === 'bad', n: undefined }),
})

export const world: World = fresh()

/** Before each test. */
export function reset(): void {
  Object.assign(world, fresh())
}

export function connection(messageRate: { perSecond: number; burst: number } | null = null, who = session): Connection {
  const dispatch: Dispatch = {
    handle(_, text, before, refusal, waiter) {
      if (refusal !== undefined && !(refusal.mayBeUnlimited && text === '"call.end"')) {
        return { reply: encodeError(refusal.error, 'r'), malformed: false, n: undefined }
      }
      world.handled.push(text)
      world.handledBefore.push(before)
      return world.answer(text, waiter)
    },
    handleLast(_, text) {
      world.handled.push(`last ${text}`)
      return nothing
    },
    hangUpOf: () => undefined,
    handleEarly: () => undefined,
    aboutOf: (text) => [text],
  }
  const sent = (bytes: number) => (world.unsent === 0 ? bytes : -1)
  const socket: Socket = {
    send(text) {
      world.wire.push(text)
      return sent(text.length)
    },
    ping(data) {
      world.pings.push(data)
      return sent(data.length)
    },
    cork: (send) => send(),
    close: (code) => void world.wire.push(`close ${code}`),
    getBufferedAmount() {
      world.measured++
      return world.unsent
    },
  }
  return new Connection(socket, who, {
    dispatch,
    backlog: createBacklog(world.room),
    timing,
    senders: messageRate === null ? undefined : createSenders(messageRate),
    timers: { ...createSystemTimers(), monotonic: () => world.now },
    hasMoved: () => world.hasMoved,
    isSaved: () => world.isSaved,
    requestFlush: () => void world.flushes++,
    onUnsent(bytes) {
      world.unsentInAll += bytes
    },
    onProven: (_, seq) => void world.proven.push(seq),
    onSilent: () => void world.silent.push(true),
    onHeard: () => void world.silent.push(false),
    onRung: (_, call, isProven) => void world.rung.push(`${isProven ? 'proven' : 'told'} ${call}`),
    onClosing: (_, code, cause) => void world.causes.push(`${code} ${cause}`),
  })
}

/** As the gateway does where nothing has to be saved. */
export function flush(it: Connection): void {
  it.seal()
  it.flush(world.now)
}

/** The client answers the last ping, or the n-th. */
export const pong = (it: Connection, n = -1) => it.pong(world.pings.at(n)!)
