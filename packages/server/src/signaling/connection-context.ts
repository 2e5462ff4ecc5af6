import { refOf } from '../call/call.ts'
import { type MaybePromise, unawaited } from '../ports/maybe.ts'
import type { LiveConnections } from './admission.ts'
import { createBacklog } from './backlog.ts'
import type { Connection, ConnectionContext } from './connection.ts'
import type { SignalingSession } from './dispatch.ts'
import { createFlushing } from './flushing.ts'
import type { GatewayOptions } from './gateway-options.ts'
import type { GiveUp } from './give-up.ts'
import type { Senders } from './senders.ts'
import { createUnsent } from './unsent.ts'

interface ConnectionContextOptions
  extends Pick<
    GatewayOptions,
    'config' | 'sessions' | 'save' | 'arrivals' | 'dispatch' | 'recorder' | 'clock' | 'timers' | 'journal' | 'onError'
  > {
  readonly connections: LiveConnections
  readonly senders: Senders | undefined
  readonly giveUp: GiveUp
}

/** Of messages that wait for their turn, for one participant [ORD1]. */
const maxWaitingBytes = 1024 * 1024

/** What all sockets share: the listeners of a connection, and the counts over all of them. */
export function createConnectionContext(options: ConnectionContextOptions): ConnectionContext {
  const { config, connections, sessions, arrivals, dispatch, recorder, clock, timers, journal, onError } = options
  const flushing = createFlushing({ save: options.save, onFailed: options.giveUp, timers })
  const unsent = createUnsent<Connection>({
    limit: config.maxUnsentMib * 1024 * 1024,
    sockets: () => connections.keys().map((connection) => [connection, connection.unsent()] as const),
    close: (connection) => connection.close(4008, 'reads too slowly', 'slow readers owe too much together'),
    later: timers.turn,
  })

  /** While the sessions' store is away nobody knows. Then the client's sign of life has to be enough. */
  function hasMoved(connection: Connection): MaybePromise<boolean> {
    const moved = sessions.hasMoved(connection.session.sessionId, connection)
    if (!(moved instanceof Promise)) return moved
    return moved.catch((error) => {
      onError(error)
      return false
    })
  }

  function onRung({ sessionId, deviceId, participant }: SignalingSession, call: string, isProven: boolean): void {
    const what = isProven ? 'proven' : 'rung'
    const whose = { sessionId, deviceId: deviceId ?? undefined, member: participant.userId }
    recorder.record(refOf(call), { what, side: 'callee', ...whose, detail: {} })
  }

  return {
    onUnsent: unsent.add,
    dispatch,
    backlog: createBacklog(maxWaitingBytes),
    timing: config,
    senders: options.senders,
    timers,
    requestFlush: flushing.request,
    isSaved: flushing.isSaved,
    hasMoved,
    onProven: (sessionId, seq) => unawaited(sessions.prove(sessionId, seq), onError),
    onSilent: (session) => unawaited(arrivals.doubt(session), onError),
    onHeard: ({ sessionId }) => sessions.trust(sessionId),
    onRung,
    onClosing: ({ session, openedAt }, code, cause) =>
      journal.closing(session, code, cause, (clock.monotonic() - openedAt) / 1_000),
  }
}
