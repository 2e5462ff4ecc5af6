/**
 * Where Redis is: one server, a group that Sentinel watches, or a cluster.
 *
 *   redis://user:password@host:6379/0
 *   redis+sentinel://user:password@host:26379,host:26379/name
 *   redis+cluster://user:password@host:6379,host:6379
 *
 * `rediss` instead of `redis` for TLS. An error about a URL shows no part of it: a password whose `/`, `?` or `@` is not
 * written with `%` can end up in every part.
 */
export interface RedisAddress {
  readonly kind: 'single' | 'sentinel' | 'cluster'
  readonly tls: boolean
  readonly hosts: readonly { readonly host: string; readonly port: number }[]
  readonly username: string | undefined
  readonly password: string | undefined
  /** 0 but for a single server. */
  readonly database: number
  /** How Sentinel calls the group. */
  readonly group: string | undefined
  /** The account at the Sentinels themselves, where they ask for one. */
  readonly sentinelUsername: string | undefined
  readonly sentinelPassword: string | undefined
  /** PEM files: the authorities that are believed, and what the client shows of itself. */
  readonly ca: string | undefined
  readonly cert: string | undefined
  readonly key: string | undefined
}

export type ParsedRedisUrl =
  | { readonly ok: true; readonly address: RedisAddress }
  | { readonly ok: false; readonly problem: string }

const ports = { single: 6_379, sentinel: 26_379, cluster: 6_379 } as const
const parameters = ['ca', 'cert', 'key', 'sentinel_username', 'sentinel_password'] as const
const escapes = 'characters as / ? # @ : % of a password are written with %'
const form = `must be like redis://user:password@host:6379, redis+sentinel://host:26379,host:26379/name or redis+cluster://host:6379,host:6379, with rediss for TLS; ${escapes}`

export function parseRedisUrl(text: string): ParsedRedisUrl {
  const [, scheme, variant, authority, path, query] =
    /^(rediss?)(?:\+(sentinel|cluster))?:\/\/([^/?#\s]*)(?:\/([^/?#\s]*))?(?:\?([^?#\s]*))?$/.exec(text) ?? []
  if (scheme === undefined || authority === undefined) return bad(form)
  const kind = (variant ?? 'single') as RedisAddress['kind']
  const at = authority.lastIndexOf('@')
  const account = parseAccount(at < 0 ? '' : authority.slice(0, at))
  const hosts = parseHosts(authority.slice(at + 1), ports[kind])
  if (account === undefined || hosts === undefined) return bad(form)
  if (kind === 'single' && hosts.length > 1)
    return bad('names several hosts: write redis+sentinel:// or redis+cluster://')
  const place = parsePath(kind, path ?? '')
  if (typeof place === 'string') return bad(place)
  // A plus is a plus, as in the rest of a URL; only forms mean a space by it.
  const given = new URLSearchParams((query ?? '').replaceAll('+', '%2B'))
  if ([...given.keys()].some((name) => !parameters.some((known) => known === name))) {
    return bad(`has a query parameter that is none of ${parameters.join(', ')}; ${escapes}`)
  }
  const files = { ca: value(given, 'ca'), cert: value(given, 'cert'), key: value(given, 'key') }
  const tls = scheme === 'rediss'
  if (!tls && Object.values(files).some((file) => file !== undefined))
    return bad('names files for TLS: write rediss://')
  if ((files.cert === undefined) !== (files.key === undefined)) return bad('needs both cert and key, or neither')
  const sentinelUsername = value(given, 'sentinel_username')
  const sentinelPassword = value(given, 'sentinel_password')
  if (kind !== 'sentinel' && (sentinelUsername ?? sentinelPassword) !== undefined) {
    return bad('has an account for Sentinel: write redis+sentinel://')
  }
  if (sentinelUsername !== undefined && sentinelPassword === undefined) return bad('needs sentinel_password, too')
  return { ok: true, address: { kind, tls, hosts, ...account, ...place, ...files, sentinelUsername, sentinelPassword } }
}

function bad(problem: string): ParsedRedisUrl {
  return { ok: false, problem }
}

function value(query: URLSearchParams, name: (typeof parameters)[number]): string | undefined {
  return query.get(name) || undefined
}

function parseAccount(text: string): Pick<RedisAddress, 'username' | 'password'> | undefined {
  if (text === '') return { username: undefined, password: undefined }
  const colon = text.indexOf(':')
  const password = decoded(text.slice(colon + 1))
  const username = decoded(text.slice(0, Math.max(0, colon)))
  // A name without a password says nothing to Redis: a single name was meant for something else.
  if (colon < 0 || !password || username === undefined) return undefined
  return { username: username || undefined, password }
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

function parseHosts(text: string, defaultPort: number): RedisAddress['hosts'] | undefined {
  const hosts = text.split(',').map((entry) => {
    const [, v6, name, port] = /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+))(?::(\d{1,5}))?$/.exec(entry) ?? []
    return { host: v6 ?? name ?? '', port: port === undefined ? defaultPort : Number(port) }
  })
  return hosts.every(({ host, port }) => host !== '' && port >= 1 && port <= 65_535) ? hosts : undefined
}

/** The meaning of the path, or its problem. */
function parsePath(kind: RedisAddress['kind'], path: string): Pick<RedisAddress, 'database' | 'group'> | string {
  if (kind === 'sentinel') {
    const group = decoded(path)
    if (!group) return 'names no group of servers: write redis+sentinel://host:26379/name'
    return { database: 0, group }
  }
  if (kind === 'cluster') {
    return path === '' ? { database: 0, group: undefined } : 'has a path: a cluster has no numbered databases'
  }
  if (!/^\d{0,4}$/.test(path)) return 'has a path that is not the number of a database'
  return { database: Number(path), group: undefined }
}
