/**
 * ICE servers of a token response [ICE1].
 *
 *   const iceServers = createIceServers(config)
 *   iceServers(participant, now) → IceServer[]
 */
import { createHmac } from 'node:crypto'
import type { IceServer } from '@ringwire/protocol/rest'
import type { Participant } from '../call/call.ts'
import type { Config } from '../config/config.ts'

type IceConfig = Pick<
  Config,
  'stunUrls' | 'turnUrls' | 'turnSecrets' | 'turnUsername' | 'turnCredential' | 'tokenTtlS' | 'turnTtlS'
>

const hour = 3600
/** A call outlives its token, so its credentials do too. */
const minTtlS = 4 * hour
const maxTtlS = 24 * hour

/** Next to the ICE servers of a product whose media only goes through a TURN server [PRIV1]. */
export const relayPolicy = { ice_transport_policy: 'relay' } as const

export type IceServersOf = (participant: Participant, now: number) => IceServer[]

export function createIceServers(config: IceConfig): IceServersOf {
  const { stunUrls, turnUrls } = config
  const credentialsOf = turnCredentials(config)
  return (participant, now) => {
    const servers: IceServer[] = []
    if (stunUrls.length > 0) servers.push({ urls: [...stunUrls] })
    if (turnUrls.length > 0) servers.push({ urls: [...turnUrls], ...credentialsOf(participant, now) })
    return servers
  }
}

/** When TURN credentials that are made now run out, in ms since the epoch; null where there are none that do. */
export function turnExpiry(config: IceConfig, now: number): number | null {
  if (config.turnUrls.length === 0 || config.turnSecrets === null) return null
  return (Math.floor(now / 1000) + turnTtlS(config)) * 1000
}

function turnTtlS(config: IceConfig): number {
  return config.turnTtlS ?? Math.min(Math.max(config.tokenTtlS, minTtlS), maxTtlS)
}

type Credentials = { username: string; credential: string }

/** The TURN REST scheme of coturn's `use-auth-secret`, with the first of the secrets, or what is configured. */
function turnCredentials(config: IceConfig): (participant: Participant, now: number) => Credentials {
  const { turnSecrets, turnUsername, turnCredential } = config
  const [turnSecret] = turnSecrets ?? []
  if (turnSecret === undefined) {
    return () => ({ username: turnUsername ?? '', credential: turnCredential ?? '' })
  }
  const ttlS = turnTtlS(config)
  return (participant, now) => {
    const username = `${Math.floor(now / 1000) + ttlS}:${pseudonym(turnSecret, participant)}`
    return { username, credential: createHmac('sha1', turnSecret).update(username).digest('base64') }
  }
}

/** The same for one participant every time, and nobody reads the user_id out of it. */
function pseudonym(secret: string, { product, role, userId }: Participant): string {
  return createHmac('sha256', secret)
    .update(JSON.stringify([product, role, userId]))
    .digest('base64url')
    .slice(0, 24)
}
