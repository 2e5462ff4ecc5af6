import { shouldReconnect } from '@ringwire/protocol/close-codes'
import type { ExtendedAuthOk } from '@ringwire/protocol/events/auth'
import { subprotocol } from '@ringwire/protocol/subprotocol'
import type { Environment } from './environment.ts'
import { errorFromWire, type RingwireError } from './error.ts'
import { createLiveness, type LivenessOptions } from './liveness.ts'
import { type PauseBounds, pauseBefore, readJitterHint } from './reconnect.ts'
import { type Tokens, tokenError } from './tokens.ts'
import type {
  ConnectionState,
  RingwireErrorShape,
  Self,
  SessionToken,
  WebSocketConstructor,
  WebSocketLike,
  Why,
  WhyCode,
} from './types.ts'
import { type Envelope, readAuthOk, readEnvelope } from './wire.ts'

/** Also the bounds of the pauses between attempts. */
export interface ConnectionOptions extends PauseBounds, Pick<LivenessOptions, 'idleMs' | 'answerMs'> {
  readonly url: string | undefined
  readonly connectTimeoutMs: number
}

/** The user of the connection. */
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
  lost(isFinal: boolean, cause?: RingwireErrorShape): void
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

/** If nothing more is known, the code says it all. */
function because(code: WhyCode, message: string = code, more: Partial<Why> = {}): Why {
  return { code, message, ...more }
}

const silent = because('silent')

function noToken(error: RingwireError): Why {
  return because('token_failed', error.message, { error })
}

/** One socket at a time, and the way from one to the next. It knows nothing of calls. */
export function createConnection(env: Environment, options: ConnectionOptions, tokens: Tokens, user: ConnectionUser) {
  let state: ConnectionState = { name: 'idle', why: because('not_started') }
  let socket: WebSocketLike | undefined
  /** The participant of the session. */
  let self: Self | undefined
  /** Names the attempt: what an earlier one still has to say is not heard. */
  let run = 0
  let failures = 0
  let onlineSince = 0
  let lastAttempt = 0
  /** Until then so many attempts of this page that were given up may take over the session, as another page would [RES1]. */
  let lateUntil = 0
  let late = 0
  let endTimer: () => void = () => {}
  let pauseIsAsked = false
  /** The last error before the service closed the socket. */
  let refusal: RingwireError | undefined
  /** The last pause that an open socket asked for, in ms. */
  let awayMs: number | undefined

  const liveness = createLiveness(env, {
    ...options,
    probe: user.probe,
    onDead: () => fallBack(silent),
  })

  function enter(next: ConnectionState): void {
    state = next
    user.stateChanged(next)
  }

  function attempt(): void {
    const mine = ++run
    endTimer()
    lastAttempt = env.now()
    if (state.name !== 'connecting') enter({ name: 'connecting', attempt: failures + 1, why: state.why })
    tokens.current().then(
      (token) => {
        if (mine === run) open(token)
      },
      (error: RingwireError) => {
        if (mine !== run) return
        if (error.retryable) fallBack(noToken(error))
        else stop(noToken(error))
      },
    )
  }

  function open(token: SessionToken): void {
    const base = options.url ?? token.ws_url
    const WebSocket = env.WebSocket as WebSocketConstructor
    let opened: WebSocketLike
    try {
      // A browser cannot set headers on a WebSocket, so the token is the second subprotocol [WS1].
      opened = new WebSocket(`${base}${base?.includes('?') ? '&' : '?'}${user.query()}`, [subprotocol, token.token])
    } catch (cause) {
      refuse('No WebSocket takes this URL and token.', { cause })
      return
    }
    refusal = undefined
    socket = opened
    endTimer = env.after(options.connectTimeoutMs, () => {
      late++
      lateUntil = env.now() + lateMs
      fallBack(silent)
    })
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
    if (!envelope) return
    if (state.name === 'online') {
      // Before the service closes a socket it may say how long to stay away [WS7].
      const isNotice = envelope.event === 'call.error' && envelope.request_id === undefined
      awayMs = isNotice ? errorFromWire(envelope.error).retryAfterMs : undefined
      if (!user.receive(envelope)) fallBack(silent)
    } else if (envelope.event === 'auth.ok') authenticated(envelope)
    else if (envelope.event === 'call.error') refusal = errorFromWire(envelope.error)
  }

  function authenticated(envelope: Envelope): void {
    const data = readAuthOk(envelope)
    if (!data) {
      stop(because('not_extended'))
      return
    }
    if (self && (self.userId !== data.user_id || self.role !== data.role)) {
      // A session of somebody else is over at once: nobody may ring there.
      refuse(`The token is that of ${data.role} ${data.user_id}.`, {}, 1000)
      return
    }
    endTimer()
    onlineSince = env.now()
    tokens.setServerTime(data.server_time)
    liveness.start()
    self = { userId: data.user_id, role: data.role, displayName: data.display_name }
    const why = because('authenticated')
    const online = { name: 'online', sessionId: data.session_id, recovered: data.recovered, self, why } as const
    state = online
    user.begun(data)
    // Listeners may have closed the client meanwhile.
    if (state === online) user.stateChanged(online)
  }

  function closed(code: number, reason: string): void {
    const message = refusal?.message ?? `Closed with ${code} ${reason}`
    const isReplaced = code === 4409
    const details = { closeCode: code, reason, error: refusal }
    const why = because(isReplaced ? 'replaced' : 'socket_closed', message, details)
    // Once for each: a later close is about another client.
    const isOwn = isReplaced && env.now() < lateUntil && late-- > 0
    if (!isOwn && !shouldReconnect(code)) {
      stop(why)
      return
    }
    if (code === 4401) tokens.refused()
    fallBack(why, readJitterHint(reason))
  }

  /** Leaves this socket, whatever it still has to say, and comes back after a pause. */
  function fallBack(why: Why, jitterMs?: number, code = givenUp): void {
    if (state.name === 'online' && env.now() - onlineSince >= stableMs) failures = 0
    failures++
    leave(code)
    user.lost(false)
    const hints = { jitterMs, retryAfterMs: why.error?.retryAfterMs ?? awayMs }
    awayMs = undefined
    const pause = pauseBefore(failures, hints, options, env.random())
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
    if (!left) return
    try {
      left.close(code)
    } catch {
      // A socket that is closed already, or an implementation that does not take the code.
    }
  }

  function stop(why: Why, code = givenUp): void {
    leave(code)
    failures = 0
    late = 0
    user.lost(true, why.error)
    tokens.forget()
    self = undefined
    enter({ name: 'closed', why })
  }

  /** The backend gave something that the service, or this runtime, does not take as this participant's token. */
  function refuse(message: string, details: object, code?: number): void {
    tokens.refused()
    fallBack(noToken(tokenError(message, details)), undefined, code)
  }

  return {
    state: (): ConnectionState => state,
    self: (): Self | undefined => self,

    connect(): void {
      if (state.name !== 'idle' && state.name !== 'closed') return
      failures = 0
      const mine = ++run
      enter({ name: 'connecting', attempt: 1, why: because('started') })
      user.prepare().then(() => {
        if (mine === run) attempt()
      })
    },

    send(text: string): void {
      // One that is closing takes nothing any more, and says so in the console; what is unanswered is sent again [EXT4].
      if (socket && socket.readyState < closing) socket.send(text)
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
      if (state.name !== 'closed') stop(because('client_closed'), 1000)
    },
  }
}

export type Connection = ReturnType<typeof createConnection>
