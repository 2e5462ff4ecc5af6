import { TcpProxy } from '@ringwire/testkit/tcp-proxy'
import { openBackend } from '../../src/backend.ts'
import type { Call } from '../../src/call/call.ts'
import { type Environment, loadConfig } from '../../src/config/config.ts'
import { createLogger } from '../../src/observability/logger.ts'
import { createMetrics } from '../../src/observability/metrics.ts'
import { openDatabases } from '../support/postgres.ts'
import { openRedisDatabases } from '../support/redis.ts'
import { mountSmallDisk } from '../support/small-disk.ts'
import { type NodesHarness, type Run, registerNodesContract, registerUptimeContract } from './nodes.ts'

/** The backend as the service opens it. */
async function openRun(env: Environment, sockets: number | undefined): Promise<Omit<Run, 'cut' | 'mend'>> {
  const loaded = loadConfig({ RINGWIRE_JWT_SECRETS: `k:${Buffer.alloc(32, 7).toString('base64url')}`, ...env })
  if (!loaded.ok) throw new Error(loaded.problems.join())
  const heard: Call[] = []
  const told: string[] = []
  const backend = await openBackend({
    config: loaded.config,
    logger: createLogger({ level: 'silent', destination: { write() {} } }),
    meter: createMetrics({ node: 'n', version: '1', stores: ['database', 'redis'] }),
    sockets: () => sockets ?? null,
    onDeath() {},
    onCall: (call) => void heard.push(call),
    onTold: (call, version) => void told.push(`${call} ${version}`),
  })
  return { ...backend, heard, told }
}

/** The stores of each run are behind proxies of its own. */
async function openBehind(id: string, sockets: number | undefined, urls: Environment): Promise<Run> {
  const proxies: TcpProxy[] = []
  const env: Record<string, string> = { RINGWIRE_NODE_ID: id }
  for (const [name, url = ''] of Object.entries(urls)) {
    const proxy = await new TcpProxy(url).start()
    proxies.push(proxy)
    const own = new URL(url)
    own.host = proxy.host
    env[name] = own.href
  }
  const run = await openRun(env, sockets)
  const mend = () => proxies.forEach((proxy) => void proxy.mend())
  return {
    ...run,
    cut: () => proxies.forEach((proxy) => void proxy.refuse()),
    mend,
    async close() {
      mend()
      await run.close()
      await Promise.all(proxies.map((proxy) => proxy.stop()))
    },
  }
}

async function openSqlite(): Promise<NodesHarness> {
  const disk = mountSmallDisk('16m')
  return {
    async open(id, sockets) {
      const run = await openRun({ RINGWIRE_NODE_ID: id, RINGWIRE_DATA_DIR: disk.path }, sockets)
      return { ...run, cut: disk.fill, mend: disk.clear }
    },
    close: async () => disk.remove(),
  }
}

async function openPostgres(): Promise<NodesHarness> {
  const server = await openDatabases()
  const DATABASE_URL = await server.database()
  return {
    open: (id, sockets) => openBehind(id, sockets, { DATABASE_URL }),
    close: () => server.dispose(),
  }
}

async function openShared(): Promise<NodesHarness> {
  const [server, redis] = await Promise.all([openDatabases(), openRedisDatabases()])
  const urls = { DATABASE_URL: await server.database(), REDIS_URL: await redis.database() }
  return {
    open: (id, sockets) => openBehind(id, sockets, urls),
    async close() {
      await redis.stop()
      await server.dispose()
    },
  }
}

const adapters = [
  ['one process on SQLite', 1, openSqlite],
  ['one process on PostgreSQL', 1, openPostgres],
  ['nodes on PostgreSQL and Redis', 3, openShared],
] as const
for (const [name, most, open] of adapters) {
  registerNodesContract(name, most, open)
  registerUptimeContract(name, open)
}
