import type { IceServersResponse } from '@ringwire/protocol/rest'
import { relayPolicy } from '../ice/ice-servers.ts'
import { andThen, type MaybePromise } from '../ports/maybe.ts'
import type { Admitted } from './admission.ts'
import type { Connection } from './connection.ts'
import type { GatewayOptions } from './gateway-options.ts'

type IceRenewalOptions = Pick<GatewayOptions, 'config' | 'sessions' | 'iceServers' | 'isRelayOnly' | 'turnExpiry'>

/** Sends new TURN credentials to extended sessions before the old ones run out [EXT5]. Times are in ms since the epoch. */
export interface IceRenewal {
  /** When a client that is just let in needs new credentials. The first ones came with its token. */
  dueAt(admission: Admitted, wall: number): number
  renew(connection: Connection, admission: Admitted, wall: number): MaybePromise<void>
}

/** Share of the credentials' lifetime after which new ones are sent. */
const renewalShare = 0.8
/** Milliseconds after which credentials that could not be sent are sent again. */
const retryMs = 5_000

export function createIceRenewal(options: IceRenewalOptions): IceRenewal {
  const { config, sessions, iceServers, isRelayOnly, turnExpiry } = options

  return {
    dueAt({ claims }, wall) {
      const issuedAt = Math.min(wall, claims.expiresAt - config.tokenTtlS * 1000)
      return renewalAt(issuedAt, turnExpiry(issuedAt))
    },
    renew(connection, admission, wall) {
      const { sessionId, participant } = connection.session
      const expiresAt = turnExpiry(wall)
      const nextAt = renewalAt(wall, expiresAt)
      admission.iceDueAt = nextAt
      if (expiresAt === null) return
      // Until it is known that the session has them.
      admission.iceDueAt = wall + retryMs
      const data: IceServersResponse = {
        ice_servers: iceServers(participant, wall),
        ...(isRelayOnly(participant.product) && relayPolicy),
        expires_at: new Date(expiresAt).toISOString(),
      }
      const text = JSON.stringify({ event: 'ice.servers', data })
      return andThen(sessions.append(sessionId, { kind: 'notice', call: '', version: undefined, text }), (result) => {
        if (result !== 'gone') admission.iceDueAt = nextAt
      })
    },
  }
}

function renewalAt(issuedAt: number, expiresAt: number | null): number {
  return expiresAt === null ? Number.POSITIVE_INFINITY : issuedAt + (expiresAt - issuedAt) * renewalShare
}
