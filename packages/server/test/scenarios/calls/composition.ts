import { afterAll, beforeAll } from 'bun:test'
import { NodePair } from '../../support/node-pair.ts'
import { Postgres } from '../../support/postgres.ts'
import { startCluster, startRedis } from '../../support/redis.ts'
import { Service } from '../../support/service.ts'

export type Env = Readonly<Record<string, string>>

/** How a service is put together: the same scenarios run on every composition. */
export type Start = (env?: Env) => Promise<Service>

/** Bursts are what these scenarios are about: no socket is slowed down. */
const unlimited: Env = { RINGWIRE_WS_RATE: 'off' }

/** One process, SQLite, everything else in memory. */
export const startEmbedded: Start = async (env = {}) => {
  const service = new Service({ ...unlimited, ...env })
  try {
    return await service.start()
  } catch (error) {
    await service.dispose()
    throw error
  }
}

/** One process, PostgreSQL, everything else in memory; every service has a database of its own. */
export function startOnPostgres(): Start {
  let server: Postgres | undefined
  beforeAll(async () => {
    server = await Postgres.start()
  })
  afterAll(() => server?.dispose())
  return async (env = {}) => startEmbedded({ DATABASE_URL: (await server?.database()) ?? '', ...env })
}

const jwtSecrets = `test:${'A'.repeat(43)}`

/** A Redis that pairs of nodes share, and what tells each of them which part of it is its own. */
export interface SharedRedis {
  envOf(pair: number): Env
  stop(): Promise<void>
}

/** One server; each pair has a database of its own. */
async function startDatabases(): Promise<SharedRedis> {
  const { url, stop } = await startRedis(['--databases', '256'])
  return { envOf: (pair) => ({ REDIS_URL: `${url}/${pair}` }), stop }
}

/** A cluster has no numbered databases: what its nodes are called tells the pairs apart. */
export async function startSharedCluster(): Promise<SharedRedis> {
  const { url, stop } = await startCluster()
  return { envOf: (pair) => ({ REDIS_URL: url, RINGWIRE_NODE_ID: `pair-${pair}-` }), stop }
}

/** What makes a service a node: a database and a Redis of its own, in servers that the tests of a file share. */
export function sharedStores(startShared: () => Promise<SharedRedis>): () => Promise<Env> {
  let server: Postgres | undefined
  let redis: SharedRedis | undefined
  let pairs = 0
  beforeAll(async () => {
    ;[server, redis] = await Promise.all([Postgres.start(), startShared()])
  }, 30_000)
  afterAll(async () => {
    await Promise.all([server?.dispose(), redis?.stop()])
  })
  return async () => {
    // Of its own before anything is waited for: pairs start at the same time.
    const pair = ++pairs
    return {
      DATABASE_URL: (await server?.database()) ?? '',
      ...redis?.envOf(pair),
      RINGWIRE_JWT_SECRETS: jwtSecrets,
      // Nodes that stop together have nobody to send their clients to.
      RINGWIRE_DRAIN_MS: '0',
    }
  }
}

/** Two nodes on PostgreSQL and Redis; whoever connects does so to the one and the other in turn. */
export function startTwoNodes(base: Env = unlimited, startShared = startDatabases): Start {
  const stores = sharedStores(startShared)
  return async (env = {}) => {
    const pair = new NodePair({ ...base, ...(await stores()), ...env })
    try {
      return await pair.start()
    } catch (error) {
      await pair.dispose()
      throw error
    }
  }
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

/** Ends a service; whatever it was asked, none of it was a bug of its own. */
export async function finish(service: Service): Promise<void> {
  const { log } = service
  await service.dispose()
  const failures = log.split('\n').filter((line) => line.includes('"level":"error"'))
  if (failures.length > 0) throw new Error(`The service logged failures:\n${failures.join('\n')}`)
}
