import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Cluster, type ClusterOptions, Redis, type RedisOptions } from 'ioredis'
import { StoreError } from '../../ports.ts'

export type Client = Redis | Cluster

/** Nothing waits longer for the store, in ms. */
const deadlineMs = 4_000

/** The store refused it, and nothing was done. */
const refusals = /^(LOADING|READONLY|MASTERDOWN|CLUSTERDOWN|NOREPLICAS|OOM|MISCONF|BUSY|NOAUTH|TRYAGAIN|MOVED|ASK)\b/

/**
 * Connects to `redis://…` (one server), `redis+sentinel://host:port,host:port/name` or `redis+cluster://host:port,…`;
 * `rediss` instead of `redis` for TLS.
 */
export function connect(url: string): Client {
  const [, scheme = '', kind, rest = ''] = /^(rediss?)(?:\+(sentinel|cluster))?:\/\/(.*)$/.exec(url) ?? []
  const redisOptions = {
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    autoResubscribe: false,
    maxRetriesPerRequest: 0,
    connectTimeout: deadlineMs,
    enableAutoPipelining: true,
    retryStrategy: (times: number) => Math.min(50 * times, 500),
    ...(scheme === 'rediss' && kind !== undefined && { tls: {} }),
  } satisfies RedisOptions
  if (kind === undefined) return new Redis(url, redisOptions)
  const at = rest.lastIndexOf('@')
  const [userName = '', password = ''] = at < 0 ? [] : rest.slice(0, at).split(':').map(decodeURIComponent)
  const [hosts = '', name = 'mymaster'] = rest.slice(at + 1).split('/')
  const nodes = hosts.split(',').map((host) => {
    const { hostname, port } = new URL(`tcp://${host}`)
    return { host: hostname, port: Number(port || (kind === 'sentinel' ? 26_379 : 6_379)) }
  })
  const account = { ...(userName !== '' && { username: userName }), ...(password !== '' && { password }) }
  if (kind === 'sentinel') return new Redis({ ...redisOptions, ...account, sentinels: nodes, name })
  const options = {
    enableOfflineQueue: false,
    enableAutoPipelining: true,
    clusterRetryStrategy: (times: number) => Math.min(50 * times, 500),
    redisOptions: { ...redisOptions, ...account },
  } satisfies ClusterOptions
  return new Cluster(nodes, options)
}

export interface Store {
  readonly client: Client
  /** Runs a script over keys of one slot. */
  run(name: ScriptName, keys: readonly string[], args: readonly (string | number)[]): Promise<Reply>
  publish(channel: string, message: string): Promise<void>
  /** Resolves when commands can be sent. */
  ready(): Promise<void>
  close(): void
}

/** What scripts answer: texts and numbers, and lists of them. */
export type Reply = (string | number | Entry[])[]
/** An entry of a log: its id, and fields and values. */
export type Entry = [string, string[]]

const scriptNames = [
  'append',
  'collect',
  'detach',
  'gate',
  'head',
  'keep',
  'live',
  'look',
  'move',
  'nodes',
  'open',
  'park',
  'read',
  'ready',
  'resume',
  'rung',
  'take',
  'told',
  'touch',
  'wait',
] as const
export type ScriptName = (typeof scriptNames)[number]

interface Pending {
  readonly until: number
  readonly expire: () => void
}

export function createStore(url: string, onError: (error: unknown) => void): Store {
  const client = connect(url)
  const scripts = readScripts()
  const pending = new Set<Pending>()
  client.on('error', onError)
  client.on('ready', () => void load().catch(onError))
  // In order of their deadlines: all have the same time.
  const timer = setInterval(() => {
    const now = performance.now()
    for (const each of pending) {
      if (each.until > now) break
      pending.delete(each)
      each.expire()
    }
  }, 250)
  timer.unref()

  async function load(): Promise<void> {
    const servers = client instanceof Cluster ? client.nodes('master') : [client]
    for (const server of servers) for (const { text } of scripts.values()) await server.script('LOAD', text)
  }

  function within<T>(send: () => Promise<T>): Promise<T> {
    if (client.status !== 'ready') return Promise.reject(new StoreError('unavailable', 'Redis is not connected'))
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    const expire = () => {
      reject(new StoreError('unknown', 'Redis did not answer in time'))
      // The connection may be dead without saying so.
      client.disconnect(true)
    }
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

  return {
    client,
    async run(name, keys, args) {
      const script = scripts.get(name)
      if (script === undefined) throw new Error(`no script ${name}`)
      try {
        return (await within(() => client.evalsha(script.sha, keys.length, ...keys, ...args))) as Reply
      } catch (error) {
        if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) throw error
        return (await within(() => client.eval(script.text, keys.length, ...keys, ...args))) as Reply
      }
    },
    async publish(channel, message) {
      await within(() => client.publish(channel, message))
    },
    ready: () => whenReady(client),
    close() {
      clearInterval(timer)
      client.disconnect()
    },
  }
}

export function whenReady(client: Client): Promise<void> {
  if (client.status === 'ready') return Promise.resolve()
  const { promise, resolve } = Promise.withResolvers<void>()
  client.once('ready', () => resolve())
  return promise
}

/** A bug in a script is thrown as it is. */
function storeError(cause: unknown): unknown {
  const message = cause instanceof Error ? cause.message : ''
  if (refusals.test(message)) return new StoreError('unavailable', message.split(' ')[0] ?? '', { cause })
  if (cause instanceof Error && cause.name === 'ReplyError') return cause
  if (message.includes('enableOfflineQueue')) return new StoreError('unavailable', 'Redis is not connected', { cause })
  return new StoreError('unknown', 'the connection to Redis was lost', { cause })
}

function readScripts(): Map<ScriptName, { text: string; sha: string }> {
  const read = (name: string) => readFileSync(join(import.meta.dir, 'lua', `${name}.lua`), 'utf8')
  const log = read('log')
  const session = read('session')
  return new Map(
    scriptNames.map((name) => {
      const shared = name === 'nodes' || name === 'told' ? [] : name === 'append' ? [log] : [log, session]
      const text = [...shared, read(name)].join('\n')
      return [name, { text, sha: new Bun.CryptoHasher('sha1').update(text).digest('hex') }]
    }),
  )
}
