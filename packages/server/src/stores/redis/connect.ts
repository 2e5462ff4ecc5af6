import { readFileSync } from 'node:fs'
import type { ConnectionOptions } from 'node:tls'
import { Cluster, type ClusterOptions, Redis, type RedisOptions } from 'ioredis'
import { parseRedisUrl, type RedisAddress } from '../../config/redis-url.ts'
import { connectionName } from '../../ports/node-name.ts'
import { StoreError } from '../../ports/store-error.ts'
import { deadlineMs } from './deadlines.ts'
import type { Client, ServerAddress } from './servers.ts'

/**
 * Connects to what a URL names (`redis-url.ts`); throws where it is not one, or a file that it names cannot be read.
 * `name` is how CLIENT LIST calls it. `prefix` stands before each key.
 */
export function connect(url: string, name = connectionName(), prefix = ''): Client {
  const address = addressOf(url)
  const { kind, hosts, group = '', database } = address
  const options = { ...optionsOf(address, name), keyPrefix: prefix }
  const { tls } = options
  if (kind === 'single') return keptToDatabase(new Redis({ ...options, ...sentAtOnce, ...hosts[0], db: database }))
  if (kind === 'sentinel')
    return new Redis({ ...options, ...sentAtOnce, ...sentinelOptions(address, tls), name: group })
  return new Cluster([...hosts], {
    enableOfflineQueue: false,
    enableAutoPipelining: true,
    retryDelayOnFailover: 0,
    clusterRetryStrategy: (times: number) => Math.min(50 * times, 500),
    // A certificate names hosts, so they are connected to by name.
    ...(tls !== undefined && { dnsLookup: (address, callback) => callback(null, address) }),
    redisOptions: options,
  } satisfies ClusterOptions)
}

/** One connection to a server of those that a URL names: the one that takes writes, or that of a cluster with this address. */
export function connectTo(url: string, server: ServerAddress, name: string): Redis {
  if (server === 'primary') return connect(url, name) as Redis
  return new Redis({ ...optionsOf(addressOf(url), name), ...sentAtOnce, ...server })
}

function addressOf(url: string): RedisAddress {
  const parsed = parseRedisUrl(url)
  if (!parsed.ok) throw new Error(`The Redis URL ${parsed.problem}.`)
  return parsed.address
}

function optionsOf(address: RedisAddress, connectionName: string) {
  const { username, password } = address
  const tls = tlsOf(address)
  const account = { ...(username !== undefined && { username }), ...(password !== undefined && { password }) }
  return { ...lasting, connectionName, ...account, ...(tls !== undefined && { tls }) } satisfies RedisOptions
}

/** If a server refuses the database, the client would go on with database 0: such a connection is given up. */
function keptToDatabase(client: Redis): Redis {
  return client.on('error', (error) => {
    if (isOfDatabase(error)) client.disconnect(true)
  })
}

/** The database does not exist, or the account may not use it. */
function isOfDatabase(error: Error & { command?: { name: string } }): boolean {
  return error.command?.name === 'select'
}

const lasting = {
  // The client sends nothing about itself.
  disableClientInfo: true,
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  autoResubscribe: false,
  maxRetriesPerRequest: 0,
  connectTimeout: deadlineMs,
  // A connection that is made and then says nothing, not even to its first command.
  socketTimeout: deadlineMs,
  enableAutoPipelining: true,
  retryStrategy: (times: number) => Math.min(50 * times, 500),
  // If the name leads to another server by now, a new connection finds it.
  reconnectOnError: (error: Error) => error.message.startsWith('READONLY'),
} satisfies RedisOptions

/**
 * The client has one pipeline under way at a time, and a script would wait for the answers to the one before it. A cluster's
 * client has one for each master: it finds its way by them where slots have moved, or a connection is being made.
 */
const sentAtOnce = { autoPipeliningIgnoredCommands: ['evalsha'] } satisfies RedisOptions

function sentinelOptions(address: RedisAddress, tls: ConnectionOptions | undefined) {
  const { hosts, sentinelUsername, sentinelPassword } = address
  return {
    sentinels: [...hosts],
    sentinelCommandTimeout: 1_000,
    sentinelRetryStrategy: (times: number) => Math.min(50 * times, 500),
    ...(sentinelUsername !== undefined && { sentinelUsername }),
    ...(sentinelPassword !== undefined && { sentinelPassword }),
    ...(tls !== undefined && { sentinelTLS: tls, enableTLSForSentinelMode: true }),
  } satisfies RedisOptions
}

function tlsOf({ tls, ca, cert, key }: RedisAddress): ConnectionOptions | undefined {
  if (!tls) return undefined
  const files = Object.entries({ ca, cert, key }).flatMap(([name, file]) =>
    file === undefined ? [] : [[name, readFileSync(file)] as const],
  )
  return Object.fromEntries(files)
}

/**
 * Tells what is wrong with a connection once, not with each attempt to make it, until it is there again. `told`: the
 * problems that were reported before.
 */
export function tellErrors(client: Client, onError: (error: unknown) => void, told = new Set<string>()): void {
  client.on('ready', () => told.clear())
  client.on('error', (error: Error) => {
    // Some say in how many milliseconds they try again.
    const what = error.message.replace(/\d+ms/, '')
    // The client's error when a connection that was given up is used.
    if (told.has(what) || told.size >= 20 || what.includes('enableOfflineQueue')) return
    told.add(what)
    onError(error)
  })
}

/** Resolves when commands can be sent; rejects when the time is over, or at once where account or database are refused. */
export function connected(client: Client, ms: number, tls: boolean): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  let last = ''
  const refuse = (why: string) => reject(new StoreError('unavailable', why))
  const giveUp = () => refuse(`Redis cannot be reached: ${last || 'it does not answer'}${hintOf(last, tls)}`)
  const hear = (error: Error) => {
    const { message } = error
    if (isOfDatabase(error)) return refuse(`Redis does not give the database that REDIS_URL names: ${message}`)
    // A later error says less than the first one.
    const isLate = /^(Connection is closed|Failed to refresh slots cache)/.test(message)
    if (message !== '' && (last === '' || !isLate)) last = message
    if (/^(WRONGPASS|NOAUTH|NOPERM)\b/.test(last)) giveUp()
  }
  const limit = setTimeout(giveUp, ms)
  if (client.status === 'ready') resolve()
  client.on('ready', resolve).on('error', hear).on('node error', hear)
  return promise.finally(() => {
    clearTimeout(limit)
    client.off('ready', resolve).off('error', hear).off('node error', hear)
  })
}

/**
 * If only one side speaks TLS, neither says so: a server without it waits for the rest of what it takes for a command,
 * and one with it hangs up.
 */
function hintOf(problem: string, tls: boolean): string {
  if (!tls) return /ECONNRESET|EPIPE/.test(problem) ? ' (if it speaks TLS, the URL begins with rediss, not redis)' : ''
  const isSilent = /time(d ?)?out|WRONG_VERSION/i.test(problem)
  return isSilent ? ' (if it speaks no TLS, the URL begins with redis, not rediss)' : ''
}
