/** Who is there, of the people that this participant may call [PRES1]. */
import { errorFromWire, type RingwireError } from './error.ts'
import { isObject, parseJson } from './json.ts'
import { createListeners } from './listeners.ts'
import type { Unsubscribe, WebSocketConstructor, WebSocketLike } from './types.ts'

export interface WatchedPeer {
  readonly role: string
  readonly userId: string
}

export interface PeerPresence extends WatchedPeer {
  /** Undefined: not known, or not any more because the connection is away. */
  readonly online: boolean | undefined
  /** Calls somebody, or is in a call that was answered. Undefined: not known, as above. */
  readonly inCall: boolean | undefined
}

export interface PresenceEvents {
  /** Somebody came or went, or began or ended a call, or is not known any more: all that are watched. */
  change: readonly PeerPresence[]
  /** They may not be watched: `ACTION_NOT_ALLOWED` where the product, or the token, does not let them. */
  error: RingwireError
}

export interface PresenceOptions {
  /** Has `addEventListener`, as those of browsers, Node and Bun. Default: the global one. */
  readonly WebSocket?: WebSocketConstructor
}

export interface Presence {
  /** The sockets of the client: `createCallClient({ ..., WebSocket: presence.WebSocket })`. One client has it, and no other. */
  readonly WebSocket: WebSocketConstructor
  /** From now on these, 200 at the most, and no others; goes on over lost connections. */
  watch(peers: readonly WatchedPeer[]): void
  /** The same array until something changes. */
  readonly peers: readonly PeerPresence[]
  on<E extends keyof PresenceEvents>(event: E, listener: (payload: PresenceEvents[E]) => void): Unsubscribe
}

/** The service takes one watch a second of a session; the client repeats a watch that failed for a while after this. In ms. */
const pauseMs = 1_100

type Socket = WebSocketLike & Pick<EventTarget, 'addEventListener'>
interface Told {
  readonly role: string
  readonly user_id: string
  readonly online: boolean
  readonly in_call?: boolean
}

/** Uses the connection of a client, which knows nothing of it. */
export function createPresence({ WebSocket = globalThis.WebSocket }: PresenceOptions = {}): Presence {
  const listeners = createListeners<PresenceEvents>()
  let peers: readonly PeerPresence[] = []
  /** Authenticated. */
  let socket: Socket | undefined
  let count = 0
  let id = ''
  let askedAt = Number.NEGATIVE_INFINITY
  let timer: ReturnType<typeof setTimeout> | undefined

  function become(next: readonly PeerPresence[]): void {
    peers = next
    listeners.emit('change', peers)
  }

  function ask(pause = askedAt + pauseMs - performance.now()): void {
    clearTimeout(timer)
    if (socket === undefined) return
    if (pause > 0) {
      timer = setTimeout(ask, pause, 0)
      return
    }
    askedAt = performance.now()
    id = `presence-${++count}`
    const participants = peers.map(({ role, userId }) => ({ role, user_id: userId }))
    // Without a number: it is sent anew on each connection, and never twice on one.
    socket.send(JSON.stringify({ event: 'presence.watch', request_id: id, data: { participants } }))
  }

  function hear(from: Socket, text: string): void {
    const message = read(text)
    if (!message) return
    if (message.event === 'auth.ok') {
      socket = from
      askedAt = Number.NEGATIVE_INFINITY
      if (peers.length > 0) ask()
    } else if (from !== socket) return
    else if (message.request_id === id && message.event === 'call.error') refused(errorFromWire(message.error))
    else if (message.request_id === id || message.event === 'presence.changed') {
      become(learned(peers, (message.data as { readonly participants: readonly Told[] }).participants))
    }
  }

  function refused(error: RingwireError): void {
    if (error.retryable) ask(error.retryAfterMs ?? pauseMs)
    else listeners.emit('error', error)
  }

  function lost(from: Socket): void {
    if (from !== socket) return
    socket = undefined
    clearTimeout(timer)
    if (peers.length > 0) become(peers.map(unknown))
  }

  function Attached(url: string, protocols: string[]): WebSocketLike {
    const opened = new (WebSocket as WebSocketConstructor)(url, protocols) as Socket
    opened.addEventListener('message', (event) => hear(opened, String((event as MessageEvent).data)))
    opened.addEventListener('close', () => lost(opened))
    return opened
  }

  return {
    WebSocket: Attached as unknown as WebSocketConstructor,
    watch(wanted) {
      become(watched(wanted, peers))
      ask()
    },
    get peers() {
      return peers
    },
    on: listeners.on,
  }
}

const nameOf = ({ role, userId }: WatchedPeer) => JSON.stringify([role, userId])

/** Undefined if the message says nothing about presence. */
function read(text: string): Record<string, unknown> | undefined {
  const message = /"(auth\.ok|presence[.-])/.test(text) && parseJson(text)
  return isObject(message) ? message : undefined
}

/** Peers that were watched before keep their last known state. */
function watched(wanted: readonly WatchedPeer[], before: readonly PeerPresence[]): PeerPresence[] {
  const known = new Map(before.map((peer) => [nameOf(peer), peer]))
  return wanted.map((peer) => known.get(nameOf(peer)) ?? unknown(peer))
}

function learned(peers: readonly PeerPresence[], told: readonly Told[]): PeerPresence[] {
  const known = new Map(told.map((one) => [JSON.stringify([one.role, one.user_id]), one]))
  return peers.map((peer) => {
    const news = known.get(nameOf(peer))
    return news === undefined ? peer : { ...peer, online: news.online, inCall: news.in_call }
  })
}

function unknown({ role, userId }: WatchedPeer): PeerPresence {
  return { role, userId, online: undefined, inCall: undefined }
}
