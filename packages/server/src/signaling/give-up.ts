import type { Connection } from './connection.ts'
import type { GatewayOptions } from './gateway-options.ts'

export type GiveUp = (connection: Connection, error: unknown) => void

/** Closes a socket that the service cannot serve now. Its client is not to blame, so one more connect does not count. */
export function createGiveUp({ localLimits, onError }: Pick<GatewayOptions, 'localLimits' | 'onError'>): GiveUp {
  return (connection, error) => {
    onError(error)
    if (!connection.isClosed) localLimits.refundConnection(connection.session.participant)
    connection.close(1013, 'try again later', 'what it finds could not be read')
  }
}
