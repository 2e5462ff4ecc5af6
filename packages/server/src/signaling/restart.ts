import type { LiveConnections } from './admission.ts'
import { drain } from './drain.ts'
import type { GatewayOptions } from './gateway-options.ts'
import { type Leaving, restart } from './leaving.ts'

interface RestartOptions extends Pick<GatewayOptions, 'sessions' | 'timers' | 'onError'> {
  readonly connections: LiveConnections
  readonly leaving: Pick<Leaving, 'expectBack' | 'allLeft'>
}

/**
 * Milliseconds for which closed sockets are still read. If a client is just sending, the end of the process resets its
 * connection, and the reset may overtake the close frame.
 */
const lingerMs = 500
/** Shares of the window: the sockets are closed in the first one, and no request is waited for after the second one. */
const spread = 0.8
const patience = 0.9
/** Milliseconds that a client still waits at most before it comes back, where the service itself spreads the closes. */
const spreadJitterMs = 100
/** Milliseconds that a client may be later than its jitter before its peers hear that it is away [PEER1]. */
const lateBackMs = 1_000

const reasonOf = (jitterMs: number) => `${restart}, jitter_ms=${jitterMs}`
/** The reason of the close frame, where the service itself spreads the closes [CLOSE 1012]. */
export const spreadReason = reasonOf(spreadJitterMs)

/**
 * Asks every client to come back, with a jitter hint in the reason [CLOSE 1012]: all of them at once, or each at its own
 * moment within `windowMs`.
 */
export type CloseAll = (windowMs: number) => Promise<void>

export function createCloseAll({ connections, sessions, leaving, timers, onError }: RestartOptions): CloseAll {
  /** While the sessions' store is away nobody knows. Then the socket goes with those that are in no call. */
  async function isInCall(sessionId: string): Promise<boolean> {
    try {
      return await sessions.inCall(sessionId)
    } catch (error) {
      onError(error)
      return false
    }
  }

  return async (windowMs) => {
    if (connections.size === 0) return leaving.allLeft()
    const jitterMs = windowMs > 0 ? spreadJitterMs : Math.min(30_000, connections.size * 2)
    const reason = reasonOf(jitterMs)
    // When a second signal hurries the stop, some clients got another jitter.
    leaving.expectBack(jitterMs + lateBackMs)
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
    await leaving.allLeft()
  }
}
