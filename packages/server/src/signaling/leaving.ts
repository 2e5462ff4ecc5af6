import type { ServerWebSocket } from 'bun'
import { StoreError } from '../ports/store-error.ts'
import type { Admission, LiveConnections } from './admission.ts'
import type { GatewayOptions } from './gateway-options.ts'

interface LeavingOptions extends Pick<GatewayOptions, 'arrivals' | 'online' | 'timers' | 'journal' | 'onError'> {
  readonly connections: LiveConnections
}

export interface Leaving {
  /** A socket is gone: its session leaves, and its places become vacant. */
  closed(socket: ServerWebSocket<Admission>, code: number): void
  /** Clients that are closed for a restart are expected back within `ms` milliseconds [PEER1]. A shorter time changes nothing. */
  expectBack(ms: number): void
  /** Resolves when the places of all sockets that are gone are vacant, or after 5 s. Never rejects. */
  allLeft(): Promise<void>
}

/** Why the service closes sockets when it restarts. */
export const restart = 'restart'
/** The end of the process waits this long for places to become vacant, in ms. */
const leaveLimitMs = 5_000

export function createLeaving(options: LeavingOptions): Leaving {
  const { arrivals, online, connections, timers, journal, onError } = options
  /** One for each socket that is gone and whose places are just becoming vacant. */
  const leavings = new Set<Promise<void>>()
  let awaitedMs = 0

  return {
    closed(socket, code) {
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
        .catch(onError)
        .finally(() => leavings.delete(leaving))
      leavings.add(leaving)
    },
    expectBack(ms) {
      awaitedMs = Math.max(awaitedMs, ms)
    },
    /** The end of the process waits for no store. Other nodes find the places that could not be vacated [END3]. */
    async allLeft() {
      const { promise: late, resolve } = Promise.withResolvers<'late'>()
      const cancel = timers.after(leaveLimitMs, () => resolve('late'))
      const first = await Promise.race([Promise.all(leavings), late])
      cancel()
      if (first === 'late') onError(new StoreError('unavailable', 'some sockets could not leave in time'))
    },
  }
}
