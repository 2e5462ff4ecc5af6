import { afterAll, beforeAll } from 'bun:test'
import { Service } from '@ringwire/testkit/service'
import { NodePair } from '../../support/node-pair.ts'
import { openDatabases } from '../../support/postgres.ts'
import { openRedisDatabases, startCluster } from '../../support/redis.ts'
import type { CompositionName } from '../table.ts'

export type Env = Readonly<Record<string, string>>

/** How a service is put together: the same scenarios run on every composition. */
export type Start = (env?: Env) => Promise<Service>

/** Bursts are what most scenarios are about: no socket is slowed down. */
const unlimited: Env = { RINGWIRE_WS_RATE: 'off' }

const jwtSecrets = `test:${'A'.repeat(43)}`

/** One process, SQLite, everything else in memory. */
export const startEmbedded: Start = (env = {}) => started(new Service({ ...unlimited, ...env }))

async function started<S extends Service>(service: S): Promise<S> {
  try {
    return await service.start()
  } catch (error) {
    await service.dispose()
    throw error
  }
}

/** Stores that tests of this file use, opened before the first one and closed after the last one. */
function opened<T>(open: () => Promise<T>, close: (it: T) => Promise<void>): () => T {
  let it: T | undefined
  beforeAll(async () => {
    it = await open()
  }, 240_000)
  afterAll(async () => it !== undefined && (await close(it)))
  return () => it as T
}

/** Settings of a Redis that each pair of nodes has for itself. */
export interface PairRedis {
  next(): Promise<Env>
  stop(): Promise<void>
}

async function openNumbered(): Promise<PairRedis> {
  const { database, stop } = await openRedisDatabases()
  return { next: async () => ({ REDIS_URL: await database() }), stop }
}

/** A cluster has no numbered databases: what its nodes are called tells the pairs apart. */
export async function openCluster(): Promise<PairRedis> {
  const { url, stop } = await startCluster()
  let pairs = 0
  // Each pair has a database of its own, so it is a deployment of its own [REDIS1].
  const next = async () => {
    const name = `pair-${++pairs}`
    return { REDIS_URL: url, RINGWIRE_REDIS_PREFIX: name, RINGWIRE_NODE_ID: `${name}-` }
  }
  return { next, stop }
}

/** What makes a service a node: a database and a Redis of its own. */
export function nodeStores(openRedis: () => Promise<PairRedis>): () => Promise<Env> {
  const postgres = opened(openDatabases, (it) => it.dispose())
  const redis = opened(openRedis, (it) => it.stop())
  return async () => ({
    DATABASE_URL: await postgres().database(),
    ...(await redis().next()),
    RINGWIRE_JWT_SECRETS: jwtSecrets,
    // Nodes that stop together have nobody to send their clients to.
    RINGWIRE_DRAIN_MS: '0',
  })
}

export interface Composition {
  /** As the names of tests have it. */
  readonly name: string
  /** Without a limit of messages. */
  readonly start: Start
  /** With the limits that people have. */
  readonly startLimited: Start
  /** Sessions, and the members who were rung, are known after a restart. */
  readonly areSessionsKept: boolean
}

/** To be called where hooks may be registered: each opens the stores that it needs. */
export const compositions: Readonly<Record<CompositionName, () => Composition>> = {
  embedded: () => ({
    name: 'embedded',
    start: startEmbedded,
    startLimited: (env = {}) => started(new Service(env)),
    areSessionsKept: false,
  }),
  postgres() {
    const server = opened(openDatabases, (it) => it.dispose())
    const startWith =
      (base: Env): Start =>
      async (env = {}) =>
        started(new Service({ ...base, DATABASE_URL: await server().database(), ...env }))
    return { name: 'PostgreSQL', start: startWith(unlimited), startLimited: startWith({}), areSessionsKept: false }
  },
  nodes: () => pairsOf('two nodes', openNumbered),
  cluster: () => pairsOf('two nodes on a cluster', openCluster),
}

function pairsOf(name: string, openRedis: () => Promise<PairRedis>): Composition {
  const stores = nodeStores(openRedis)
  const startWith =
    (base: Env): Start =>
    async (env = {}) =>
      started(new NodePair({ ...base, ...(await stores()), ...env }))
  return { name, start: startWith(unlimited), startLimited: startWith({}), areSessionsKept: true }
}

/** One service for all tests of the block that calls this. */
export function serviceFor(start: Start, env: Env = {}): () => Service {
  let service: Service | undefined
  beforeAll(async () => {
    service = await start(env)
  })
  afterAll(() => service && finish(service))
  return () => service as Service
}

/** Ends a service; none of the requests met a bug of its own. */
export async function finish(service: Service): Promise<void> {
  const { log } = service
  await service.dispose()
  const failures = log.split('\n').filter((line) => line.includes('"level":"error"'))
  if (failures.length > 0) throw new Error(`The service logged failures:\n${failures.join('\n')}`)
}
