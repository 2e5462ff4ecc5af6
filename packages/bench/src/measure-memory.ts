// Resident memory per idle authenticated connection.
import { Generator } from './generators.ts'
import { type Bench, comparison, type MeasurementResult, targetOf } from './measurement.ts'
import { findPeers } from './peers.ts'
import { readRss } from './proc.ts'
import { sized } from './quick.ts'
import { type ComparedName, type RunningSystem, SYSTEMS, startSystem, TITLES } from './systems.ts'

const CONNECTIONS = sized(5000)
const CONCURRENCY = 64
const WARMUP_CONNECTIONS = sized(200)
const WARMUP_TIMES = 5
const POLL_MS = 500
/** Settled: the smallest value seen did not shrink for this number of polls. Ringwire gives memory back after 10 s. */
const QUIET_POLLS = sized(24)
const MOST_POLLS = 60
const UNTIL_DONE = { window: 0, warmupMs: 0, measureMs: 0 }

interface Memory {
  before: number
  after: number
}

export async function measureMemory(bench: Bench): Promise<MeasurementResult> {
  const peers = findPeers()
  const compared = [...SYSTEMS, ...peers.here]
  const servers: RunningSystem[] = []
  // 5,000 sockets for each: one process for all would come to the usual limit of open files.
  const generators: Generator[] = []
  try {
    for (const system of compared) {
      servers.push(await startSystem(system, bench.placement.serverCore, bench.directory))
      generators.push(new Generator(bench.placement.generatorCores[0] ?? null))
    }
    for (const [i, server] of servers.entries()) await warm(generators[i]!, server)
    const before = await settledRss(servers)
    for (const [i, server] of servers.entries()) await hold(generators[i]!, server, CONNECTIONS)
    const after = await settledRss(servers)
    const memory = servers.map((_, i) => ({ before: before[i]!, after: after[i]! }))
    return report(memory, compared, peers.notes)
  } finally {
    for (const generator of generators) await generator.stop()
    for (const server of servers) await server.stop()
  }
}

/** Compiles the code of connecting and closing, so that it is not counted as memory of connections. */
async function warm(generator: Generator, server: RunningSystem): Promise<void> {
  for (let i = 0; i < WARMUP_TIMES; i++) {
    await generator.release(await hold(generator, server, WARMUP_CONNECTIONS))
  }
}

async function hold(generator: Generator, server: RunningSystem, count: number): Promise<number> {
  const target = targetOf(server)
  const job = await generator.prepare({ kind: 'connect', target, first: 0, count, concurrency: CONCURRENCY })
  const { count: opened } = await generator.run(job, UNTIL_DONE)
  if (opened !== count) throw new Error(`${server.name}: ${opened} of ${count} clients are connected`)
  return job
}

/** Runtimes give memory back when they are idle for a while: waits until all have. */
export async function settledRss(servers: readonly Pick<RunningSystem, 'pid'>[]): Promise<number[]> {
  const smallest = servers.map((server) => readRss(server.pid))
  let quiet = 0
  for (let poll = 0; poll < MOST_POLLS && quiet < QUIET_POLLS; poll++) {
    await Bun.sleep(POLL_MS)
    quiet++
    for (const [i, server] of servers.entries()) {
      const now = readRss(server.pid)
      if (now < smallest[i]! * 0.995) quiet = 0
      smallest[i] = Math.min(smallest[i]!, now)
    }
  }
  return servers.map((server) => readRss(server.pid))
}

function report(memory: Memory[], compared: ComparedName[], left: string[]): MeasurementResult {
  const each = memory.map(({ before, after }) => (after - before) / CONNECTIONS)
  const megabytes = (bytes: number) => (bytes / 1e6).toFixed(1)
  const kilobytes = (bytes: number) => bytes / 1024
  const rows = compared.map((system, i) => [
    TITLES[system],
    megabytes(memory[i]!.before),
    megabytes(memory[i]!.after),
    kilobytes(each[i]!).toFixed(1),
  ])
  const [own = Number.NaN, ...others] = each
  return {
    name: 'memory',
    tables: [
      { title: `Memory: ${CONNECTIONS} idle clients`, head: ['', 'MB before', 'MB with them', 'KB per client'], rows },
    ],
    comparisons: [
      comparison('memory, KB per idle client', 'the target itself', [kilobytes(own)], { bound: 'at most', value: 4 }),
      ...others.map((other, i) => comparison('memory', TITLES[compared[i + 1]!], [own / other], null)),
    ],
    charts: [
      {
        kind: 'bars',
        name: 'memory',
        title: 'Memory of an idle client',
        unit: 'KB resident',
        bars: compared.map((system, i) => ({ label: TITLES[system], value: kilobytes(each[i]!) })),
      },
    ],
    notes: left,
    raw: memory,
  }
}
