import { errorBody } from '@ringwire/protocol/errors'
import type { IceServersResponse } from '@ringwire/protocol/rest'
import { readSubprotocols, subprotocol, webSocketPath } from '@ringwire/protocol/subprotocol'
import type { Server, ServerWebSocket, WebSocketHandler } from 'bun'
import type { SessionClaims, Tokens } from '../auth/tokens.ts'
import { type Participant, refOf } from '../call/call.ts'
import type { Arrival, Arrivals } from '../calls/arrivals.ts'
import type { Config } from '../config/config.ts'
import { type IceServersOf, relayPolicy } from '../ice/ice-servers.ts'
import type { LocalLimits } from '../limits/limits.ts'
import type { Room } from '../observability/descriptors.ts'
import type { Journal } from '../observability/journal.ts'
import type { Cancel, Clock, Timers } from '../ports/clock.ts'
import { andThen, type MaybePromise } from '../ports/maybe.ts'
import type { SessionLookup, SessionPushes, SessionSockets } from '../ports/sessions.ts'
import { StoreError } from '../ports/store-error.ts'
import type { Online } from '../presence/online.ts'
import type { Presence } from '../presence/presence.ts'
import type { Recorder } from '../timeline/recorder.ts'
import { type Admission, type Admitted, createAdmission, refusal } from './admission.ts'
import { createBacklog } from './backlog.ts'
import { Connection, type ConnectionContext } from './connection.ts'
import { type Dispatch, encodeError, type SignalingSession } from './dispatch.ts'
import { drain } from './drain.ts'
import type { ExtendedRequest } from './extended-query.ts'
import { createFlushing } from './flushing.ts'
import { dropReplies } from './outlet.ts'
import { createRebalance } from './rebalance.ts'
import { closeRevoked } from './revoking.ts'
import { createRoom } from './room.ts'
import { createSenders } from './senders.ts'
import { createStallWatch } from './stall.ts'
import { createTarpit } from './tarpit.ts'
import { createUnsent } from './unsent.ts'
import { authOk, extendedAuthOk, sessionOf } from './welcome.ts'

export interface GatewayOptions {
  readonly config: Pick<
    Config,
    | 'allowedOrigins'
    | 'maxSockets'
    | 'maxUnsentMib'
    | 'pingIntervalMs'
    | 'pongTimeoutMs'
    | 'rebalancePerSecond'
    | 'probeTimeoutMs'
    | 'resumeWindowMs'
    | 'tokenTtlS'
    | 'tokenGraceMs'
    | 'wsRate'
  >
  /** This node, as the places of its sessions name it. */
  readonly node: string
  /** A session id that no other has [ID2]. */
  readonly newSessionId: (participant: Participant) => string
  readonly tokens: Tokens
  /** Whether the token of a session was taken back since it connected [SRV2], or its product key is disabled [KEY1]. */
  readonly isRevoked: (session: Pick<SignalingSession, 'participant' | 'issuedAt' | 'key'>) => boolean
  readonly localLimits: LocalLimits
  readonly sessions: SessionSockets & SessionLookup & Pick<SessionPushes, 'append'>
  /** Resolves when what clients are told of until now is saved; undefined where nothing has to be waited for. */
  readonly save: () => Promise<void> | undefined
  readonly arrivals: Arrivals
  readonly dispatch: Dispatch
  readonly presence: Pick<Presence, 'end'>
  readonly online: Pick<Online, 'opened' | 'closed'>
  readonly recorder: Pick<Recorder, 'record'>
  readonly iceServers: IceServersOf
  readonly isRelayOnly: (product: string) => boolean
  /** When TURN credentials that are made now run out; null where they do not. */
  readonly turnExpiry: (now: number) => number | null
  readonly clock: Clock
  readonly timers: Timers
  readonly state: () => 'starting' | 'ready' | 'draining'
  /** Whether one more socket may be opened [MET2]. */
  readonly roomForNewcomer: () => Room
  /** How many sockets each of the other nodes has that take clients [BAL1]. */
  readonly loads: () => readonly number[]
  readonly journal: Pick<
    Journal,
    'closing' | 'turnedAway' | 'full' | 'left' | 'resumed' | 'answered' | 'request' | 'rebalancing'
  >
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
  ): MaybePromise<Response> | undefined
  readonly websocket: WebSocketHandler<Admission>
  /**
   * Asks every client to come back, with a jitter hint in the reason [CLOSE 1012]: all at once, or each at a moment of its
   * own within `windowMs`.
   */
  closeAll(windowMs: number): Promise<void>
  /**
   * Closes the sockets of sessions whose token was taken back [SRV2], or whose product key is disabled [KEY1]; where
   * `participants` are given by their hashes, only those.
   */
  closeRevoked(participants?: readonly string[]): void
  start(): void
  stop(): void
  /** Open sockets. */
  size(): number
}

/**
 * A little above our own limit of a message, so that it is mostly we who close with 1009. The runtime keeps so much of a message
 * that is never finished, for each socket.
 */
const nativeMaxBytes = 80 * 1024
const tickMs = 500
/** A tick that comes so much later says that this process was busy: no client answers for that time. In ms. */
const lateMs = 100
/** So long who is refused too often waits for the answer, and so many at once. */
const tarpitMs = 1_000
const maxInTarpit = 1_000
/** Of messages that wait for their turn, for one participant [ORD1]. */
const maxWaitingBytes = 1024 * 1024
/** TURN servers that a client could not be told of are told so much later. In ms. */
const iceRetryMs = 5_000
/** Share of the TURN credentials' lifetime after which new ones are pushed [EXT5]. */
const iceRenewal = 0.8
/**
 * How long closed sockets are still read: to a client that is sending, the end of the process is a reset, which may
 * overtake the close frame.
 */
const lingerMs = 500
/** So long places may take to be vacated at the end. */
const leaveLimitMs = 5_000
/** Shares of the window: in which sockets are closed, and after which a request under way is waited for no longer. */
const spread = 0.8
const patience = 0.9
/** What a client still has to wait where the service itself spreads the closes, in ms. */
const spreadJitterMs = 100
/** Milliseconds that a client may be later than its jitter before its peers hear that it is away [PEER1]. */
const lateBackMs = 1_000
/** Why the service closes with 1012. */
const restart = 'restart'
/**
 * Header of an upgrade: if the client offered the subprotocol, the answer selects it [WS1]. Without any such header the
 * runtime selects the first one that was offered, which may be a token (oven-sh/bun#18243); an empty one selects none.
 */
const selecting = (isOffered: boolean) => ({ 'Sec-WebSocket-Protocol': isOffered ? subprotocol : '' })
const restartReason = (jitterMs: number) => `${restart}, jitter_ms=${jitterMs}`
/** Until one of the calls that hold all sockets may be over: nobody knows when. */
const roomRetryMs = 5_000
const noRoom = errorBody('RATE_LIMITED', { limit: 'connections', retry_after_ms: roomRetryMs })
const tooManyConnections = encodeError(noRoom, undefined)

export function createGateway(options: GatewayOptions): Gateway {
  const { config, sessions, arrivals, dispatch, presence, online, recorder, clock, timers, journal } = options
  const admission = createAdmission({ ...options, allowedOrigins: config.allowedOrigins })
  const makeRoom = createRoom(sessions, config.maxSockets)
  const tarpit = createTarpit({ holdMs: tarpitMs, most: maxInTarpit })
  const backlog = createBacklog(maxWaitingBytes)
  const senders = config.wsRate === null ? undefined : createSenders(config.wsRate)
  const connections = new Map<Connection, Admitted>()
  /** Sockets that are gone, whose places are just being vacated. */
  const leavings = new Set<Promise<void>>()
  const flushing = createFlushing({ save: options.save, onFailed: failed, timers })
  let stopTicking: Cancel | undefined
  /** Milliseconds within which clients are expected back that were closed with 1012 [PEER1]. */
  let awaitedMs = 0
  let lastTick = clock.monotonic()
  const stalls = createStallWatch(clock.monotonic, () => {
    for (const connection of connections.keys()) connection.doubt()
  })

  const rebalance = createRebalance({
    ...{ sessions, clock, journal },
    perSecond: config.rebalancePerSecond,
    connections: () => connections,
    loads: options.loads,
    part: (connection) => connection.part(1012, restartReason(spreadJitterMs), 'rebalance'),
  })
  const unsent = createUnsent<Connection>({
    limit: config.maxUnsentMib * 1024 * 1024,
    sockets: () => connections.keys().map((connection) => [connection, connection.unsent()] as const),
    close: (connection) => connection.close(4008, 'reads too slowly', 'slow readers owe too much together'),
    later: timers.turn,
  })

  const context: ConnectionContext = {
    onUnsent: unsent.add,
    dispatch,
    backlog,
    timing: config,
    senders,
    timers,
    requestFlush: flushing.request,
    isSaved: flushing.isSaved,
    hasMoved,
    onProven: (sessionId, seq) => soon(sessions.prove(sessionId, seq)),
    onSilent: (session) => soon(arrivals.doubt(session)),
    onHeard: ({ sessionId }) => sessions.trust(sessionId),
    onRung,
    onClosing: ({ session, openedAt }, code, cause) =>
      journal.closing(session, code, cause, (clock.monotonic() - openedAt) / 1_000),
  }

  function open(socket: ServerWebSocket<Admission>): void {
    const admission = socket.data
    if (admission.kind === 'refused') {
      if (admission.error !== undefined) socket.send(encodeError(admission.error, undefined))
      socket.close(admission.code, admission.reason)
      return
    }
    const sessionId = options.newSessionId(admission.claims.participant)
    const session = sessionOf(admission.claims, sessionId, options.node, admission.extended !== undefined)
    const room = makeRoom(session.participant)
    if (room === false) {
      journal.closing(session, 4429, 'too many connections', 0)
      socket.send(tooManyConnections)
      socket.close(4429, 'too many connections')
      return
    }
    const connection = new Connection(socket, session, context)
    admission.connection = connection
    admission.iceDueAt = iceDueAt(admission.claims, clock.now())
    connections.set(connection, admission)
    if (options.isRevoked(session)) {
      connection.close(4403, 'disconnected')
      return
    }
    // In here it leaves in one write with the answer to the upgrade.
    if (!session.extended && room === true) socket.send(authOk(session))
    try {
      const arrival = andThen(room, (isRoom) => {
        if (isRoom) return begin(connection, session, admission.extended, room === true)
        connection.send(tooManyConnections)
        connection.close(4429, 'too many connections')
        return undefined
      })
      if (arrival instanceof Promise) admission.arrival = wait(connection, arrival)
      else if (session.extended) {
        connection.seal()
        connection.flush(clock.monotonic())
      }
    } catch (error) {
      failed(connection, error)
    }
  }

  function onRung({ sessionId, deviceId }: SignalingSession, call: string, isProven: boolean): void {
    const what = isProven ? 'proven' : 'rung'
    recorder.record(refOf(call), { what, side: 'callee', sessionId, deviceId: deviceId ?? undefined, detail: {} })
  }

  /** Where the sessions' store is away nobody knows: then the client's sign of life has to do. */
  function hasMoved(connection: Connection): MaybePromise<boolean> {
    const moved = sessions.hasMoved(connection.session.sessionId, connection)
    if (!(moved instanceof Promise)) return moved
    return moved.catch((error) => {
      options.onError(error)
      return false
    })
  }

  /** Requests wait until it is in. */
  function wait(connection: Connection, arrival: Promise<unknown>): Promise<void> {
    const settled = arrival.then(
      () => {},
      (error) => failed(connection, error),
    )
    connection.begin(settled)
    return settled
  }

  function failed(connection: Connection, error: unknown): void {
    options.onError(error)
    // It has to come again, and not by its own fault: once.
    if (!connection.isClosed) options.localLimits.refundConnection(connection.session.participant)
    connection.close(1013, 'try again later', 'what it finds could not be read')
  }

  /** An extended session hears who it is after it is clear which one: a new one, or the one that it was [RES1]. */
  function begin(
    connection: Connection,
    session: SignalingSession,
    extended: ExtendedRequest | undefined,
    isWelcomed: boolean,
  ): MaybePromise<Arrival> {
    return andThen(arrivals.arrive(session, connection, extended?.resume), (arrival) => {
      const { sessionId, upstream } = arrival
      if (extended?.resume !== undefined) journal.resumed(arrival.recovered)
      if (extended !== undefined) {
        // Whom its client was allowed to watch it may not be any more [PRES1].
        if (arrival.recovered) presence.end(sessionId)
        connection.adopt({ ...session, sessionId }, upstream)
        dropReplies(upstream, extended.replied)
        connection.send(extendedAuthOk(session, arrival, config.resumeWindowMs, clock.now()))
        for (const { text } of upstream.replies) connection.send(text)
      } else if (!isWelcomed) connection.send(authOk(session))
      return andThen(sessions.ready(sessionId, connection), () => {
        admitted(connection)
        return arrival
      })
    })
  }

  /** It may be closed by now. */
  function admitted(connection: Connection): void {
    const admission = connections.get(connection)
    if (admission === undefined || admission.isIn) return
    admission.isIn = true
    online.opened(connection.session.participant)
  }

  function closed(socket: ServerWebSocket<Admission>, code: number): void {
    if (socket.data.kind !== 'session') return
    const { connection, arrival } = socket.data
    if (connection === undefined) return
    // The SDK of an extended session says goodbye with 1000; a page that is reloaded (1001) comes back.
    const isBase = socket.data.extended === undefined
    const closed = (isBase ? code !== 1006 : code === 1000 || code === 1001) && !connection.closedByService
    const cause = connection.cause ?? (code === 1006 ? 'the connection was lost' : `its client closed it (${code})`)
    const forGood = closed && (isBase || code === 1000)
    const loss = { closed, forGood, cause, awaitedMs: connection.cause === restart ? awaitedMs : undefined }
    if (!connection.closedByService) journal.left(code)
    connection.closed()
    connections.delete(connection)
    if (socket.data.isIn) online.closed(connection.session.participant)
    const left = async () => {
      await arrival
      await arrivals.leave(connection.session, connection, loss)
    }
    const leaving = left()
      .catch(options.onError)
      .finally(() => leavings.delete(leaving))
    leavings.add(leaving)
  }

  /** The end of the process waits for no store: others find the places of who could not leave them [END3]. */
  async function allLeft(): Promise<void> {
    const { promise: late, resolve } = Promise.withResolvers<'late'>()
    const cancel = timers.after(leaveLimitMs, () => resolve('late'))
    const first = await Promise.race([Promise.all(leavings), late])
    cancel()
    if (first === 'late') options.onError(new StoreError('unavailable', 'some sockets could not leave in time'))
  }

  function tick(): void {
    stalls.look()
    const now = clock.monotonic()
    const wall = clock.now()
    const late = now - lastTick - tickMs
    lastTick = now
    senders?.sweep(now)
    for (const [connection, admission] of connections) {
      if (late > lateMs) connection.allow(late)
      connection.tick(now)
      if (wall > connection.session.expiresAt) soon(closeExpired(connection, admission, wall))
      const isGood = wall < connection.session.expiresAt
      if (isGood && admission.extended !== undefined && wall >= admission.iceDueAt)
        soon(renewIceServers(connection, admission, wall))
    }
    if (config.rebalancePerSecond > 0 && options.state() === 'ready') rebalance.look()
  }

  /** Where the sessions' store is away, the next look sees to it. */
  function soon(done: MaybePromise<unknown>): void {
    if (done instanceof Promise) done.catch(options.onError)
  }

  /** The client's first credentials came with its token. */
  function iceDueAt(claims: SessionClaims, wall: number): number {
    const issuedAt = Math.min(wall, claims.expiresAt - config.tokenTtlS * 1000)
    return renewalAt(issuedAt, options.turnExpiry(issuedAt))
  }

  /** Before the TURN credentials run out [EXT5]. */
  function renewIceServers(connection: Connection, admission: Admitted, wall: number): MaybePromise<unknown> {
    const { sessionId, participant } = connection.session
    const expiresAt = options.turnExpiry(wall)
    const nextAt = renewalAt(wall, expiresAt)
    admission.iceDueAt = nextAt
    if (expiresAt === null) return
    // Until it is known that they were told, there is no next time.
    admission.iceDueAt = wall + iceRetryMs
    const data: IceServersResponse = {
      ice_servers: options.iceServers(participant, wall),
      ...(options.isRelayOnly(participant.product) && relayPolicy),
      expires_at: new Date(expiresAt).toISOString(),
    }
    const text = JSON.stringify({ event: 'ice.servers', data })
    return andThen(sessions.append(sessionId, { kind: 'notice', call: '', version: undefined, text }), (result) => {
      if (result !== 'gone') admission.iceDueAt = nextAt
    })
  }

  /** Token expiry never cuts a call: the grace begins with it, or with the end of the last call if that is later [WS5]. */
  function closeExpired(connection: Connection, admission: Admitted, wall: number): MaybePromise<void> {
    return andThen(sessions.inCall(connection.session.sessionId), (inCall) => {
      // The call may go on until the next look.
      if (inCall) admission.inCallAt = wall + tickMs
      const since = Math.max(connection.session.expiresAt, admission.inCallAt)
      if (wall - since > config.tokenGraceMs) connection.close(4401, 'token expired')
    })
  }

  /** Where nobody knows, because the sessions' store is away, it goes with those who are in none. */
  async function isInCall(sessionId: string): Promise<boolean> {
    try {
      return await sessions.inCall(sessionId)
    } catch (error) {
      options.onError(error)
      return false
    }
  }

  return {
    upgrade(request, query, server, clientAddress) {
      const subprotocols = readSubprotocols(request.headers.get('sec-websocket-protocol'))
      if (options.state() !== 'ready') return turnAway(request, server, subprotocols.offered, draining)
      const room = options.roomForNewcomer()
      if (room !== 'free') {
        journal.full()
        // A browser's socket holds its descriptor until the browser has closed it.
        return room === 'low' ? turnAway(request, server, subprotocols.offered, full) : refusal(full.code, full.message)
      }
      const admitted = admission.admit(request.headers, query, subprotocols, clientAddress)
      if (admitted.kind === 'turned away') {
        const { answer, isLate } = admitted
        journal.answered({ method: 'GET', path: webSocketPath, client: clientAddress }, answer, 0)
        return isLate ? tarpit.hold(answer, request.signal) : answer
      }
      if (admitted.kind === 'refused') journal.turnedAway(admitted.code, admitted.reason, clientAddress)
      if (server.upgrade(request, { data: admitted, headers: selecting(subprotocols.offered) })) return undefined
      return refusal('UPGRADE_REQUIRED')
    },
    websocket: {
      data: {} as Admission,
      open,
      message(socket, message) {
        if (socket.data.kind !== 'session') return
        socket.data.connection?.receive(message, stalls.look())
      },
      ping(socket) {
        if (socket.data.kind === 'session') socket.data.connection?.pinged()
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
    async closeAll(windowMs) {
      if (connections.size === 0) return allLeft()
      const jitterMs = windowMs > 0 ? spreadJitterMs : Math.min(30_000, connections.size * 2)
      const reason = restartReason(jitterMs)
      // When a second signal hurries the stop, some clients were told another jitter.
      awaitedMs = Math.max(awaitedMs, jitterMs + lateBackMs)
      if (windowMs > 0) {
        await drain([...connections.keys()], {
          spreadMs: windowMs * spread,
          limitMs: windowMs * patience,
          part: (connection) => connection.part(1012, reason, restart),
          inCall: isInCall,
          timers,
          random: Math.random,
        })
      }
      for (const connection of [...connections.keys()]) connection.close(1012, reason, restart)
      await timers.sleep(lingerMs)
      await allLeft()
    },
    closeRevoked: (participants) => closeRevoked(connections.keys(), options.isRevoked, participants),
    start() {
      lastTick = clock.monotonic()
      stopTicking = timers.every(tickMs, tick)
    },
    stop() {
      stopTicking?.()
    },
    size: () => connections.size,
  }
}

/** Why nobody is let in. */
interface Shut {
  readonly code: 'SERVICE_DRAINING' | 'SERVICE_UNAVAILABLE'
  readonly reason: string
  readonly message?: string
}

const draining: Shut = { code: 'SERVICE_DRAINING', reason: 'draining, try again' }
const full: Shut = {
  code: 'SERVICE_UNAVAILABLE',
  reason: 'no room, try again',
  message: 'The service has no file descriptor left for another connection. Try again later.',
}

/** A browser, which sends its Origin, would show a refused upgrade as 1006: it is let in to hear when to come back. */
function turnAway(request: Request, server: Server<unknown>, offered: boolean, shut: Shut): Response | undefined {
  const { code, reason, message } = shut
  const error = errorBody(code, message === undefined ? {} : { message })
  const data: Admission = { kind: 'refused', code: 1013, reason, error }
  const isBrowser = request.headers.has('origin')
  if (isBrowser && server.upgrade(request, { data, headers: selecting(offered) })) return undefined
  return refusal(code, message)
}

function renewalAt(issuedAt: number, expiresAt: number | null): number {
  return expiresAt === null ? Number.POSITIVE_INFINITY : issuedAt + (expiresAt - issuedAt) * iceRenewal
}
