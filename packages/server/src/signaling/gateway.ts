import type { WebSocketHandler } from 'bun'
import type { Admission, LiveConnections } from './admission.ts'
import { createConnectionContext } from './connection-context.ts'
import type { GatewayOptions } from './gateway-options.ts'
import { createGiveUp } from './give-up.ts'
import { createIceRenewal } from './ice-renewal.ts'
import { createLeaving } from './leaving.ts'
import { createOpening } from './opening.ts'
import { type CloseAll, createCloseAll } from './restart.ts'
import { closeRevoked } from './revoking.ts'
import { createSenders } from './senders.ts'
import { createStallWatch } from './stall.ts'
import { createTicking } from './ticking.ts'
import { createUpgrades, type Upgrade } from './upgrades.ts'

export interface Gateway {
  readonly upgrade: Upgrade
  readonly websocket: WebSocketHandler<Admission>
  readonly closeAll: CloseAll
  /**
   * Closes the sockets of sessions whose token was taken back [SRV2], or whose product key is disabled [KEY1]. With
   * `participants`, given by their hashes, only sockets of those.
   */
  closeRevoked(participants?: readonly string[]): void
  start(): void
  stop(): void
  /** Open sockets. */
  size(): number
}

/**
 * A little above our own limit of a message, so that mostly the service itself closes with 1009. For each socket the runtime
 * keeps this much of a message that is never finished.
 */
const nativeMaxBytes = 80 * 1024

/** The sockets of this process. Each job has a file of its own; here they are put together. */
export function createGateway(options: GatewayOptions): Gateway {
  const { config, clock } = options
  const connections: LiveConnections = new Map()
  const senders = config.wsRate === null ? undefined : createSenders(config.wsRate)
  const stalls = createStallWatch(clock.monotonic, () => {
    for (const connection of connections.keys()) connection.doubt()
  })
  const giveUp = createGiveUp(options)
  const context = createConnectionContext({ ...options, connections, senders, giveUp })
  const iceRenewal = createIceRenewal(options)
  const leaving = createLeaving({ ...options, connections })
  const ticking = createTicking({ ...options, connections, senders, stalls, iceRenewal })

  return {
    upgrade: createUpgrades(options),
    websocket: {
      data: {} as Admission,
      open: createOpening({ ...options, connections, context, giveUp, iceDueAt: iceRenewal.dueAt }),
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
      close: leaving.closed,
      maxPayloadLength: nativeMaxBytes,
      idleTimeout: 0,
      sendPings: false,
      perMessageDeflate: false,
      backpressureLimit: 16 * 1024 * 1024,
      closeOnBackpressureLimit: false,
    },
    closeAll: createCloseAll({ ...options, connections, leaving }),
    closeRevoked: (participants) => closeRevoked(connections.keys(), options.isRevoked, participants),
    start: ticking.start,
    stop: ticking.stop,
    size: () => connections.size,
  }
}
