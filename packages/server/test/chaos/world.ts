import { Database } from 'bun:sqlite'
import { join } from 'node:path'
import { TcpProxy } from '@ringwire/testkit/tcp-proxy'
import { databaseFile } from '../../src/stores/sqlite/data-dir.ts'
import { Random } from '../fuzz/random.ts'
import { Postgres } from '../support/postgres.ts'
import { type RedisServer, startCluster, startRedis } from '../support/redis.ts'
import { signingKeyEnv } from '../support/session-tokens.ts'
import { hookOf } from './check/hooks.ts'
import type { Query } from './collect.ts'
import { openDecidingEndpoint } from './deciding-endpoint.ts'
import { Endpoint } from './endpoint.ts'
import { hasEndpoints } from './fault-kinds.ts'
import { NodeProcess } from './node-process.ts'
import type { RunOptions } from './options.ts'
import { type RedisKind, userNames } from './recording.ts'

export const productKey = { id: 'chaos', secret: 'a-secret-that-only-this-run-knows-0123456789', product: 'shop' }
export const resumeWindowMs = 30_000

const endpointCount = 2
/** How often an endpoint fails one event: with one node, whose run is short, what comes next comes after 5 s [HOOK3]. */
const mostFailures = { oneNode: 1, manyNodes: 2 } as const

/** What all nodes have in common. Times are short, so that everything that can end by itself does; limits are off. */
const settings = {
  ...signingKeyEnv,
  RINGWIRE_BOOTSTRAP_KEYS: `${productKey.id}:${productKey.secret}:${productKey.product}`,
  RINGWIRE_LOG_LEVEL: 'error',
  RINGWIRE_TOKEN_TTL_S: '86400',
  RINGWIRE_RING_TIMEOUT_MS: '2500',
  RINGWIRE_CALLER_LOST_MS: '4000',
  RINGWIRE_PEER_LOST_MS: '10000',
  RINGWIRE_RESUME_WINDOW_MS: String(resumeWindowMs),
  RINGWIRE_PING_INTERVAL_MS: '5000',
  RINGWIRE_PONG_TIMEOUT_MS: '4000',
  RINGWIRE_MAX_RINGING: '1000',
  RINGWIRE_MAX_SOCKETS: '1000',
  RINGWIRE_WS_RATE: 'off',
  RINGWIRE_INVITE_RATE: 'off',
  RINGWIRE_PAIR_INVITE_RATE: 'off',
  RINGWIRE_TOKEN_RATE_IP: 'off',
  RINGWIRE_TOKEN_FAIL_RATE_IP: 'off',
  RINGWIRE_TOKEN_RATE_KEY: 'off',
  RINGWIRE_REST_RATE_IP: 'off',
  RINGWIRE_REST_RATE: 'off',
  RINGWIRE_CONNECT_RATE: 'off',
  RINGWIRE_WEBHOOK_ALLOW: '127.0.0.1',
} as const

/** The service with everything that it stands on: all of it real, all of it thrown away at the end. */
export interface World {
  readonly nodes: readonly NodeProcess[]
  /** One node may have SQLite instead, in its own process. */
  readonly postgres: Postgres | undefined
  readonly query: Query
  /** Several nodes share one Redis, or the masters of a cluster; one node has its sessions in memory. */
  readonly redis: SharedRedis | undefined
  /** Each gets every call. */
  readonly endpoints: readonly Endpoint[]
  /** Of each of several nodes its own ways to the stores; to a cluster there is nothing between. */
  readonly links: readonly { readonly postgres: TcpProxy; readonly redis: TcpProxy | undefined }[]
  dispose(): Promise<void>
}

export async function createWorld(
  { nodes: nodeCount, store, redis: redisKind, seed, users, decides }: RunOptions,
  at: () => number,
): Promise<World> {
  const disposals: (() => Promise<unknown>)[] = []
  const dispose = async () => {
    for (const each of disposals.splice(0).reverse()) await each()
  }
  try {
    const postgres = store === 'sqlite' ? undefined : await createPostgres(disposals)
    const databaseUrl = await postgres?.database()
    const redis = nodeCount === 1 ? undefined : await createRedis(redisKind, disposals)
    const links =
      redis === undefined || databaseUrl === undefined
        ? []
        : await createLinks(nodeCount, databaseUrl, redis, disposals)
    const nodes = Array.from({ length: nodeCount }, (_, index) => {
      const urls = databaseUrl === undefined ? {} : urlsThrough(databaseUrl, redis?.url, links[index])
      return new NodeProcess({ index, env: { ...settings, ...urls, RINGWIRE_NODE_ID: `node-${index}` }, at })
    })
    disposals.push(() => Promise.all(nodes.map((node) => node.dispose())))
    const endpoints: Endpoint[] = []
    if (hasEndpoints({ nodes: nodeCount, store })) {
      const most = nodeCount === 1 ? mostFailures.oneNode : mostFailures.manyNodes
      for (let i = 0; i < endpointCount; i++) endpoints.push(await Endpoint.open(most, at))
      disposals.push(() => Promise.all(endpoints.map((endpoint) => endpoint.close())))
    }
    const [first, ...others] = nodes
    if (first === undefined) throw new Error('a world has a node')
    await startOrSay(first)
    // The others know them when they start.
    for (const endpoint of endpoints) await subscribe(first, endpoint)
    if (decides) {
      const backend = openDecidingEndpoint(userNames(users), new Random(seed))
      disposals.push(() => backend.close())
      await ask(first, 'PATCH', 'product', { invite_url: backend.url })
    }
    await Promise.all(others.map(startOrSay))
    const query: Query =
      postgres === undefined ? querySqlite(first) : (statement) => postgres.query(statement, databaseUrl)
    return { nodes, postgres, query, redis, endpoints, links, dispose }
  } catch (error) {
    await dispose()
    throw error
  }
}

async function createPostgres(disposals: (() => Promise<unknown>)[]): Promise<Postgres> {
  const postgres = await Postgres.start()
  disposals.push(() => disposeOf(postgres))
  return postgres
}

/** Reads beside the node what it has written. */
function querySqlite({ dataDir }: NodeProcess): Query {
  return async (statement) => {
    using database = new Database(join(dataDir, databaseFile), { readonly: true })
    database.run('PRAGMA busy_timeout = 5000')
    return database.query(statement).all()
  }
}

export interface SharedRedis {
  readonly kind: RedisKind
  readonly url: string
  readonly servers: readonly RedisServer[]
  /** Resolves when a server that was away is there for everybody. */
  whole(): Promise<void>
}

/** Redis with its data on disk: what it had comes back with it, and nobody may take that for whole [RES2]. */
async function createRedis(kind: RedisKind, disposals: (() => Promise<unknown>)[]): Promise<SharedRedis> {
  const onDisk = ['--appendonly', 'yes', '--appendfsync', 'everysec']
  if (kind === 'cluster') {
    const cluster = await startCluster(async () => onDisk)
    disposals.push(() => cluster.stop())
    return { ...cluster, kind }
  }
  const server = await startRedis(onDisk)
  disposals.push(() => server.stop())
  return { url: server.url, servers: [server], kind, whole: async () => {} }
}

async function createLinks(
  nodeCount: number,
  databaseUrl: string,
  redis: SharedRedis,
  disposals: (() => Promise<unknown>)[],
) {
  const linkTo = async (url: string) => {
    const link = await new TcpProxy(url).start()
    disposals.push(() => link.stop())
    return link
  }
  const one = async () => ({
    postgres: await linkTo(databaseUrl),
    redis: redis.kind === 'one' ? await linkTo(redis.url) : undefined,
  })
  return Promise.all(Array.from({ length: nodeCount }, one))
}

/** The URLs of the stores for a node; of several nodes something is between. */
function urlsThrough(
  databaseUrl: string,
  redisUrl: string | undefined,
  link: World['links'][number] | undefined,
): Record<string, string> {
  if (link === undefined || redisUrl === undefined) return { DATABASE_URL: databaseUrl }
  const database = new URL(databaseUrl)
  database.port = String(link.postgres.port)
  return { DATABASE_URL: database.href, REDIS_URL: link.redis === undefined ? redisUrl : `redis://${link.redis.host}` }
}

async function subscribe(node: NodeProcess, endpoint: Endpoint): Promise<void> {
  await ask(node, 'POST', 'webhooks', { url: endpoint.url, events: [...hookOf.values()] })
}

/** As the backend of the product. */
async function ask({ url }: NodeProcess, method: string, path: string, body: object): Promise<void> {
  const response = await fetch(`${url}/v1/server/${path}`, {
    method,
    headers: { 'X-SVC-Product-Key-ID': productKey.id, 'X-SVC-Product-Secret': productKey.secret },
    body: JSON.stringify(body),
  })
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
}

/** A bound for failures: with all stores there a node starts at once. */
const startPatienceMs = 20_000

async function startOrSay(node: NodeProcess): Promise<void> {
  const { promise, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(
    () => reject(new Error(`node ${node.index} does not start:\n${node.lastLog}`)),
    startPatienceMs,
  )
  await Promise.race([node.start(), promise])
  clearTimeout(timer)
}

/** Its processes come and go: where one is gone in between, all get the signal once more. */
export function signalPostgres(postgres: Postgres, signal: 'SIGSTOP' | 'SIGCONT'): void {
  for (let tries = 0; ; tries++) {
    try {
      postgres.freeze(signal)
      return
    } catch (error) {
      if (tries >= 10) throw error
    }
  }
}

/** A run that is interrupted may leave it stopped, or dead. */
async function disposeOf(postgres: Postgres): Promise<void> {
  try {
    signalPostgres(postgres, 'SIGCONT')
  } catch {
    // It does not run.
  }
  await postgres.dispose()
}
