import type { SessionToken } from './backend.ts'
import { type Data, type Envelope, parseEnvelope } from './envelope.ts'
import type { LogPanel } from './log.ts'

export type SignalingState =
  | { name: 'connecting' }
  | { name: 'online' }
  | { name: 'waiting' }
  | { name: 'stopped'; why: string }

type SignalingOptions = {
  token(): Promise<SessionToken>
  discardToken(): void
  onEnvelope(envelope: Envelope): void
  onState(state: SignalingState): void
  log: LogPanel
}

/** Exponential, and each wait anywhere between half and all of it, so that clients do not come back in step. */
export function backoffDelay(attempt: number, random: number): number {
  const full = Math.min(15_000, 400 * 2 ** attempt)
  return full * (0.5 + random / 2)
}

/** What a close code asks of this client [CLOSE]. */
export function afterClose(code: number): 'reconnect' | 'new-token' | 'stop' {
  if (code === 4401) return 'new-token'
  if (code === 4403 || code === 4409) return 'stop'
  return 'reconnect'
}

/** The WebSocket and its reconnects. Nothing of a call is known here. */
export function createSignaling(options: SignalingOptions) {
  const { log } = options
  let socket: WebSocket | undefined
  let online = false
  let running = false
  let attempt = 0
  let requests = 0
  let timer: ReturnType<typeof setTimeout> | undefined
  // Verbs said while the socket is down. Signals of a negotiation are not kept: a reconnect negotiates anew.
  let unsent: string[] = []

  function reconnectLater(): void {
    online = false
    options.onState({ name: 'waiting' })
    clearTimeout(timer)
    timer = setTimeout(connect, backoffDelay(attempt++, Math.random()))
  }

  function leaveSocket(code?: number): void {
    const old = socket
    socket = undefined
    online = false
    old?.close(code)
  }

  async function connect(): Promise<void> {
    clearTimeout(timer)
    leaveSocket()
    options.onState({ name: 'connecting' })
    let session: SessionToken
    try {
      session = await options.token()
    } catch (error) {
      log.note(`No token: ${error instanceof Error ? error.message : 'unknown error'}`)
      if (running) reconnectLater()
      return
    }
    if (running) open(session)
  }

  function open(session: SessionToken): void {
    // A browser cannot set headers on a WebSocket, so the token is the second subprotocol [WS1].
    const opened = new WebSocket(session.ws_url, ['jwt', session.token])
    socket = opened
    timer = setTimeout(() => opened.close(), 10_000)
    opened.addEventListener('message', ({ data }) => {
      if (socket === opened) receive(String(data))
    })
    opened.addEventListener('close', ({ code, reason }) => {
      if (socket === opened) closed(code, reason)
    })
  }

  function receive(message: string): void {
    const envelope = parseEnvelope(message)
    log.received(message, envelope?.event ?? 'unreadable')
    if (!envelope) return
    if (envelope.event === 'auth.ok') {
      clearTimeout(timer)
      online = true
      attempt = 0
      for (const kept of unsent.splice(0)) transmit(kept)
      options.onState({ name: 'online' })
    }
    options.onEnvelope(envelope)
  }

  function closed(code: number, reason: string): void {
    clearTimeout(timer)
    socket = undefined
    log.note(`WebSocket closed (${code}${reason ? `, ${reason}` : ''})`)
    const next = afterClose(code)
    if (next === 'stop') {
      online = false
      running = false
      const why = code === 4409 ? 'Another connection took over this session.' : 'The service closed this session.'
      options.onState({ name: 'stopped', why })
      return
    }
    if (next === 'new-token') options.discardToken()
    reconnectLater()
  }

  function transmit(message: string): void {
    socket?.send(message)
    log.sent(message, (JSON.parse(message) as { event: string }).event)
  }

  return {
    start(): void {
      running = true
      void connect()
    },
    stop(): void {
      running = false
      unsent = []
      clearTimeout(timer)
      leaveSocket(1000)
    },
    /** Opens the socket again at once: with a renewed token, or because the network came back. */
    renew(): void {
      if (running) void connect()
    },
    isOnline: () => online,
    /** Sends a request, or keeps a verb until the socket is back; gives the request_id. */
    send(event: string, data: Data): string {
      const request_id = `r${++requests}`
      const message = JSON.stringify({ event, request_id, data })
      if (online) transmit(message)
      else if (event.startsWith('call.')) unsent.push(message)
      return request_id
    },
  }
}

export type Signaling = ReturnType<typeof createSignaling>
