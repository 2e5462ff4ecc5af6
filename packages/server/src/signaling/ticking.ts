import type { Cancel } from '../ports/clock.ts'
import { andThen, type MaybePromise, unawaited } from '../ports/maybe.ts'
import type { Admitted, LiveConnections } from './admission.ts'
import type { Connection } from './connection.ts'
import type { GatewayOptions } from './gateway-options.ts'
import type { IceRenewal } from './ice-renewal.ts'
import { createRebalance } from './rebalance.ts'
import { spreadReason } from './restart.ts'
import type { Senders } from './senders.ts'
import type { StallWatch } from './stall.ts'

interface TickingOptions
  extends Pick<GatewayOptions, 'config' | 'sessions' | 'clock' | 'timers' | 'state' | 'loads' | 'journal' | 'onError'> {
  readonly connections: LiveConnections
  readonly senders: Senders | undefined
  readonly stalls: StallWatch
  readonly iceRenewal: IceRenewal
}

const tickMs = 500
/** A tick that comes so many ms late says that this process was busy: it read no answer of a client in that time. */
const lateMs = 100

/** Looks after every socket twice a second: signs of life, tokens and TURN credentials that run out, and the balance of nodes. */
export function createTicking(options: TickingOptions): { start(): void; stop(): void } {
  const { config, connections, senders, stalls, iceRenewal, sessions, clock, timers, onError } = options
  const rebalance = createRebalance({
    ...{ sessions, clock, journal: options.journal },
    perSecond: config.rebalancePerSecond,
    connections: () => connections,
    loads: options.loads,
    part: (connection) => connection.part(1012, spreadReason, 'rebalance'),
  })
  let stop: Cancel | undefined
  let lastTick = clock.monotonic()

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
      // While the sessions' store is away, the next tick does it.
      if (wall > connection.session.expiresAt) unawaited(closeExpired(connection, admission, wall), onError)
      const isGood = wall < connection.session.expiresAt
      if (isGood && admission.extended !== undefined && wall >= admission.iceDueAt)
        unawaited(iceRenewal.renew(connection, admission, wall), onError)
    }
    if (config.rebalancePerSecond > 0 && options.state() === 'ready') rebalance.look()
  }

  /** Token expiry never cuts a call: the grace begins with it, or with the end of the last call if that is later [WS5]. */
  function closeExpired(connection: Connection, admission: Admitted, wall: number): MaybePromise<void> {
    return andThen(sessions.inCall(connection.session.sessionId), (inCall) => {
      // The call may go on until the next tick.
      if (inCall) admission.inCallAt = wall + tickMs
      const since = Math.max(connection.session.expiresAt, admission.inCallAt)
      if (wall - since > config.tokenGraceMs) connection.close(4401, 'token expired')
    })
  }

  return {
    start() {
      lastTick = clock.monotonic()
      stop = timers.every(tickMs, tick)
    },
    stop() {
      stop?.()
    },
  }
}
