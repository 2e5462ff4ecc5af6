import { shouldReconnect } from '@ringwire/protocol/close-codes'
import type { ExtendedAuthOk } from '@ringwire/protocol/events/auth'
import { subprotocol } from '@ringwire/protocol/subprotocol'
import type { Environment } from './environment.ts'
import { errorFromWire, RingwireError } from './error.ts'
import { createLiveness } from './liveness.ts'
import { pauseBefore, readJitterHint } from './reconnect.ts'
import type { Tokens } from './tokens.ts'
import type { ConnectionState, Disconnect, SessionToken, WebSocketLike } from './types.ts'
import { type Envelope, readAuthOk, readEnvelope } from './wire.ts'

export interface ConnectionOptions {
  readonly url: string | undefined
  readonly connectTimeoutMs: number
  readonly heartbeatMs: number
  readonly heartbeatTimeoutMs: number
  readonly reconnectBaseMs: number
  readonly reconnectMaxMs: number
}

/** What the connection is for. */
export interface ConnectionUser {
  /** The query of the next connection. */
  query(): string
  /** Once after `connect`, before the first attempt. */
  prepare(): Promise<void>
  /** `auth.ok` came: requests may go out. */
  begun(data: ExtendedAuthOk): void
  /** A message after `auth.ok`; false where this socket cannot be trusted any more. */
  receive(envelope: Envelope): boolean
  /** The socket is gone, for now or for good. */
  lost(isFinal: boolean): void
  /** Sends a request that has a reply and changes nothing. */
  probe(): void
  stateChanged(state: ConnectionState): void
}

/** An attempt that came this far counts as a stable connection: the pauses begin anew. */
const stableMs = 10_000
/** The network that comes and goes brings an attempt at most this often. */
const wakeIntervalMs = 1_000
/** An attempt that was given up may still arrive within this: its bytes wait in a network that was away. */
const lateMs = 120_000
/** WebSocket.CLOSING */
const closing = 2
/** Tells the service that the socket was given up; the session is not over, as after 1000 [RES1]. */
const givenUp = 4408

/** One socket at a time, and the way from one to the next. It knows nothing of calls. */
export function createConnection(env: Environment, options: ConnectionOptions, tokens: Tokens, user: ConnectionUser) {
  let state: ConnectionState = { name: 'idle' }
  let socket: WebSocketLike | undefined
  /** Names the attempt: what an earlier one still has to say is not heard. */
  let run = 0
  let failures = 0
  let onlineSince = 0
  let lastAttempt = 0
  /** Until then an attempt of this page that was given up may take over the session, as another page would [RES1]. */
  let lateUntil = 0
  let endTimer: () => void = () => {}
  let pauseIsAsked = false
  let retryAfterMs: number | undefined

  const liveness = createLiveness(env, {
    idleMs: options.heartbeatMs,
    answerMs: options.heartbeatTimeoutMs,
    probe: user.probe,
    onDead: () => fallBack({ cause: 'silent' }),
  })

  function enter(next: ConnectionState): void {
    state = next
    user.stateChanged(next)
  }

  function attempt(): void {
    const mine = ++run
    endTimer()
    lastAttempt = env.now()
    if (state.name !== 'connecting') enter({ name: 'connecting', attempt: failures + 1 })
    tokens.current().then(
      (token) => {
        if (mine === run) open(token)
      },
      (error: RingwireError) => {
        if (mine !== run) return
        if (error.retryable) fallBack({ cause: 'token', error })
        else stop({ name: 'closed', why: { cause: 'token', error } })
      },
    )
  }

  function open(token: SessionToken): void {
    const base = options.url ?? token.ws_url
    const { WebSocket } = env
    let opened: WebSocketLike
    try {
      if (base === undefined || WebSocket === undefined) throw new Error('no ws_url, or no WebSocket')
      // A browser cannot set headers on a WebSocket, so the token is the second subprotocol [WS1].
      opened = new WebSocket(`${base}${base.includes('?') ? '&' : '?'}${user.query()}`, [subprotocol, token.token])
    } catch (cause) {
      const error = new RingwireError('REQUEST_FAILED', 'No WebSocket can be opened.', { cause })
      stop({ name: 'closed', why: { cause: 'setup', error } })
      return
    }
    retryAfterMs = undefined
    socket = opened
    endTimer = env.after(options.connectTimeoutMs, () => fallBack({ cause: 'silent' }))
    opened.onmessage = ({ data }: { data: unknown }) => {
      if (socket === opened) receive(String(data))
    }
    opened.onclose = ({ code, reason }: { code: number; reason: string }) => {
      if (socket === opened) closed(code, String(reason ?? ''))
    }
    opened.onerror = () => {}
  }

  function receive(text: string): void {
    const envelope = readEnvelope(text)
    liveness.heard()
    if (envelope === undefined) return
    if (state.name === 'online') {
      if (!user.receive(envelope)) fallBack({ cause: 'silent' })
    } else if (envelope.event === 'auth.ok') authenticated(envelope)
    else if (envelope.event === 'call.error') retryAfterMs = errorFromWire(envelope.error).retryAfterMs
  }

  function authenticated(envelope: Envelope): void {
    const data = readAuthOk(envelope)
    if (data === undefined) {
      stop({ name: 'closed', why: { cause: 'socket', code: 1002, reason: 'the service has no extended mode' } })
      return
    }
    endTimer()
    onlineSince = env.now()
    tokens.setServerTime(data.server_time)
    liveness.start()
    const self = { userId: data.user_id, role: data.role, displayName: data.display_name }
    const online = { name: 'online', sessionId: data.session_id, recovered: data.recovered, self } as const
    state = online
    user.begun(data)
    // Listeners may have closed the client meanwhile.
    if (state === online) user.stateChanged(online)
  }

  function closed(code: number, reason: string): void {
    const isOwn = code === 4409 && env.now() < lateUntil
    // Once: whoever comes after that is somebody else.
    if (isOwn) lateUntil = 0
    else if (!shouldReconnect(code)) {
      stop({ name: 'closed', why: { cause: 'socket', code, reason } })
      return
    }
    if (code === 4401) tokens.refused()
    fallBack({ cause: 'socket', code, reason }, readJitterHint(reason))
  }

  /** Leaves this socket, whatever it still has to say, and comes back after a pause. */
  function fallBack(why: Disconnect, jitterMs?: number): void {
    if (state.name === 'online' && env.now() - onlineSince >= stableMs) failures = 0
    if (state.name === 'connecting' && why.cause === 'silent') lateUntil = env.now() + lateMs
    failures++
    leave(givenUp)
    user.lost(false)
    const hints = { jitterMs, retryAfterMs: why.cause === 'token' ? why.error.retryAfterMs : retryAfterMs }
    const bounds = { baseMs: options.reconnectBaseMs, maxMs: options.reconnectMaxMs }
    const pause = pauseBefore(failures, hints, bounds, env.random())
    pauseIsAsked = pause.isAsked
    endTimer = env.after(pause.ms, attempt)
    enter({ name: 'waiting', attempt: failures, retryAt: env.now() + pause.ms, why })
  }

  function leave(code: number): void {
    run++
    endTimer()
    liveness.stop()
    const left = socket
    socket = undefined
    if (left === undefined) return
    try {
      left.close(code)
    } catch {
      // A socket that is closed already, or an implementation that does not take the code.
    }
  }

  function stop(next: Extract<ConnectionState, { name: 'closed' }>, code = givenUp): void {
    leave(code)
    failures = 0
    lateUntil = 0
    user.lost(true)
    enter(next)
  }

  return {
    state: (): ConnectionState => state,

    connect(): void {
      if (state.name !== 'idle' && state.name !== 'closed') return
      failures = 0
      const mine = ++run
      enter({ name: 'connecting', attempt: 1 })
      user.prepare().then(() => {
        if (mine === run) attempt()
      })
    },

    send(text: string): void {
      // One that is closing takes nothing any more, and says so in the console; what is unanswered is sent again [EXT4].
      if (socket !== undefined && socket.readyState < closing) socket.send(text)
      liveness.sent()
    },

    /** There is a reason to look: the network came back, or the page is looked at again. */
    wake(): void {
      if (state.name === 'online') liveness.doubt()
      else if (state.name === 'waiting' && !pauseIsAsked && env.now() - lastAttempt >= wakeIntervalMs) attempt()
    },

    /** There is a reason to doubt the socket, none to hurry. */
    doubt: liveness.doubt,

    close(): void {
      if (state.name !== 'closed') stop({ name: 'closed', why: { cause: 'client' } }, 1000)
    },
  }
}

export type Connection = ReturnType<typeof createConnection>
