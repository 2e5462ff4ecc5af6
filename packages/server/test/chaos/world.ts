import { TcpProxy } from '@ringwire/testkit/tcp-proxy'
import { Postgres } from '../support/postgres.ts'
import { openReceiver, type Receiver } from '../support/receiver.ts'
import { type RedisServer, startRedis } from '../support/redis.ts'
import { signingKeyEnv } from '../support/session-tokens.ts'
import { hookOf } from './check/hooks.ts'
import { NodeProcess } from './node-process.ts'

export const productKey = { id: 'chaos', secret: 'a-secret-that-only-this-run-knows-0123456789', product: 'shop' }
export const resumeWindowMs = 30_000

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
  readonly postgres: Postgres
  readonly databaseUrl: string
  /** Several nodes share one Redis; one node has its sessions in memory. */
  readonly redis: RedisServer | undefined
  /** Of each of several nodes its own ways to the stores. */
  /** Several nodes tell it of every call. One node does not: what waits for a claim to end is too long for a short run. */
  readonly receiver: Receiver | undefined
  readonly links: readonly { readonly postgres: TcpProxy; readonly redis: TcpProxy }[]
  dispose(): Promise<void>
}

export async function createWorld(nodeCount: number, at: () => number): Promise<World> {
  const postgres = await Postgres.start()
  const disposals: (() => Promise<unknown>)[] = [() => disposeOf(postgres)]
  const dispose = async () => {
    for (const each of disposals.splice(0).reverse()) await each()
  }
  try {
    const databaseUrl = await postgres.database()
    const redis = nodeCount === 1 ? undefined : await createRedis(disposals)
    const links = redis === undefined ? [] : await createLinks(nodeCount, databaseUrl, redis, disposals)
    const nodes = Array.from({ length: nodeCount }, (_, index) => {
      const urls = urlsThrough(databaseUrl, links[index])
      const env = { ...settings, DATABASE_URL: databaseUrl, ...urls }
      return new NodeProcess({ index, env: { ...env, RINGWIRE_NODE_ID: `node-${index}` }, at })
    })
    disposals.push(() => Promise.all(nodes.map((node) => node.dispose())))
    const receiver = redis === undefined ? undefined : await openReceiver()
    disposals.push(async () => receiver?.close())
    const [first, ...others] = nodes
    if (first !== undefined) await startOrSay(first)
    // The others know it when they start.
    if (first !== undefined && receiver !== undefined) await subscribe(first, receiver)
    await Promise.all(others.map(startOrSay))
    return { nodes, postgres, databaseUrl, redis, receiver, links, dispose }
  } catch (error) {
    await dispose()
    throw error
  }
}

/** Redis with its data on disk: what it had comes back with it, and nobody may take that for whole [RES2]. */
async function createRedis(disposals: (() => Promise<unknown>)[]): Promise<RedisServer> {
  const server = await startRedis(['--appendonly', 'yes', '--appendfsync', 'everysec'])
  disposals.push(() => server.stop())
  return server
}

async function createLinks(
  nodeCount: number,
  databaseUrl: string,
  redis: RedisServer,
  disposals: (() => Promise<unknown>)[],
) {
  const linkTo = async (url: string) => {
    const link = await new TcpProxy(url).start()
    disposals.push(() => link.stop())
    return link
  }
  const one = async () => ({ postgres: await linkTo(databaseUrl), redis: await linkTo(redis.url) })
  return Promise.all(Array.from({ length: nodeCount }, one))
}

/** Where a node finds the stores, if there is something between. */
function urlsThrough(databaseUrl: string, link: World['links'][number] | undefined): Record<string, string> {
  if (link === undefined) return {}
  const database = new URL(databaseUrl)
  database.port = String(link.postgres.port)
  return { DATABASE_URL: database.href, REDIS_URL: `redis://${link.redis.host}` }
}

async function subscribe({ url }: NodeProcess, receiver: Receiver): Promise<void> {
  const response = await fetch(`${url}/v1/server/webhooks`, {
    method: 'POST',
    headers: { 'X-SVC-Product-Key-ID': productKey.id, 'X-SVC-Product-Secret': productKey.secret },
    body: JSON.stringify({ url: receiver.url, events: [...hookOf.values()] }),
  })
  if (response.status !== 201) throw new Error(`webhook: ${response.status} ${await response.text()}`)
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
