import { errorBody } from '@ringwire/protocol/errors'
import type { ServerWebSocket } from 'bun'
import type { Arrival } from '../calls/arrivals.ts'
import { andThen, type MaybePromise } from '../ports/maybe.ts'
import type { Admission, Admitted, LiveConnections } from './admission.ts'
import { encodeError } from './answer.ts'
import { Connection, type ConnectionContext } from './connection.ts'
import type { SignalingSession } from './dispatch.ts'
import type { ExtendedRequest } from './extended-query.ts'
import type { GatewayOptions } from './gateway-options.ts'
import type { GiveUp } from './give-up.ts'
import { dropReplies } from './replies.ts'
import { createRoom } from './room.ts'
import { authOk, extendedAuthOk, sessionOf } from './welcome.ts'

interface OpeningOptions
  extends Pick<
    GatewayOptions,
    | 'config'
    | 'node'
    | 'newSessionId'
    | 'isRevoked'
    | 'sessions'
    | 'arrivals'
    | 'presence'
    | 'online'
    | 'clock'
    | 'journal'
  > {
  readonly connections: LiveConnections
  readonly context: ConnectionContext
  readonly giveUp: GiveUp
  /** When the ICE servers of a session that was just let in are to be renewed, in ms since the epoch [EXT5]. */
  readonly iceDueAt: (admission: Admitted, wall: number) => number
}

/** Nobody knows when one of the calls that hold all sockets will be over, so this is a guess. */
const roomRetryMs = 5_000
const noRoom = errorBody('RATE_LIMITED', { limit: 'connections', retry_after_ms: roomRetryMs })
const tooManyConnections = encodeError(noRoom, undefined)

/** What happens when a socket opens: from what it was let in as to a session that has heard what it missed. */
export function createOpening(options: OpeningOptions): (socket: ServerWebSocket<Admission>) => void {
  const { config, sessions, connections, context, clock, journal, giveUp } = options
  const makeRoom = createRoom(sessions, config.maxSockets)
  const begin = createBeginning(options)

  function open(socket: ServerWebSocket<Admission>): void {
    const admission = socket.data
    if (admission.kind === 'refused') {
      if (admission.error !== undefined) socket.send(encodeError(admission.error, undefined))
      socket.close(admission.code, admission.reason)
      return
    }
    const sessionId = options.newSessionId(admission.claims.participant)
    const session = sessionOf(admission.claims, sessionId, options.node, admission.extended)
    const room = makeRoom(session.participant)
    if (room === false) {
      journal.closing(session, 4429, 'too many connections', 0)
      socket.send(tooManyConnections)
      socket.close(4429, 'too many connections')
      return
    }
    const connection = new Connection(socket, session, context)
    admission.connection = connection
    admission.iceDueAt = options.iceDueAt(admission, clock.now())
    connections.set(connection, admission)
    if (options.isRevoked(session)) connection.close(4403, 'disconnected')
    else enter(socket, admission, connection, room)
  }

  function enter(
    socket: ServerWebSocket<Admission>,
    admission: Admitted,
    connection: Connection,
    room: MaybePromise<boolean>,
  ): void {
    const { session } = connection
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
      giveUp(connection, error)
    }
  }

  /** Requests wait until the session is in. */
  function wait(connection: Connection, arrival: Promise<unknown>): Promise<void> {
    const settled = arrival.then(
      () => {},
      (error) => giveUp(connection, error),
    )
    connection.begin(settled)
    return settled
  }

  return open
}

/** What a connection begins with, once there is room for it: its session, and a welcome. */
function createBeginning(options: OpeningOptions) {
  const { config, sessions, arrivals, connections, clock, journal } = options

  /** An extended session is welcomed when it is clear which session it is: a new one, or the one that it was [RES1]. */
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
        // Its new token may not allow it to watch the same participants any more [PRES1].
        if (arrival.recovered) options.presence.end(sessionId)
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

  function admitted(connection: Connection): void {
    const admission = connections.get(connection)
    // The socket may be closed by now.
    if (admission === undefined || admission.isIn) return
    admission.isIn = true
    options.online.opened(connection.session.participant)
  }

  return begin
}
