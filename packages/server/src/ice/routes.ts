/** POST /v1/call/ice-servers [EXT5]. */
import type { IceServersResponse } from '@ringwire/protocol/rest'
import { type BearerDeps, createBearerEndpoint } from '../auth/bearer.ts'
import { json } from '../http/replies.ts'
import type { Clock } from '../ports/clock.ts'
import { type IceServersOf, relayPolicy } from './ice-servers.ts'

export interface IceServersDeps extends BearerDeps {
  readonly iceServers: IceServersOf
  readonly isRelayOnly: (product: string) => boolean
  readonly turnExpiry: (now: number) => number | null
  readonly clock: Clock
}

export function createIceServersEndpoint(deps: IceServersDeps) {
  return createBearerEndpoint(deps, ({ participant }) => {
    const now = deps.clock.now()
    const expiresAt = deps.turnExpiry(now)
    return json(200, {
      ice_servers: deps.iceServers(participant, now),
      ...(deps.isRelayOnly(participant.product) && relayPolicy),
      expires_at: expiresAt === null ? null : new Date(expiresAt).toISOString(),
    } satisfies IceServersResponse)
  })
}
