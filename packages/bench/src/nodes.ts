// Several nodes of Ringwire on a PostgreSQL and a Redis of their own, which are thrown away at the end.
import { readlinkSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { findSystemProgram } from '../../../scripts/system.mjs'
import { Postgres } from '../../server/test/support/postgres.ts'
import { type RedisServer, startRedis } from '../../server/test/support/redis.ts'
import type { Target } from './jobs/job.ts'
import { type Part, pinTo, processesOf } from './parts.ts'
import { type Placement, type ServerProcess, startServer } from './process.ts'
import { commandOf } from './systems.ts'
import { type Trips, tripsOf } from './trips.ts'

/** Cores of the nodes and of the stores; empty where there are too few to keep them apart from the load. */
export interface Places {
  nodes: readonly number[][]
  stores: readonly number[]
  note: string
}

export interface Nodes {
  /** The first one, and the ports of the others. */
  target: Target
  /** Whatever works for them. */
  parts: Part[]
  trips: Trips
  redisUrl: string
  databaseUrl: string
  stop(): Promise<void>
}

/** What is missing to measure several nodes, as a note; undefined where nothing is. */
export function missingForNodes(name: string): string | undefined {
  const missing = (['postgresql', 'redis'] as const).filter((program) => findSystemProgram(program) === undefined)
  return missing.length === 0 ? undefined : `${name}: not measured, ${missing.join(' and ')} is missing`
}

/** Each on cores of its own: the first node where a single server runs, another one, the stores; the load on core 1. */
export function places({ serverCore, generatorCores }: Placement): Places {
  const [, second, stores] = generatorCores
  if (serverCore === null || second === undefined || stores === undefined) {
    return { nodes: [[], []], stores: [], note: 'Fewer than four cores: nodes and stores are not pinned.' }
  }
  const note = `Load on core ${generatorCores[0]}, nodes on ${serverCore} and ${second}, PostgreSQL and Redis on ${stores}.`
  return { nodes: [[serverCore], [second]], stores: [stores], note }
}

/** All the cores but that of the load, for everybody: where there are more processes than cores. */
export function sharedPlaces(placement: Placement, count: number): Places {
  const { nodes, stores, note } = places(placement)
  const cores = [...nodes.flat(), ...stores]
  const all =
    cores.length === 0 ? note : `Load on core ${placement.generatorCores[0]}, the rest on ${cores.join(', ')}.`
  return { nodes: Array.from({ length: count }, () => cores), stores: cores, note: all }
}

/** A PostgreSQL server that goes with this process, whatever ends it. */
export async function startPostgres(cores: readonly number[], settings: Readonly<Record<string, string>> = {}) {
  const postgres = await Postgres.start(settings)
  pinTo(processesOf(postgres.pid), cores)
  const killNow = () => {
    for (const pid of processesOf(postgres.pid)) process.kill(pid, 'SIGKILL')
    rmSync(dirname(postgres.dataDir), { recursive: true, force: true })
  }
  process.on('exit', killNow)
  const stop = async () => {
    process.off('exit', killNow)
    await postgres.dispose()
  }
  return { postgres, stop }
}

async function startRedisFor(cores: readonly number[]): Promise<Pick<RedisServer, 'url' | 'pid' | 'stop'>> {
  const redis = await startRedis()
  pinTo([redis.pid], cores)
  const directory = readlinkSync(`/proc/${redis.pid}/cwd`)
  const killNow = () => {
    process.kill(redis.pid, 'SIGKILL')
    rmSync(directory, { recursive: true, force: true })
  }
  process.on('exit', killNow)
  const stop = async () => {
    process.off('exit', killNow)
    await redis.stop()
  }
  return { url: redis.url, pid: redis.pid, stop }
}

/**
 * One service: as many nodes as there are places for, with a database and a Redis of its own. `settings`: of each of them, beside
 * those of `commandOf`.
 */
export async function startNodes(
  postgres: Postgres,
  { nodes, stores }: Places,
  directory: string,
  settings: Readonly<Record<string, string>> = {},
): Promise<Nodes> {
  const redis = await startRedisFor(stores)
  const running: ServerProcess[] = []
  const stop = async () => {
    await Promise.all(running.map((node) => node.stop()))
    await redis.stop()
  }
  try {
    const databaseUrl = await postgres.database()
    const secret = crypto.getRandomValues(new Uint8Array(32)).toBase64({ alphabet: 'base64url', omitPadding: true })
    const shared = { DATABASE_URL: databaseUrl, REDIS_URL: redis.url, RINGWIRE_JWT_SECRETS: `bench:${secret}` }
    for (const [i, cores] of nodes.entries()) {
      const { name, command, env } = commandOf('ringwire', directory)
      const own = { ...env, ...shared, ...settings, RINGWIRE_NODE_ID: `node-${i}` }
      const node = await startServer({ name, command, env: own }, null, directory)
      running.push(node)
      pinTo(processesOf(node.pid), cores)
    }
    const [first, ...others] = running as [ServerProcess, ...ServerProcess[]]
    const parts: Part[] = running.map(({ pid }, i) => ({ name: 'nodes', pid, cores: nodes[i]! }))
    parts.push({ name: 'redis', pid: redis.pid, cores: stores })
    parts.push({ name: 'postgres', pid: postgres.pid, cores: stores })
    const morePorts = others.map(({ port }) => port)
    const target: Target = { system: 'ringwire', port: first.port, pid: first.pid, core: null, morePorts }
    return { target, parts, trips: tripsOf(redis.url, databaseUrl), redisUrl: redis.url, databaseUrl, stop }
  } catch (error) {
    await stop()
    throw error
  }
}
