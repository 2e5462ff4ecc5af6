// Over 350 lines: it is one list of short parsers, one for each kind of setting.
import { availableParallelism } from 'node:os'
import ipaddr from 'ipaddr.js'
import { parseRedisUrl } from './redis-url.ts'
import { makesSecret } from './secret-hint.ts'

/** What a text of the environment means, or what is wrong with it. A problem never repeats a secret. */
export type Parsed<T> =
  | {
      readonly ok: true
      readonly value: T
      readonly warnings?: readonly string[]
      /** Those that it names, and that hold a secret. */
      readonly secretFiles?: readonly string[]
    }
  | { readonly ok: false; readonly problem: string }

/** One way to write a value: how the documents call it, and how it is read. */
export interface ValueType<T> {
  readonly label: string
  parse(text: string): Parsed<T>
}

/** `count` in every `seconds`. */
export interface Rate {
  readonly count: number
  readonly seconds: number
}

export interface MessageRate {
  readonly perSecond: number
  readonly burst: number
}

export interface BootstrapKey {
  readonly keyId: string
  readonly secret: string
  readonly products: readonly string[]
}

/** Which `X-Forwarded-For` entries are believed: the last `hops` of them, or those that proxies of `networks` wrote. */
export type TrustProxy =
  | { readonly kind: 'hops'; readonly hops: number }
  | { readonly kind: 'networks'; readonly networks: readonly string[] }

const ok = <T>(value: T, warnings?: readonly string[]): Parsed<T> =>
  warnings === undefined ? { ok: true, value } : { ok: true, value, warnings }
const bad = (problem: string): { ok: false; problem: string } => ({ ok: false, problem })

export function text(label = 'text'): ValueType<string> {
  return { label, parse: (value) => (value === '' ? bad('must not be empty') : ok(value)) }
}

/** A secret that goes into a header: long enough that nobody guesses it (RFC 6750 section 2.1 says of what). */
export function token(): ValueType<string> {
  return {
    label: 'token',
    parse: (value) =>
      /^[\w.~+/-]{16,512}=*$/.test(value)
        ? ok(value)
        : bad(`must be 16 characters or more: letters, digits and - . _ ~ + / (${makesSecret})`),
  }
}

/** One of a type, or two with a comma between them: both count while one is being replaced [KEY1]. */
export function oneOrTwo(type: ValueType<string>, warning?: string): ValueType<readonly string[]> {
  return {
    label: `${type.label}, or two`,
    parse(value) {
      const parts = value.split(',').map((part) => part.trim())
      if (parts.length > 2) return bad(`must be one ${type.label}, or two with a comma between them`)
      const wrong = parts.map((part) => type.parse(part)).find((parsed) => !parsed.ok)
      if (wrong !== undefined && !wrong.ok) return bad(wrong.problem)
      return parts.length === 2 && warning !== undefined ? ok(parts, [warning]) : ok(parts)
    },
  }
}

/** `off` is null. */
export function orOff<T>(type: ValueType<T>): ValueType<T | null> {
  return {
    label: `${type.label}, or off`,
    parse(value) {
      if (value === 'off') return ok(null)
      const parsed = type.parse(value)
      return parsed.ok ? parsed : bad(`${parsed.problem}, or off`)
    },
  }
}

export function host(): ValueType<string> {
  return {
    label: 'host name or address',
    parse: (value) => (/^[^\s/]+$/.test(value) ? ok(value) : bad('must be a host name or an address')),
  }
}

export function integer(min: number, max: number): ValueType<number> {
  return {
    label: 'integer',
    parse(value) {
      const number = /^\d{1,15}$/.test(value) ? Number(value) : Number.NaN
      return number >= min && number <= max ? ok(number) : bad(`must be a whole number from ${min} to ${max}`)
    },
  }
}

/** More processes than this on one machine are a slip of the finger. */
const mostWorkers = 256

export function workers(): ValueType<number> {
  const count = integer(1, mostWorkers)
  return {
    label: 'integer or auto',
    parse(value) {
      if (value === 'auto') return ok(Math.min(availableParallelism(), mostWorkers))
      const parsed = count.parse(value)
      return parsed.ok ? parsed : bad(`${parsed.problem}, or auto`)
    },
  }
}

export function flag(): ValueType<boolean> {
  return {
    label: '0 or 1',
    parse(value) {
      const word = value.toLowerCase()
      if (word === '1' || word === 'true') return ok(true)
      if (word === '0' || word === 'false') return ok(false)
      return bad('must be 1 or 0')
    },
  }
}

/** Whether there is a demo, and for whom: `true` is for this machine, `lan` for its local networks, too. */
export function demo(): ValueType<boolean | 'lan'> {
  return {
    label: '0, 1 or lan',
    parse(value) {
      if (value === 'lan') return ok(value)
      const parsed = flag().parse(value)
      return parsed.ok ? parsed : bad('must be 1, 0 or lan')
    },
  }
}

export function oneOf<const T extends string>(...choices: readonly T[]): ValueType<T> {
  return {
    label: choices.join(', '),
    parse(value) {
      const choice = choices.find((entry) => entry.toLowerCase() === value.toLowerCase())
      return choice === undefined ? bad(`must be one of ${choices.join(', ')}`) : ok(choice)
    },
  }
}

export function rate(): ValueType<Rate | null> {
  return {
    label: 'count/seconds, or off',
    parse(value) {
      if (value === 'off') return ok(null)
      const [, count, seconds] = /^(\d{1,9})\/(\d{1,6})$/.exec(value) ?? []
      if (!Number(count) || !Number(seconds)) return bad('must be count/seconds, as 30/60, or off')
      return ok({ count: Number(count), seconds: Number(seconds) })
    },
  }
}

export function messageRate(): ValueType<MessageRate | null> {
  return {
    label: 'per_second/burst, or off',
    parse(value) {
      if (value === 'off') return ok(null)
      const [, perSecond, burst] = /^(\d{1,9})\/(\d{1,9})$/.exec(value) ?? []
      if (!Number(perSecond) || !Number(burst)) return bad('must be per_second/burst, as 20/200, or off')
      return ok({ perSecond: Number(perSecond), burst: Number(burst) })
    },
  }
}

/** An http or https URL that paths can be added to: no trailing slash in the value. */
export function baseUrl(): ValueType<string | null> {
  return {
    label: 'URL',
    parse(value) {
      const url = URL.canParse(value) ? new URL(value) : undefined
      if (url === undefined || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
        return bad('must be a URL that starts with http:// or https://')
      }
      if (url.username !== '' || url.password !== '') return bad('must not hold a user name or a password')
      if (value.includes('?') || value.includes('#')) return bad('must not have a query or a fragment')
      return ok(url.origin + url.pathname.replace(/\/+$/, ''))
    },
  }
}

export const items = (value: string) =>
  value
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '')

/** STUN and TURN URLs [RFC 7064, RFC 7065]. */
export function iceUrls(schemes: 'stun' | 'turn'): ValueType<readonly string[]> {
  const address = '(?:[A-Za-z0-9._~-]+|\\[[0-9A-Fa-f:.]+\\])(?::(\\d{1,5}))?'
  const query = schemes === 'turn' ? '(?:\\?transport=(?:udp|tcp))?' : ''
  const pattern = new RegExp(`^${schemes}s?:${address}${query}$`)
  return {
    label: `${schemes}: URLs, comma-separated`,
    parse(value) {
      const urls = items(value)
      const wrong = urls.find((url) => !pattern.test(url))
      const badPort = urls.find((url) => !isPort(pattern.exec(url)?.[1] ?? '1'))
      if (wrong === undefined && badPort !== undefined) {
        return bad(`${JSON.stringify(badPort)} has a port that is not from 1 to 65535`)
      }
      if (wrong === undefined) return ok(urls)
      const example = schemes === 'turn' ? 'turn:turn.example.com:3478?transport=udp' : 'stun:stun.example.com:3478'
      return bad(`${JSON.stringify(wrong)} is not a ${schemes} URL; write it as ${example}`)
    },
  }
}

const isPort = (digits: string) => Number(digits) >= 1 && Number(digits) <= 65_535

/** Origins as a browser sends them: in lower case and ASCII, without the port that the scheme implies [CONF1]. */
export function origins(): ValueType<readonly string[] | null> {
  return {
    label: 'origins, comma-separated',
    parse(value) {
      const list: string[] = []
      for (const item of items(value)) {
        const origin = parseOrigin(item)
        if (!origin.ok) return bad(`${JSON.stringify(item)} ${origin.problem}`)
        if (!list.includes(origin.value)) list.push(origin.value)
      }
      return ok(list)
    },
  }
}

/** Of pages with these schemes a browser sends another origin, or `null`. */
const neverSent = new Set(['ws:', 'wss:', 'ftp:', 'file:', 'data:', 'blob:', 'about:', 'javascript:'])

function parseOrigin(text: string): Parsed<string> {
  const lower = text.toLowerCase().replace(/\/$/, '')
  if (lower.includes('*')) return bad('has a *, which no browser sends: list each origin, or unset it to let all in')
  const url = URL.canParse(lower) ? new URL(lower) : undefined
  if (url === undefined || !/^[a-z][a-z0-9+.-]*:\/\/[^/?#\s@]+$/.test(lower)) {
    return bad('is not an origin; write it as https://app.example.com')
  }
  if (neverSent.has(url.protocol) || url.port === '0') {
    return bad('is an origin that no browser sends; write that of the page, as https://app.example.com')
  }
  // Schemes of apps, as capacitor://localhost, have no origin to the URL standard: they are sent as they are.
  return ok(url.origin === 'null' ? lower : url.origin)
}

export function trustProxy(): ValueType<TrustProxy | null> {
  return {
    label: 'number of proxies, or addresses and CIDRs, comma-separated',
    parse(value) {
      if (/^\d{1,2}$/.test(value)) return ok({ kind: 'hops', hops: Number(value) })
      const networks = items(value)
      const wrong = networks.find((entry) => !ipaddr.isValidCIDR(entry) && !isAddress(entry))
      if (wrong !== undefined || networks.length === 0) {
        return bad('must be a number of proxies (1), or their addresses and CIDRs (10.0.0.0/8,::1)')
      }
      return ok({ kind: 'networks', networks })
    },
  }
}

/** Addresses and CIDRs. */
export function networks(): ValueType<readonly string[]> {
  return {
    label: 'CIDR,…',
    parse(value) {
      const all = items(value)
      const wrong = all.find((entry) => !ipaddr.isValidCIDR(entry) && !isAddress(entry))
      return wrong === undefined && all.length > 0 ? ok(all) : bad('must be addresses or CIDRs (10.0.0.0/8,::1)')
    },
  }
}

/** ipaddr.js also reads `1`, `0x7f.1` and the like, which nobody means. */
function isAddress(value: string): boolean {
  return ipaddr.IPv4.isValidFourPartDecimal(value) || ipaddr.IPv6.isValid(value)
}

/** `key_id:secret:product[,product…]`, several with `;`, split at the first and the last colon. */
export function bootstrapKeys(): ValueType<readonly BootstrapKey[]> {
  return {
    label: 'key_id:secret:product[,product…];…',
    parse(value) {
      const keys: BootstrapKey[] = []
      const warnings: string[] = []
      const entries = value.split(';').map((entry) => entry.trim())
      for (const [index, entry] of entries.entries()) {
        if (entry === '') continue
        const key = parseBootstrapKey(entry)
        if (typeof key === 'string') return bad(`entry ${index + 1} ${key}`)
        if (keys.some(({ keyId }) => keyId === key.keyId)) return bad(`the key ${key.keyId} is there twice`)
        if (key.secret.length < 32)
          warnings.push(`the secret of the key ${key.keyId} is under 32 characters: ${makesSecret}`)
        if (/:[^:]*,[^:]*:/.test(key.secret))
          warnings.push(`the secret of the key ${key.keyId} looks like more keys: a ; separates keys, a comma products`)
        keys.push(key)
      }
      return ok(keys, warnings)
    },
  }
}

/** The key, or what is wrong with it; its secret never shows. */
function parseBootstrapKey(entry: string): BootstrapKey | string {
  const first = entry.indexOf(':')
  const last = entry.lastIndexOf(':')
  if (first === last) return 'is not key_id:secret:product[,product…]'
  const keyId = entry.slice(0, first)
  const secret = entry.slice(first + 1, last)
  const products = items(entry.slice(last + 1))
  // Both travel in HTTP headers: what is not visible ASCII would not arrive as it was written.
  if (!/^[\x21-\x7e]{1,255}$/.test(keyId)) return 'has a key_id that is not 1 to 255 visible ASCII characters'
  if (!/^[\x21-\x7e]{1,255}$/.test(secret)) return 'has a secret that is not 1 to 255 visible ASCII characters'
  if (products.length === 0) return 'names no product'
  if (products.some((product) => Buffer.byteLength(product) > 255)) return 'names a product of over 255 bytes'
  return { keyId, secret, products: [...new Set(products)] }
}

const postgresSchemes = ['postgres:', 'postgresql:']
const sslModes = ['disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full']

/** Where the database is. Its password never shows in a problem. */
export function postgresUrl(): ValueType<string> {
  return {
    label: 'postgres URL',
    parse(value) {
      const url = URL.canParse(value) ? new URL(value) : undefined
      if (url === undefined || !postgresSchemes.includes(url.protocol) || url.hostname === '') {
        return bad('must be like postgres://user:password@host:5432/database?sslmode=verify-full')
      }
      if (url.pathname.length < 2) return bad('names no database')
      const mode = url.searchParams.get('sslmode')
      if (mode !== null && !sslModes.includes(mode)) return bad(`has an sslmode that is none of ${sslModes.join(', ')}`)
      const warning = 'has no sslmode: the connection to the database is not encrypted'
      return mode === null && !isLoopbackHost(url.hostname) ? ok(value, [warning]) : ok(value)
    },
  }
}

/** Where Redis is. Its password never shows in a problem. */
export function redisUrl(): ValueType<string> {
  return {
    label: 'redis URL',
    parse(value) {
      const parsed = parseRedisUrl(value)
      if (!parsed.ok) return bad(parsed.problem)
      const { tls, hosts } = parsed.address
      if (tls || hosts.every(({ host }) => isLoopbackHost(host))) return ok(value)
      return ok(value, ['has no TLS (rediss://): the connection to Redis is not encrypted'])
    },
  }
}

/** Braces would move keys to other slots of a cluster. */
export function keyPrefix(): ValueType<string> {
  return {
    label: 'text',
    parse: (value) => (/^[\w.:-]{1,64}$/.test(value) ? ok(value) : bad('must be 1 to 64 letters, digits and _ . : -')),
  }
}

/** Whether a host, as written in a URL or a Host header without its port, can only be this machine. */
export function isLoopbackHost(name: string): boolean {
  const bare = name
    .toLowerCase()
    .replace(/^\[(.*)\]$/, '$1')
    .replace(/\.$/, '')
  return bare === 'localhost' || bare.endsWith('.localhost') || bare === '::1' || /^127(?:\.\d{1,3}){3}$/.test(bare)
}
