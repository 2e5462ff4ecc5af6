import { randomBytes } from 'node:crypto'
import { type ErrorBody, type ErrorCode, errorBody, errors } from '@ringwire/protocol/errors'
import type { AuthOk } from '@ringwire/protocol/events/auth'
import { readSubprotocols, type Subprotocols, subprotocol } from '@ringwire/protocol/subprotocol'
import type { Server, ServerWebSocket, WebSocketHandler } from 'bun'
import type { Arrivals } from '../arrivals.ts'
import type { SessionClaims, Tokens } from '../auth/tokens.ts'
import type { Config } from '../config.ts'
import type { Limits } from '../limits.ts'
import type { Sessions } from '../ports.ts'
import { Connection } from './connection.ts'
import { type Dispatch, encodeError, type SignalingSession } from './dispatch.ts'

/** What a socket was let in as: a session, or only to hear why not [WS2]. */
type Admission =
  | {
      readonly kind: 'session'
      readonly claims: SessionClaims
      connection: Connection | undefined
      /** After expiry: until when it was in a call. */
      inCallAt: number
    }
  | { readonly kind: 'refused'; readonly code: number; readonly reason: string; readonly error: ErrorBody | undefined }

export interface GatewayOptions {
  readonly config: Pick<
    Config,
    | 'allowedOrigins'
    | 'maxSockets'
    | 'nodeId'
    | 'pingIntervalMs'
    | 'pongTimeoutMs'
    | 'probeTimeoutMs'
    | 'tokenGraceMs'
    | 'wsRate'
  >
  readonly tokens: Tokens
  readonly limits: Limits
  readonly sessions: Sessions
  readonly arrivals: Arrivals
  readonly dispatch: Dispatch
  readonly clock: { now(): number; monotonic(): number }
  readonly state: () => 'starting' | 'ready' | 'draining'
  readonly onError: (error: unknown) => void
}

export interface Gateway {
  /**
   * Answers GET /v1/ws; undefined where the socket was upgraded. Nothing is awaited before an upgrade, and the client's
   * address is only looked up for one that is refused.
   */
  upgrade(
    request: Request,
    query: string,
    server: Server<unknown>,
    clientAddress: () => string | undefined,
  ): Promise<Response> | Response | undefined
  readonly websocket: WebSocketHandler<Admission>
  /** Asks every client to come back elsewhere, with a jitter hint in the reason [CLOSE 1012]. */
  closeAll(): Promise<void>
  start(): void
  stop(): void
  /** Open sockets. */
  size(): number
}

/** Above our own limit of a message, so that it is we who close with 1009. */
const nativeMaxBytes = 256 * 1024
const tickMs = 500
/**
 * How long closed sockets are still read: to a client that is sending, the end of the process is a reset, which may
 * overtake the close frame.
 */
const lingerMs = 500
/** Query parameters in which somebody might put a token: it would end up in logs [WS1]. */
const tokenParameters = ['token', 'access_token', 'jwt', 'authorization']
/** Headers of an upgrade: where the client offered the subprotocol, the answer selects it [WS1]. */
const selected = { 'Sec-WebSocket-Protocol': subprotocol }
const none = {}

export function createGateway(options: GatewayOptions): Gateway {
  const { config, tokens, limits, sessions, arrivals, dispatch, clock } = options
  const connections = new Map<Connection, Admission & { kind: 'session' }>()
  let dirty: Connection[] = []
  let ticker: ReturnType<typeof setInterval> | undefined
  let stopping = false
  let lastTick = clock.monotonic()

  function requestFlush(connection: Connection): void {
    if (dirty.length === 0) setImmediate(flushAll)
    dirty.push(connection)
  }
  function flushAll(): void {
    const now = clock.monotonic()
    const due = dirty
    dirty = []
    for (const connection of due) connection.flush(now)
  }

  function admit(
    { headers }: Request,
    query: string,
    { offered, token }: Subprotocols,
    clientAddress: () => string | undefined,
  ): Admission | Promise<Response> | Response {
    const origin = headers.get('origin')?.toLowerCase()
    if (origin !== undefined && config.allowedOrigins !== null && !config.allowedOrigins.includes(origin)) {
      return { kind: 'refused', code: 4403, reason: 'origin not allowed', error: undefined }
    }
    if (hasToken(query)) {
      return refusal('AUTH_TOKEN_INVALID', 'A token in the URL is refused: use the subprotocol or the header.')
    }
    // Another scheme is no credential here: a browser adds the one of its page's own login.
    const bearer = /^Bearer +(\S.*)$/i.exec(headers.get('authorization')?.trim() ?? '')?.[1]
    if (bearer !== undefined) {
      const verified = tokens.verify(bearer)
      if (verified.ok) return { kind: 'session', claims: verified.claims, connection: undefined, inCallAt: 0 }
      return verified.expired ? refusal('AUTH_TOKEN_INVALID') : countedRefusal(clientAddress())
    }
    if (!offered) return refusal('AUTH_TOKEN_REQUIRED')
    if (token === undefined) {
      return { kind: 'refused', code: 4401, reason: 'token required', error: errorBody('AUTH_TOKEN_REQUIRED') }
    }
    const verified = tokens.verify(token)
    if (verified.ok) return { kind: 'session', claims: verified.claims, connection: undefined, inCallAt: 0 }
    if (!verified.expired) void limits.failedAuthentication(clientAddress()).catch(options.onError)
    return { kind: 'refused', code: 4401, reason: 'token invalid', error: errorBody('AUTH_TOKEN_INVALID') }
  }

  /** Failures have a budget per address; what is valid never meets it [TOK5]. */
  async function countedRefusal(clientAddress: string | undefined): Promise<Response> {
    const limit = await limits.failedAuthentication(clientAddress)
    if (limit.ok) return refusal('AUTH_TOKEN_INVALID')
    const response = refusal('BOOTSTRAP_IP_RATE_LIMITED')
    response.headers.set('Retry-After', String(Math.ceil(limit.retryAfterMs / 1000)))
    return response
  }

  function open(socket: ServerWebSocket<Admission>): void {
    const admission = socket.data
    if (admission.kind === 'refused') {
      if (admission.error !== undefined) socket.send(encodeError(admission.error, undefined))
      socket.close(admission.code, admission.reason)
      return
    }
    const session = sessionOf(admission.claims, config.nodeId)
    if (!makeRoom(session)) {
      socket.send(encodeError(errorBody('RATE_LIMITED'), undefined))
      socket.close(4429, 'too many connections')
      return
    }
    const connection = new Connection({
      socket,
      session,
      dispatch,
      timing: config,
      messageRate: config.wsRate,
      now: clock.monotonic,
      requestFlush,
      onProven: (seq) => sessions.prove(session.sessionId, seq),
    })
    admission.connection = connection
    connections.set(connection, admission)
    // In here it leaves in one write with the answer to the upgrade.
    socket.send(authOk(session))
    connection.begin(
      arrivals.arrive(session, connection).catch((error) => {
        options.onError(error)
        connection.close(1013, 'try again later')
      }),
    )
  }

  /** At most so many sockets a participant: the oldest that holds no place makes room [WS7]. */
  function makeRoom(session: SignalingSession): boolean {
    const live = sessions.liveOf(session.participant)
    if (live.length < config.maxSockets) return true
    const oldest = live.find((sessionId) => !sessions.holdsAny(sessionId))
    if (oldest === undefined) return false
    sessions.sinkOf(oldest)?.close(4429, 'too many connections')
    return true
  }

  function closed(socket: ServerWebSocket<Admission>, code: number): void {
    if (socket.data.kind !== 'session') return
    const { connection } = socket.data
    if (connection === undefined) return
    const clean = code !== 1006 && !connection.closedByService
    connection.closed()
    connections.delete(connection)
    if (!stopping) arrivals.leave(connection.session, clean).catch(options.onError)
  }

  function tick(): void {
    const now = clock.monotonic()
    const wall = clock.now()
    const late = now - lastTick - tickMs
    lastTick = now
    for (const [connection, admission] of connections) {
      if (late > tickMs) connection.allow(late)
      connection.tick(now)
      if (wall > admission.claims.expiresAt) closeExpired(connection, admission, wall)
    }
  }

  /** Token expiry never cuts a call: the grace begins with it, or with the end of the last call if that is later [WS5]. */
  function closeExpired(connection: Connection, admission: Admission & { kind: 'session' }, wall: number): void {
    // The call may go on until the next look.
    if (sessions.inCall(connection.session.sessionId)) admission.inCallAt = wall + tickMs
    const since = Math.max(admission.claims.expiresAt, admission.inCallAt)
    if (wall - since > config.tokenGraceMs) connection.close(4401, 'token expired')
  }

  return {
    upgrade(request, query, server, clientAddress) {
      if (options.state() !== 'ready') return refusal('SERVICE_DRAINING')
      const subprotocols = readSubprotocols(request.headers.get('sec-websocket-protocol'))
      const admitted = admit(request, query, subprotocols, clientAddress)
      if (admitted instanceof Response || admitted instanceof Promise) return admitted
      const headers = subprotocols.offered ? selected : none
      if (server.upgrade(request, { data: admitted, headers })) return undefined
      return refusal('UPGRADE_REQUIRED')
    },
    websocket: {
      data: {} as Admission,
      open,
      message(socket, message) {
        if (socket.data.kind === 'session') socket.data.connection?.receive(message)
      },
      pong(socket, data) {
        if (socket.data.kind === 'session') socket.data.connection?.pong(data)
      },
      close: closed,
      maxPayloadLength: nativeMaxBytes,
      idleTimeout: 0,
      sendPings: false,
      perMessageDeflate: false,
      backpressureLimit: 16 * 1024 * 1024,
      closeOnBackpressureLimit: false,
    },
    async closeAll() {
      stopping = true
      if (connections.size === 0) return
      const jitterMs = Math.min(30_000, connections.size * 2)
      for (const connection of [...connections.keys()]) connection.close(1012, `restart, jitter_ms=${jitterMs}`)
      await Bun.sleep(lingerMs)
    },
    start() {
      lastTick = clock.monotonic()
      ticker = setInterval(tick, tickMs)
    },
    stop() {
      clearInterval(ticker)
    },
    size: () => connections.size,
  }
}

function hasToken(query: string): boolean {
  if (query === '') return false
  return [...new URLSearchParams(query).keys()].some((name) => tokenParameters.includes(name.toLowerCase()))
}

function sessionOf(claims: SessionClaims, node: string): SignalingSession {
  const { participant } = claims
  const origin = JSON.stringify({ from_user_id: participant.userId, from_role: participant.role })
  return {
    participant,
    sessionId: randomBytes(16).toString('base64url'),
    deviceId: claims.deviceId,
    displayName: claims.displayName,
    node,
    allowedActions: claims.allowedActions,
    allowedPeerRoles: claims.allowedPeerRoles,
    contextType: claims.contextType,
    contextId: claims.contextId,
    originJson: origin.slice(1, -1),
    expiresAt: claims.expiresAt,
  }
}

/** A base session is its socket: one id serves for both [ID2, WS3]. */
function authOk(session: SignalingSession): string {
  const data: AuthOk = {
    user_id: session.participant.userId,
    role: session.participant.role,
    display_name: session.displayName,
    socket_id: session.sessionId,
  }
  return JSON.stringify({ event: 'auth.ok', success: true, data })
}

function refusal(code: ErrorCode, message?: string): Response {
  const error = errorBody(code, message === undefined ? {} : { message })
  const definition = errors[code]
  const status = 'status' in definition ? definition.status : 500
  const headers = {
    'Cache-Control': 'no-store',
    ...(status === 401 && { 'WWW-Authenticate': 'Bearer' }),
    ...(status === 503 && { 'Retry-After': '1' }),
  }
  return Response.json({ success: false, error: { code: error.code, message: error.message } }, { status, headers })
}
