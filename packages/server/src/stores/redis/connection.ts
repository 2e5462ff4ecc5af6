import { readFileSync } from 'node:fs'
import type { ConnectionOptions } from 'node:tls'
import { Cluster, type ClusterOptions, Redis, type RedisOptions } from 'ioredis'
import { packageRoot } from '../../config/package-root.ts'
import { parseRedisUrl, type RedisAddress } from '../../config/redis-url.ts'
import { connectionName } from '../../ports/node-name.ts'
import { StoreError } from '../../ports/store-error.ts'
import { foreignProblems } from './deployment.ts'
import { problemsOf } from './requirements.ts'
import { keysOnEach, slotOf } from './slots.ts'

export type Client = Redis | Cluster

/** Nothing waits longer for the store, in ms. */
const deadlineMs = 4_000
const startMs = 10_000
const tryMs = 1_000
const watchMs = 60_000

/**
 * A script that may write, and does not. Its first line has Redis look before it runs whether a write would be taken: not at
 * `maxmemory`, by a replica, after a save that failed, with too few replicas. So no key is needed in the slots of each master.
 */
const writable = '#!lua\nreturn 1'

/** The store refused it, and nothing was done. */
const refusals = /^(LOADING|READONLY|MASTERDOWN|CLUSTERDOWN|NOREPLICAS|OOM|MISCONF|BUSY|NOAUTH|TRYAGAIN|MOVED|ASK)\b/

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

/** Of a cluster's server; elsewhere there is one that takes writes. */
export type ServerAddress = { readonly host: string; readonly port: number } | 'primary'

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

/** Where a server refuses the database, the client would go on with database 0: such a connection is given up. */
function keptToDatabase(client: Redis): Redis {
  return client.on('error', (error) => {
    if (isOfDatabase(error)) client.disconnect(true)
  })
}

/** There is no such database, or the account may not use it. */
function isOfDatabase(error: Error & { command?: { name: string } }): boolean {
  return error.command?.name === 'select'
}

const lasting = {
  // What the client would say of itself is asked of nobody.
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
  // Where the name leads to another server by now, a new connection finds it.
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

export interface Store {
  readonly client: Client
  /** Stands before each key. The client adds it; where a key is only an argument, it has to be written. */
  readonly prefix: string
  /** Runs a script over keys of one slot. */
  run(name: ScriptName, keys: readonly string[], args: readonly (string | number)[]): Promise<Reply>
  /** How many of these keys there are; of one slot, on a cluster. */
  exists(keys: readonly string[]): Promise<number>
  /** The servers that take writes. */
  masters(): Promise<readonly Master[]>
  /** The name of the master that has the keys under a tag. */
  masterOf(tag: string): string
  /** The address of the same; undefined where that is not known now. */
  addressOf(tag: string): ServerAddress | undefined
  /** Asks it for something that has no key. */
  ask<T>(tag: string, send: (server: Redis) => Promise<T>): Promise<T>
  /**
   * Resolves when commands can be sent and every server is as the service needs it; rejects with what is wrong, or after
   * 10 s (`startMs`). From then on it is watched, and a change for the worse is an error that is told once.
   */
  ready(): Promise<void>
  /** Resolves when every master would take a write; rejects where one does not say so within 1 s [HEALTH1]. */
  tryWrite(): Promise<void>
  close(): void
}

export interface Master {
  readonly name: string
  /** Names what it has, and whose that was: another name where it was promoted, or began again. */
  readonly origin: string
  /** A key that it has; of that name there is one on each. */
  readonly marker: string
}

/** What scripts answer: texts and numbers, and lists of texts. */
export type Reply = (string | number | string[])[]

const scriptNames = [
  'claim',
  'consume',
  'nodes',
  'post',
  'refund',
  'renew',
  'row',
  'rows',
  'said',
  'save',
  'wakes',
  'written',
] as const
export type ScriptName = (typeof scriptNames)[number]

interface Pending {
  readonly until: number
  readonly expire: () => void
}

export interface StoreOptions {
  /** How long a server may take to be there at the start, in ms. */
  readonly startMs?: number
  /** How often the servers are looked at, in ms. */
  readonly watchMs?: number
  /** Of the connection. */
  readonly name?: string
  /** Stands before each key; none where it is not given. */
  readonly prefix?: string | undefined
  /** Whose database it has to be; where it is not given, nobody is asked [REDIS1]. */
  readonly deployment?: string | undefined
}

export function createStore(url: string, onError: (error: unknown) => void, options: StoreOptions = {}): Store {
  const { prefix = '', deployment } = options
  const client = connect(url, options.name, prefix)
  async function problems(): Promise<string[]> {
    const found = await problemsOf(mastersOf(client), client instanceof Cluster)
    return found.length > 0 ? found : foreignProblems(client, prefix, deployment)
  }
  const look = () => within(problems)
  const watch = createWatch(look, onError, options.watchMs ?? watchMs)
  const scripts = readScripts()
  const pending = new Set<Pending>()
  tellErrors(client, onError)
  // A server that was empty may have been taken by another deployment meanwhile.
  client.on('ready', () => watch.again())
  client.on(
    'ready',
    () =>
      void load().catch((cause) => {
        // One that ended meanwhile is told of as such, and loads them when it is there again.
        if (client.status === 'ready') onError(storeError(cause))
      }),
  )
  // In order of their deadlines: all have the same time.
  const timer = setInterval(() => {
    const now = performance.now()
    let isDead = false
    for (const each of pending) {
      if (each.until > now) break
      pending.delete(each)
      each.expire()
      isDead = true
    }
    // The connection may be dead without saying so. One that is being made is not to be disturbed: it would be given up.
    if (isDead && client.status === 'ready' && !(client instanceof Cluster)) client.disconnect(true)
    if (client.status === 'end') void client.connect().catch(onError)
  }, 250)
  timer.unref()

  async function load(): Promise<void> {
    for (const server of mastersOf(client)) for (const { text } of scripts.values()) await server.script('LOAD', text)
  }

  function within<T>(send: () => Promise<T>): Promise<T> {
    if (client.status !== 'ready') return Promise.reject(new StoreError('unavailable', 'Redis is not connected'))
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    const expire = () => reject(new StoreError('unknown', 'Redis did not answer in time'))
    const mine = { until: performance.now() + deadlineMs, expire }
    pending.add(mine)
    send().then(
      (value) => {
        pending.delete(mine)
        resolve(value)
      },
      (cause: unknown) => {
        pending.delete(mine)
        reject(storeError(cause))
      },
    )
    return promise
  }

  /** In full where its server does not know it: one that has just started. */
  async function sendScript({ sha, text }: Script, keys: readonly string[], args: readonly (string | number)[]) {
    try {
      return (await within(() => client.evalsha(sha, keys.length, ...keys, ...args))) as Reply
    } catch (error) {
      if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) throw error
      return (await within(() => client.eval(text, keys.length, ...keys, ...args))) as Reply
    }
  }

  return {
    client,
    prefix,
    async run(name, keys, args) {
      const script = scripts.get(name)
      if (script === undefined) throw new Error(`no script ${name}`)
      const send = () => sendScript(script, keys, args)
      return send().catch(async (error) => {
        // A cluster's client that lost a connection asks any server, and does not look by itself where the slot is.
        if (!(client instanceof Cluster && error instanceof StoreError && error.message === 'MOVED')) throw error
        await within(() => refreshed(client))
        return send()
      })
    },
    exists: (keys) => within(() => client.exists(...keys)),
    masters: () => within(() => Promise.all(markersOf(client, prefix).map(asMaster))),
    masterOf: (tag) => masterOf(client, tag),
    addressOf(tag) {
      if (!(client instanceof Cluster)) return 'primary'
      const { host, port } = serverOf(client, tag)?.options ?? {}
      return host === undefined || port === undefined ? undefined : { host, port }
    },
    ask: (tag, send) =>
      within(() => {
        const server = serverOf(client, tag)
        return server === undefined ? Promise.reject(new Error('no server has the slot')) : send(server)
      }),
    async ready() {
      await connected(client, options.startMs ?? startMs, url.startsWith('rediss'))
      await watch.start()
    },
    async tryWrite() {
      const answers = within(() => Promise.all(mastersOf(client).map((server) => server.eval(writable, 0))))
      const { promise: late, reject } = Promise.withResolvers<never>()
      const limit = setTimeout(() => reject(new StoreError('unavailable', 'Redis did not answer in time')), tryMs)
      try {
        const { length } = await Promise.race([answers, late])
        if (length === 0) throw new StoreError('unavailable', 'no server of Redis is known')
      } finally {
        clearTimeout(limit)
      }
    },
    close() {
      clearInterval(timer)
      watch.stop()
      client.disconnect()
    },
  }
}

/**
 * Tells what is wrong with a connection once, not with each attempt to make it, until it is there again. `told`: what was
 * told of those before it.
 */
export function tellErrors(client: Client, onError: (error: unknown) => void, told = new Set<string>()): void {
  client.on('ready', () => told.clear())
  client.on('error', (error: Error) => {
    // Some say in how many milliseconds they try again.
    const what = error.message.replace(/\d+ms/, '')
    // What the client says when a connection that was given up is asked how it is.
    if (told.has(what) || told.size >= 20 || what.includes('enableOfflineQueue')) return
    told.add(what)
    onError(error)
  })
}

/** Resolves when the cluster was asked which server has which slots, or could not be. */
function refreshed(cluster: Cluster): Promise<void> {
  return new Promise((resolve) => cluster.refreshSlotsCache(() => resolve()))
}

/** The servers that take writes. */
function mastersOf(client: Client): Redis[] {
  return client instanceof Cluster ? client.nodes('master') : [client]
}

/** The name of the master that has the keys under a tag. */
function masterOf(client: Client, tag: string): string {
  return client instanceof Cluster ? (client.slots[slotOf(tag)]?.[0] ?? '') : ''
}

function serverOf(client: Client, tag: string): Redis | undefined {
  if (!(client instanceof Cluster)) return client
  const name = masterOf(client, tag)
  return client.nodes('master').find(({ options: { host, port } }) => `${host}:${port}` === name)
}

const markerBegin = 'rw:w:'

/** The servers that take writes, each with its name and a key that it has. */
function markersOf(client: Client, prefix: string): (readonly [server: Redis, name: string, marker: string])[] {
  if (!(client instanceof Cluster)) return [[client, '', `${markerBegin}0`]]
  const markers = keysOnEach(prefix + markerBegin, (slot) => client.slots[slot]?.[0])
  return client.nodes('master').flatMap((server) => {
    const name = `${server.options.host}:${server.options.port}`
    const marker = markers.get(name)
    // One that has no slots has nothing.
    return marker === undefined ? [] : [[server, name, marker.slice(prefix.length)] as const]
  })
}

async function asMaster([server, name, marker]: readonly [Redis, string, string]): Promise<Master> {
  const text = await server.info('replication')
  return { name, marker, origin: /master_replid:(\w+)/.exec(text)?.[1] ?? '' }
}

/** Resolves when commands can be sent; rejects when the time is over, or at once where account or database are refused. */
function connected(client: Client, ms: number, tls: boolean): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  let last = ''
  const refuse = (why: string) => reject(new StoreError('unavailable', why))
  const giveUp = () => refuse(`Redis cannot be reached: ${last || 'it does not answer'}${hintOf(last, tls)}`)
  const hear = (error: Error) => {
    const { message } = error
    if (isOfDatabase(error)) return refuse(`Redis does not give the database that REDIS_URL names: ${message}`)
    // What follows from it says less than what came first.
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
 * Where one side alone speaks TLS nobody says so: a server without it waits for the rest of what it takes for a command,
 * and one with it hangs up.
 */
function hintOf(problem: string, tls: boolean): string {
  if (!tls) return /ECONNRESET|EPIPE/.test(problem) ? ' (if it speaks TLS, the URL begins with rediss, not redis)' : ''
  const isSilent = /time(d ?)?out|WRONG_VERSION/i.test(problem)
  return isSilent ? ' (if it speaks no TLS, the URL begins with redis, not rediss)' : ''
}

/** Looks at the servers at the start and now and then. */
function createWatch(look: () => Promise<string[]>, onError: (error: unknown) => void, everyMs: number) {
  let told = ''
  let timer: Timer | undefined
  async function again(): Promise<void> {
    const found = (await look()).join('; ')
    if (found !== told && found !== '') onError(new Error(found))
    told = found
  }
  return {
    /** Looks at once, where it has begun to. */
    again() {
      if (timer !== undefined) void again().catch(() => {})
    },
    async start() {
      const problems = await look()
      if (problems.length > 0) throw new Error(problems.join('; '))
      clearInterval(timer)
      // A server that cannot be asked is told of by whoever needs it.
      timer = setInterval(() => void again().catch(() => {}), everyMs)
      timer.unref()
    },
    stop: () => clearInterval(timer),
  }
}

/** A bug in a script is thrown as it is. */
function storeError(cause: unknown): unknown {
  const message = cause instanceof Error ? cause.message : ''
  if (refusals.test(message)) return new StoreError('unavailable', message.split(' ')[0] ?? '', { cause })
  if (cause instanceof Error && cause.name === 'ReplyError') return cause
  if (message.includes('enableOfflineQueue')) return new StoreError('unavailable', 'Redis is not connected', { cause })
  return new StoreError('unknown', 'the connection to Redis was lost', { cause })
}

interface Script {
  readonly text: string
  readonly sha: string
}

function readScripts(): Map<ScriptName, Script> {
  return new Map(
    scriptNames.map((name) => {
      const text = readFileSync(new URL(`src/stores/redis/lua/${name}.lua`, packageRoot), 'utf8')
      return [name, { text, sha: new Bun.CryptoHasher('sha1').update(text).digest('hex') }]
    }),
  )
}
