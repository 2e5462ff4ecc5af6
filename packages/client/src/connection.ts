import { shouldReconnect } from '@ringwire/protocol/close-codes'
import type { ExtendedAuthOk } from '@ringwire/protocol/events/auth'
import type { Environment } from './environment.ts'
import type { RingwireError } from './error.ts'
import { createPauses, type Pauses, readJitterHint } from './reconnect.ts'
import { createSocket, type Socket } from './socket.ts'
import { type Tokens, tokenError } from './tokens.ts'
import type {
  CallClientOptions,
  ConnectionState,
  RingwireErrorShape,
  Self,
  SessionToken,
  Unsubscribe,
  Why,
  WhyCode,
} from './types.ts'
import { type Envelope, readAuthOk, readEnvelope } from './wire.ts'

/** The user of the connection. */
export interface ConnectionUser {
  /** The query of the next connection. */
  query(): string
  /** Once after `connect`, before the first attempt. */
  prepare(): Promise<unknown>
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

/** The one connection of a client, as it stands. */
interface Link {
  readonly tokens: Tokens
  readonly user: ConnectionUser
  readonly socket: Socket
  readonly pauses: Pauses
  state: ConnectionState
  /** The participant of the session. */
  self?: Self | undefined
  /** Names the attempt: what an earlier one still has to say is not heard. */
  run: number
  /** The last error before the service closed the socket. */
  refusal?: RingwireError | undefined
  /** The last pause that an open socket asked for, in ms. */
  awayMs?: number | undefined
  /** Ends listening to the page. */
  endListening?: Unsubscribe
}

/** One socket at a time, and the way from one to the next. It knows nothing of calls. */
export function createConnection(env: Environment, options: CallClientOptions, tokens: Tokens, user: ConnectionUser) {
  const socket = createSocket(env, options, {
    receive: (text) => receive(link, text),
    closed: (code, reason, isOwn) => closed(link, code, reason, isOwn),
    silent: () => fallBack(link, silent),
    probe: user.probe,
  })
  const { reconnectBaseMs: baseMs = 500, reconnectMaxMs: maxMs = 15_000 } = options
  const pauses = createPauses(env, { baseMs, maxMs }, () => attempt(link))
  const link: Link = { tokens, user, socket, pauses, state: { name: 'idle', why: because('not_started') }, run: 0 }

  /** There is a reason to look: the network came back, or the page is looked at again. */
  function wake(): void {
    if (link.state.name === 'online') socket.doubt()
    else if (link.state.name === 'waiting') pauses.hurry()
  }

  return {
    state: (): ConnectionState => link.state,
    self: (): Self | undefined => link.self,
    connect(): void {
      if (link.state.name !== 'idle' && link.state.name !== 'closed') return
      // Without a network there is a reason to doubt the socket, none to hurry.
      link.endListening = env.listen((signal) => (signal === 'offline' ? socket.doubt() : wake()))
      const mine = ++link.run
      enter(link, { name: 'connecting', attempt: 1, why: because('started') })
      user.prepare().then(() => {
        if (mine === link.run) attempt(link)
      })
    },

    send: socket.send,
    wake,

    close(): void {
      if (link.state.name !== 'closed') stop(link, because('client_closed'), 1000)
    },
  }
}

export type Connection = ReturnType<typeof createConnection>

function enter(link: Link, state: ConnectionState): void {
  link.state = state
  link.user.stateChanged(state)
}

function attempt(link: Link): void {
  const { name, why } = link.state
  const mine = ++link.run
  const number = link.pauses.begin()
  if (name !== 'connecting') enter(link, { name: 'connecting', attempt: number, why })
  link.tokens.current().then(
    (token) => {
      if (mine === link.run) open(link, token)
    },
    (error: RingwireError) => {
      if (mine !== link.run) return
      const follow = error.retryable ? fallBack : stop
      follow(link, noToken(error))
    },
  )
}

function open(link: Link, token: SessionToken): void {
  link.refusal = undefined
  try {
    link.socket.open(token, link.user.query())
  } catch (cause) {
    refuse(link, 'No WebSocket takes this URL and token.', { cause })
  }
}

function receive(link: Link, text: string): void {
  const envelope = readEnvelope(text)
  if (!envelope) return
  const { event, request_id, error } = envelope
  if (link.state.name === 'online') {
    // Before the service closes a socket it may say how long to stay away [WS7].
    link.awayMs = request_id === undefined ? error?.retryAfterMs : undefined
    if (!link.user.receive(envelope)) fallBack(link, silent)
  } else if (event === 'auth.ok') authenticated(link, readAuthOk(envelope))
  else if (error) link.refusal = error
}

function authenticated(link: Link, data: ExtendedAuthOk | undefined): void {
  if (!data) {
    stop(link, because('not_extended'))
    return
  }
  const { user_id: userId, role, display_name: displayName, session_id: sessionId, recovered } = data
  if (link.self && (link.self.userId !== userId || link.self.role !== role)) {
    // A session of somebody else is over at once: nobody may ring there.
    link.socket.leave(1000)
    refuse(link, `The token is that of ${role} ${userId}.`)
    return
  }
  link.socket.authenticated()
  link.pauses.online()
  link.tokens.setServerTime(data.server_time)
  const self = { userId, role, displayName }
  const online = { name: 'online', sessionId, recovered, self, why: because('authenticated') } as const
  link.self = self
  link.state = online
  link.user.begun(data)
  // Listeners may have closed the client meanwhile.
  if (link.state === online) link.user.stateChanged(online)
}

function closed(link: Link, closeCode: number, reason: string, isOwn: boolean): void {
  const error = link.refusal
  const message = error?.message ?? `Closed with ${closeCode} ${reason}`
  const why: Why = { code: closeCode === 4409 ? 'replaced' : 'socket_closed', message, closeCode, reason, error }
  if (closeCode === 4401) link.tokens.refused()
  const follow = isOwn || shouldReconnect(closeCode) ? fallBack : stop
  follow(link, why)
}

/** Leaves this socket, whatever it still has to say, and comes back after a pause. */
function fallBack(link: Link, why: Why): void {
  leave(link, givenUp)
  link.user.lost(false)
  const retryAfterMs = why.error?.retryAfterMs ?? link.awayMs
  link.awayMs = undefined
  const pause = link.pauses.start({ jitterMs: readJitterHint(why.reason), retryAfterMs })
  enter(link, { name: 'waiting', ...pause, why })
}

function leave(link: Link, code: number): void {
  link.run++
  link.socket.leave(code)
}

function stop(link: Link, why: Why, code = givenUp): void {
  leave(link, code)
  link.endListening?.()
  link.pauses.reset()
  link.socket.forget()
  link.user.lost(true, why.error)
  link.tokens.forget()
  link.self = undefined
  enter(link, { name: 'closed', why })
}

/** The backend gave something that the service, or this runtime, does not take as this participant's token. */
function refuse(link: Link, message: string, details?: object): void {
  link.tokens.refused()
  fallBack(link, noToken(tokenError(message, details)))
}
