import { Cluster, type Redis } from 'ioredis'
import { StoreError } from '../../ports/store-error.ts'
import { connect, connected, tellErrors } from './connect.ts'
import { createDeadlines } from './deadlines.ts'
import { foreignProblems } from './deployment.ts'
import { problemsOf } from './requirements.ts'
import { createScripts, type RunScript } from './scripts.ts'
import {
  asMaster,
  type Client,
  type Master,
  markersOf,
  masterOf,
  mastersOf,
  type ServerAddress,
  serverOf,
} from './servers.ts'

const startMs = 10_000
const tryMs = 1_000
const watchMs = 60_000

/**
 * A script that may write, and does not. Its first line has Redis look before it runs whether a write would be taken: not at
 * `maxmemory`, by a replica, after a save that failed, with too few replicas. So no key is needed in the slots of each master.
 */
const writable = '#!lua\nreturn 1'

export interface Store {
  readonly client: Client
  /** Stands before each key. The client adds it; where a key is only an argument, it has to be written. */
  readonly prefix: string
  /** Runs a script over keys of one slot. */
  readonly run: RunScript
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
   * 10 s (`startMs`). From then on the store watches them, and tells a change for the worse once.
   */
  ready(): Promise<void>
  /** Resolves when every master would take a write; rejects where one does not say so within 1 s [HEALTH1]. */
  tryWrite(): Promise<void>
  close(): void
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
  /** The deployment whose database it has to be; without it, nothing is checked [REDIS1]. */
  readonly deployment?: string | undefined
}

export function createStore(url: string, onError: (error: unknown) => void, options: StoreOptions = {}): Store {
  const { prefix = '', deployment } = options
  const client = connect(url, options.name, prefix)
  async function problems(): Promise<string[]> {
    const found = await problemsOf(mastersOf(client), client instanceof Cluster)
    return found.length > 0 ? found : foreignProblems(client, prefix, deployment)
  }
  const { within, stop } = createDeadlines(client, onError)
  const watch = createWatch(() => within(problems), onError, options.watchMs ?? watchMs)
  tellErrors(client, onError)
  // A server that was empty may have been taken by another deployment meanwhile.
  client.on('ready', () => watch.again())
  return {
    client,
    prefix,
    run: createScripts(client, within, onError),
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
      stop()
      watch.stop()
      client.disconnect()
    },
  }
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
      // A server that does not answer is reported by the code that needs it.
      timer = setInterval(() => void again().catch(() => {}), everyMs)
      timer.unref()
    },
    stop: () => clearInterval(timer),
  }
}
