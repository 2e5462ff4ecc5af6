// Fifty calls at a steady pace, first by themselves and then with each of the floods: what the calls feel, and what stays in
// memory.
import { loadavg } from 'node:os'
import { Generator } from './generators.ts'
import { FLOODS, type FloodName, type Result, type Shape } from './jobs/job.ts'
import { type Bench, comparison, type Goal, type MeasurementResult, targetOf } from './measurement.ts'
import { type Load, readRss } from './proc.ts'
import { count } from './report.ts'
import { median, percentile, ratios } from './statistics.ts'
import { startSystem } from './systems.ts'

const CALLS = 50
const WARMUP_MS = 1000
/** Some of what a flood starts takes 3 s to be decided. */
const SLICE_MS = 4000
/** The runtime takes 12 s to cut a connection whose headers do not end. */
const HEADERS_MS = 14_000
const MOST_ROUNDS = 3
/** Ten seconds together with the quiet slice: limits count for that long, and each flood has them anew. */
const PAUSE_MS = 6000
const SETTLES_WITHIN_MS = 20_000
const SAMPLE_MS = 100
const LATENCY_GOAL: Goal = { bound: 'at most', value: 5 }
const MEMORY_GOAL: Goal = { bound: 'at most', value: 1.2 }

const TITLES: Record<FloodName, string> = {
  arrays: 'arrays in arrays, 63 KB, 20 sockets',
  queue: 'a queue behind a silent holder, 60 KB each',
  messages: 'messages over the limit, 20 sockets',
  pongs: 'pongs that nobody asked for, 20 sockets',
  busy: 'connect, busy, drop',
  reconnects: 'connect, speak, drop, in a call',
  health: '/healthz pipelined, 50 connections',
  history: 'history pages, 16 connections',
  headers: 'headers without an end, 500 connections',
  upgrades: 'upgrades without a good token, 50 connections',
}

interface Reading {
  quiet: number[]
  flooded: number[]
  flood: Result
  /** What the service did for the calls without the flood, and with it. */
  quietLoad: Load
  floodedLoad: Load
  before: number
  most: number
  after: number
}

export async function measureFloods(bench: Bench): Promise<MeasurementResult> {
  const enemy = new Generator(bench.placement.generatorCores[0] ?? null)
  // If he has a core with the calls, what he does there is not what the service feels.
  enemy.giveWay()
  const readings = new Map<FloodName, Reading[]>()
  const busy: number[] = []
  try {
    for (const flood of FLOODS) {
      bench.say(`floods: ${TITLES[flood]} …`)
      readings.set(flood, await beside(bench, enemy, flood))
      busy.push(loadavg()[0]!)
    }
  } finally {
    await enemy.stop()
  }
  return report(readings, busy)
}

/** A service of its own for each flood, so that what stays in memory is that flood's. */
async function beside(bench: Bench, enemy: Generator, flood: FloodName): Promise<Reading[]> {
  const service = await startSystem('limited', bench.placement.serverCore, bench.directory)
  const [people] = bench.generators
  try {
    const target = targetOf(service)
    const talk = await people.prepare({ kind: 'talk', target, pairs: CALLS })
    const attack = await enemy.prepare({ kind: 'flood', target, flood })
    // What refuses is compiled in the first flood, which takes longer than it ever does again.
    await Promise.all([people.run(talk, slice(WARMUP_MS)), enemy.run(attack, slice(WARMUP_MS))])
    const readings: Reading[] = []
    for (let round = 0; round < Math.min(bench.rounds, MOST_ROUNDS); round++) {
      await Bun.sleep(PAUSE_MS)
      const quiet = await people.run(talk, slice(SLICE_MS))
      const before = readRss(service.pid)
      const highest = watchRss(service.pid)
      const during = slice(flood === 'headers' ? HEADERS_MS : SLICE_MS)
      const [flooded, result] = await Promise.all([people.run(talk, during), enemy.run(attack, during)])
      const most = highest()
      const after = await settled(service.pid, before)
      readings.push({
        quiet: quiet.samples!,
        flooded: flooded.samples!,
        flood: result,
        quietLoad: quiet.load,
        floodedLoad: flooded.load,
        before,
        most,
        after,
      })
    }
    await people.release(talk)
    await enemy.release(attack)
    return readings
  } finally {
    await service.stop()
  }
}

function slice(measureMs: number): Shape {
  return { window: 1, warmupMs: 0, measureMs }
}

function watchRss(pid: number): () => number {
  let most = readRss(pid)
  const timer = setInterval(() => {
    most = Math.max(most, readRss(pid))
  }, SAMPLE_MS)
  return () => {
    clearInterval(timer)
    return most
  }
}

/** The least within the time that memory has to be back; at once where it is. */
async function settled(pid: number, before: number): Promise<number> {
  const deadline = performance.now() + SETTLES_WITHIN_MS
  let least = readRss(pid)
  while (least > before * MEMORY_GOAL.value && performance.now() < deadline) {
    await Bun.sleep(SAMPLE_MS)
    least = Math.min(least, readRss(pid))
  }
  return least
}

const milliseconds = (us: number) => `${(us / 1000).toFixed(us < 100_000 ? 1 : 0)} ms`
const megabytes = (bytes: number) => `${Math.round(bytes / 1e6)} MB`
const ofCore = ({ serverCpuSeconds, seconds }: Load) => (100 * serverCpuSeconds) / seconds
const percent = (share: number) => `${share.toFixed(1)} %`
const p99 = (samples: readonly number[]) => percentile(samples, 0.99)

function report(readings: Map<FloodName, Reading[]>, busy: number[]): MeasurementResult {
  const all = [...readings]
  const rows = all.map(([flood, of]) => {
    const middle = (figure: (reading: Reading) => number) => median(of.map(figure))
    return [
      TITLES[flood],
      count(middle(({ flood }) => flood.count / flood.load.seconds)),
      count(middle(({ flood }) => flood.refused ?? 0)),
      milliseconds(middle(({ quiet }) => p99(quiet))),
      milliseconds(middle(({ flooded }) => percentile(flooded, 0.5))),
      milliseconds(middle(({ flooded }) => p99(flooded))),
      percent(middle(({ quietLoad }) => ofCore(quietLoad))),
      percent(middle(({ floodedLoad }) => ofCore(floodedLoad))),
      megabytes(of[0]!.before),
      megabytes(Math.max(...of.map(({ most }) => most))),
      megabytes(of.at(-1)!.after),
    ]
  })
  const latency = all.map(([flood, of]) =>
    comparison(
      `p99 beside: ${TITLES[flood]}`,
      'p99 quiet',
      ratios(
        of.map(({ flooded }) => p99(flooded)),
        of.map(({ quiet }) => p99(quiet)),
      ),
      LATENCY_GOAL,
    ),
  )
  const memory = all.map(([flood, of]) =>
    comparison(
      `memory after: ${TITLES[flood]}`,
      'before',
      of.map(({ before, after }) => after / before),
      MEMORY_GOAL,
    ),
  )
  return {
    name: 'floods',
    tables: [
      {
        title: `Floods: ${CALLS} calls at 20 messages a second each, beside what one enemy sends`,
        head: ['', 'sent/s', 'refused', 'quiet p99', 'p50', 'p99', 'quiet CPU', 'CPU', 'memory', 'most', 'after'],
        rows,
      },
    ],
    comparisons: [...latency, ...memory],
    notes: [`The load of the machine was ${busy.map((load) => load.toFixed(1)).join(', ')} while this was measured.`],
    raw: all,
  }
}
