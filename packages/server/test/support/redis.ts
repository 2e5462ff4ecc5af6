import { mkdtemp, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { soon } from '@ringwire/testkit/patience'
import { freePort } from '@ringwire/testkit/ports'
import { Redis } from 'ioredis'

export interface RedisServer {
  readonly port: number
  readonly url: string
  readonly pid: number
  /** The directory of its files. */
  readonly directory: string
  /** Ends the process at once, as a crash does. */
  kill(): Promise<void>
  /** Starts it again on the same port, with what is in its directory. */
  restart(more?: readonly string[]): Promise<void>
  stop(): Promise<void>
}

type Args = readonly string[]

/** A server in which tests have numbered databases of their own. */
export interface RedisDatabases {
  /** The address of a database that nobody has used. */
  database(): Promise<string>
  stop(): Promise<void>
}

/**
 * A server whose databases many test files use at once. It refuses what would reach the databases of the others: FLUSHALL,
 * CONFIG SET and SHUTDOWN. A test that needs one of them starts a server of its own: `startRedis()`.
 */
export function startSharedRedis(): Promise<RedisServer> {
  const user = ['--user', 'default', 'on', 'nopass', '~*', '&*', '+@all', '-flushall', '-config|set', '-shutdown']
  return startRedis(['--databases', '10000', ...user])
}

/** The server that a run of the tests shares, where there is one; else one that this file starts, with the same limits. */
export async function openRedisDatabases(): Promise<RedisDatabases> {
  const shared = process.env.RINGWIRE_TEST_REDIS
  const server = shared === undefined ? await startSharedRedis() : undefined
  const url = shared ?? server?.url ?? ''
  const client = new Redis(url)
  return {
    database: async () => `${url}/${await client.incr('databases')}`,
    async stop() {
      client.disconnect()
      await server?.stop()
    },
  }
}

/** A throw-away redis-server on a free port of the loopback address; nothing of it stays. `more` is called for each try. */
export async function startRedis(more: Args | (() => Promise<Args>) = []): Promise<RedisServer> {
  const directory = await mkdtemp(join(tmpdir(), 'ringwire-redis-'))
  let child: ReturnType<typeof spawn> | undefined
  let port = 0
  let args: Args = []
  for (let tries = 0; child === undefined; tries++) {
    args = typeof more === 'function' ? await more() : more
    port = await freePort()
    const started = spawn(port, directory, args)
    if (await answers(port, started)) child = started
    // Somebody else was quicker to take the port.
    else if (tries > 5) throw new Error('redis-server does not start')
  }
  let running = child
  const kill = async () => {
    running.kill('SIGKILL')
    await running.exited
  }
  return {
    port,
    directory,
    url: `redis://127.0.0.1:${port}`,
    get pid() {
      return running.pid
    },
    kill,
    async restart(more = []) {
      await kill()
      running = spawn(port, directory, [...args, ...more])
      if (!(await answers(port, running))) throw new Error('redis-server does not start again')
    },
    async stop() {
      await kill()
      await rm(directory, { recursive: true, force: true })
    },
  }
}

function spawn(port: number, directory: string, args: Args) {
  return Bun.spawn(
    [
      ...['redis-server', '--port', String(port), '--bind', '127.0.0.1', '--dir', directory, '--save', ''],
      ...['--appendonly', 'no', '--maxmemory-policy', 'noeviction', ...args],
    ],
    { stdout: 'ignore', stderr: 'inherit' },
  )
}

export interface RedisCluster {
  readonly url: string
  readonly servers: readonly RedisServer[]
  /** Resolves when all of them take commands: one that was away for 2 s is taken back some seconds after it is there. */
  whole(): Promise<void>
  stop(): Promise<void>
}

/** Three masters that share the slots: real processes. */
export async function startCluster(moreArgs: () => Promise<Args> = async () => []): Promise<RedisCluster> {
  const nodes = await Promise.all(
    [0, 1, 2].map(async () => {
      let bus = 0
      const server = await startRedis(async () => {
        bus = await freePort()
        const args = ['--cluster-enabled', 'yes', '--cluster-port', String(bus), '--cluster-node-timeout', '2000']
        return [...args, ...(await moreArgs())]
      })
      return { bus, server }
    }),
  )
  const servers = nodes.map(({ server }) => server)
  const clients = servers.map(({ url }) => new Redis(url))
  const [first] = nodes
  for (const [i, client] of clients.entries()) {
    await client.call('CLUSTER', 'SET-CONFIG-EPOCH', i + 1)
    await client.call('CLUSTER', 'ADDSLOTSRANGE', Math.floor((i * 16_384) / 3), Math.floor(((i + 1) * 16_384) / 3) - 1)
    if (i > 0) await client.call('CLUSTER', 'MEET', '127.0.0.1', first!.server.port, first!.bus)
  }
  for (const client of clients) client.disconnect()
  const whole = async () => void (await Promise.all(servers.map(knowsAll)))
  await whole()
  const url = `redis+cluster://${servers.map(({ port }) => `127.0.0.1:${port}`).join(',')}`
  return { url, servers, whole, stop: async () => void (await Promise.all(servers.map((server) => server.stop()))) }
}

/** Each node itself says that it has heard of the others, and has nobody for failed. */
async function knowsAll({ url }: RedisServer): Promise<void> {
  const client = new Redis(url)
  for (let tries = 0; tries < 1_000; tries++) {
    const [info, slots] = await Promise.all([client.call('CLUSTER', 'INFO'), client.call('CLUSTER', 'SLOTS')])
    if (String(info).includes('cluster_state:ok') && (slots as unknown[]).length === 3) break
    await Bun.sleep(20)
  }
  client.disconnect()
}

/** How long a server that runs may take until it answers, in ms. A bound for failures, never a pace. */
const patienceMs = 20_000

async function answers(port: number, child: { exitCode: number | null }): Promise<boolean> {
  for (const since = performance.now(); child.exitCode === null && performance.now() - since < soon(patienceMs); ) {
    if (await ping(port)) return child.exitCode === null
    await Bun.sleep(10)
  }
  return false
}

function ping(port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const socket = connect(port, '127.0.0.1', () => socket.write('PING\r\n'))
  socket.on('data', (data) => {
    socket.destroy()
    resolve(data.toString().startsWith('+PONG'))
  })
  socket.on('error', () => resolve(false))
  // Another program that has the port may say nothing.
  socket.setTimeout(1_000, () => socket.destroy())
  socket.on('close', () => resolve(false))
  return promise
}
