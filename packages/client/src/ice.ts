import type { IceServersResponse } from '@ringwire/protocol/rest'
import type { Environment } from './environment.ts'
import { RingwireError } from './error.ts'
import type { SessionToken } from './types.ts'

type IceServers = NonNullable<SessionToken['ice_servers']>

/** Credentials with less left than this are not given to a new media connection. */
const reserveMs = 60_000
/** The last instant of a Date. */
const never = 8.64e15

/** The ICE servers that were told last: by the token, by a push, or on request [EXT5]. */
export function createIce(
  env: Environment,
  localTime: (time: string | number) => number,
  changed: (servers: IceServers) => void,
) {
  let servers: IceServers = []
  /** By the service's clock, which is known only later than the token that says it. */
  let expiresAt: string | number = never

  function take(next: IceServers, until: string | number): void {
    servers = next
    expiresAt = until
    changed(next)
  }

  function told({ ice_servers, expires_at }: IceServersResponse): void {
    take(ice_servers, expires_at ?? never)
  }

  async function fetchServers(url: string, token: string): Promise<IceServers> {
    try {
      const headers = { Authorization: `Bearer ${token}` }
      const response = await env.fetch(url, { method: 'POST', headers })
      const body = (await response.json()) as IceServersResponse | null
      if (!Array.isArray(body?.ice_servers)) throw new Error(`${response.status}`)
      told(body)
      return servers
    } catch (cause) {
      throw new RingwireError('REQUEST_FAILED', 'No ICE servers could be fetched.', { retryable: true, cause })
    }
  }

  return {
    servers: (): IceServers => servers,
    told,
    fromToken(token: SessionToken): void {
      if (token.ice_servers) take(token.ice_servers, credentialsEnd(token.ice_servers))
    },
    areFresh: (): boolean => servers.length > 0 && localTime(expiresAt) - env.now() > reserveMs,
    /** `wsUrl` is the WebSocket's; REST is beside it. */
    fetch: (wsUrl: string, token: string): Promise<IceServers> =>
      fetchServers(`${wsUrl.replace(/^ws/, 'http').replace(/\/v1\/ws.*$/, '')}/v1/call/ice-servers`, token),
  }
}

export type Ice = ReturnType<typeof createIce>

/** A temporary TURN username begins with the second at which it runs out [ICE1]. */
function credentialsEnd(servers: IceServers): number {
  const ends = servers.map(({ username }) => Number(/^(\d{10,}):/.exec(username ?? '')?.[1] ?? never) * 1000)
  return Math.min(never, ...ends)
}
