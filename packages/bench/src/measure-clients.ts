// What an idle client costs, from a thousand of them to nearly all that one process may open files for.
import { readFileSync } from 'node:fs'
import { Generator } from './generators.ts'
import { fitLine } from './line.ts'
import { settledRss } from './measure-memory.ts'
import { type Bench, type Comparison, comparison, type MeasurementResult, targetOf } from './measurement.ts'
import { cpuBetween, readCpu, readRss } from './proc.ts'
import { sized } from './quick.ts'
import { count } from './report.ts'
import { type RunningSystem, startSystem } from './systems.ts'

/** The line is laid through all but the last one, and has to foretell that. */
const STEPS = [1_000, 2_000, 5_000, 10_000, 18_000].map(sized)
const CONCURRENCY = 64
/** Each client is pinged once in this time, and answers. */
const IDLE_MS = sized(30_000)
const UNTIL_DONE = { window: 0, warmupMs: 0, measureMs: 0 }
const MODES = ['ringwire', 'extended'] as const
type Mode = (typeof MODES)[number]

interface Point {
  readonly clients: number
  /** Bytes resident, of the service's process. */
  readonly resident: number
  /** Bytes of the kernel, for both ends of each connection and whatever else changed meanwhile. */
  readonly kernel: number
  /** Of one core. */
  readonly share: number
}

export async function measureClients(bench: Bench): Promise<MeasurementResult> {
  const points = new Map<Mode, readonly Point[]>()
  for (const mode of MODES) points.set(mode, await pointsOf(bench, mode))
  return report(points)
}

async function pointsOf(bench: Bench, mode: Mode): Promise<readonly Point[]> {
  const server = await startSystem(mode, bench.placement.serverCore, bench.directory)
  const generator = new Generator(bench.placement.generatorCores[0] ?? null)
  try {
    // Compiles the code of connecting and closing, so that it is not counted as memory of connections.
    for (const _ of STEPS) await generator.release(await hold(generator, server, 0, STEPS[0]! / 5))
    const points = [await pointAt(server, 0)]
    for (const [i, clients] of STEPS.entries()) {
      bench.say(`clients: ${clients}, ${mode}`)
      const before = STEPS[i - 1] ?? 0
      await hold(generator, server, before, clients - before)
      points.push(await pointAt(server, clients))
    }
    return points
  } finally {
    await generator.stop()
    await server.stop()
  }
}

async function hold(generator: Generator, server: RunningSystem, first: number, clients: number): Promise<number> {
  const target = targetOf(server)
  const shape = { first, count: clients, concurrency: CONCURRENCY }
  const job = await generator.prepare({ kind: 'connect', target, ...shape })
  const { count: opened } = await generator.run(job, UNTIL_DONE)
  if (opened !== clients) throw new Error(`${server.name}: ${opened} of ${clients} clients are connected`)
  return job
}

async function pointAt(server: RunningSystem, clients: number): Promise<Point> {
  await settledRss([server])
  const before = readCpu(server.pid)
  await Bun.sleep(IDLE_MS)
  const share = cpuBetween(before, readCpu(server.pid)) / (IDLE_MS / 1000)
  return { clients, resident: readRss(server.pid), kernel: kernelBytes(), share }
}

/** What the kernel holds that it cannot give back: its sockets, and how it finds them. */
function kernelBytes(): number {
  const kilobytes = /^SUnreclaim:\s+(\d+) kB$/m.exec(readFileSync('/proc/meminfo', 'utf8'))
  if (kilobytes === null) throw new Error('No SUnreclaim in /proc/meminfo')
  return Number(kilobytes[1]) * 1024
}

function report(points: ReadonlyMap<Mode, readonly Point[]>): MeasurementResult {
  const rows = MODES.flatMap((mode) => {
    const [none, ...some] = points.get(mode)!
    return some.map((point) => rowOf(mode, none!, point))
  })
  const head = ['', 'clients', 'MB resident', 'KB each', 'kernel, KB each end', 'of a core', 'µs CPU each, a second']
  return {
    name: 'clients',
    tables: [{ title: 'Idle clients of one embedded node', head, rows }],
    comparisons: MODES.flatMap((mode) => comparisonsOf(mode, points.get(mode)!)),
    notes: [
      `Without a client: ${MODES.map((mode) => `${(points.get(mode)![0]!.share * 100).toFixed(1)} % of a core`).join(' and ')}.`,
    ],
    raw: Object.fromEntries(points),
  }
}

const named = { ringwire: 'base', extended: 'extended' }
const mostKb = { ringwire: 4, extended: 5 }

function rowOf(mode: Mode, none: Point, { clients, resident, kernel, share }: Point): string[] {
  return [
    named[mode],
    count(clients),
    (resident / 1e6).toFixed(1),
    ((resident - none.resident) / clients / 1024).toFixed(1),
    ((kernel - none.kernel) / clients / 2 / 1024).toFixed(1),
    `${(share * 100).toFixed(1)} %`,
    (((share - none.share) / clients) * 1e6).toFixed(2),
  ]
}

function comparisonsOf(mode: Mode, points: readonly Point[]): Comparison[] {
  const [none] = points
  const last = points.at(-1)!
  const eachKb = (last.resident - none!.resident) / last.clients / 1024
  const foretold = (figure: (point: Point) => number) => {
    const line = fitLine(points.slice(0, -1).map((point) => [point.clients, figure(point)]))
    return [figure(last) / (line.at0 + line.slope * last.clients)]
  }
  const goal = { bound: 'at most', value: mostKb[mode] } as const
  return [
    comparison(`KB per idle client, ${named[mode]}`, 'the target itself', [eachKb], goal),
    comparison(
      `memory of ${count(last.clients)} clients, ${named[mode]}`,
      'foretold by fewer',
      foretold((it) => it.resident),
      null,
    ),
    comparison(
      `CPU time of ${count(last.clients)} clients, ${named[mode]}`,
      'foretold by fewer',
      foretold((it) => it.share),
      null,
    ),
  ]
}
