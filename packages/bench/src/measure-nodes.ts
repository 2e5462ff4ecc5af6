// Relays between two nodes on PostgreSQL and Redis, beside those on one of them, and beside the embedded service.
import type { Result, Spread, Target } from './jobs/job.ts'
import { WIDEST_WINDOW } from './jobs/window.ts'
import { type Bench, type Comparison, comparison, type MeasurementResult, targetOf } from './measurement.ts'
import { missingForNodes, type Nodes, places, startNodes, startPostgres } from './nodes.ts'
import { type Part, type PartsLoad, partsBetween, readParts } from './parts.ts'
import { count, microseconds, percent } from './report.ts'
import { alternate, disturbance, isNoisy, type Rounds, roundNotes, series } from './rounds.ts'
import { LatencyHistogram, median, ratios } from './statistics.ts'
import { startSystem } from './systems.ts'

const PAIRS = 100
const WARMUP_MS = 100
const FIRST_WARMUP_MS = 1500
const WAYS = ['embedded', 'alone', 'together', 'apart'] as const
type Way = (typeof WAYS)[number]
const TITLES: Record<Way, string> = {
  embedded: 'embedded, one process',
  alone: 'Redis, one node has all',
  together: 'Redis, peers on one of two nodes',
  apart: 'Redis, peers on two nodes',
}

/** One run of a job, and what everybody used for it. */
interface Slice {
  result: Result
  parts: PartsLoad
}

interface Slices {
  saturated: Slice
  single: Slice
  /** One message in flight between the two of one pair, and nothing else to do. */
  hop: Slice
}

interface Lane {
  parts: readonly Part[]
  pairs: number
  pair: number
}

export async function measureNodes(bench: Bench): Promise<MeasurementResult> {
  const missing = missingForNodes('nodes')
  if (missing !== undefined) return { name: 'nodes', tables: [], comparisons: [], notes: [missing], raw: null }
  const where = places(bench.placement)
  const { postgres, stop } = await startPostgres(where.stores)
  const running: { stop(): Promise<void> }[] = []
  try {
    const nodes = await startNodes(postgres, where, bench.directory)
    running.push(nodes)
    const embedded = await startSystem('ringwire', bench.placement.serverCore, bench.directory)
    running.push(embedded)
    const alone: Part = { name: 'nodes', pid: embedded.pid, cores: where.nodes[0]! }
    const lanes = await prepareLanes(bench, nodes, targetOf(embedded), alone)
    const measure = (way: Way) => slices(bench, lanes.get(way)!)
    const rounds = await alternate(bench, bench.rounds, WAYS, measure, othersShares)
    for (const lane of lanes.values()) {
      await bench.generators[0].release(lane.pair)
      await bench.generators[0].release(lane.pairs)
    }
    return report(rounds, where.note)
  } finally {
    for (const each of running) await each.stop()
    await stop()
  }
}

async function prepareLanes(
  { generators: [generator] }: Bench,
  { target, parts }: Nodes,
  embedded: Target,
  embeddedPart: Part,
): Promise<Map<Way, Lane>> {
  const spread: Record<Way, { target: Target; parts: readonly Part[]; spread: Spread }> = {
    embedded: { target: embedded, parts: [embeddedPart], spread: 'together' },
    alone: { target: { ...target, morePorts: [] }, parts, spread: 'together' },
    together: { target, parts, spread: 'together' },
    apart: { target, parts, spread: 'apart' },
  }
  const lanes = new Map<Way, Lane>()
  for (const [i, way] of WAYS.entries()) {
    const firstPair = i * (PAIRS + 1)
    const base = { kind: 'relay', target: spread[way].target, spread: spread[way].spread } as const
    const pairs = await generator.prepare({ ...base, pairs: PAIRS, firstPair })
    const pair = await generator.prepare({ ...base, pairs: 1, firstPair: firstPair + PAIRS })
    await generator.run(pairs, { window: WIDEST_WINDOW, warmupMs: FIRST_WARMUP_MS, measureMs: 1 })
    lanes.set(way, { parts: spread[way].parts, pairs, pair })
  }
  return lanes
}

async function slices({ generators: [generator], seconds }: Bench, { parts, pairs, pair }: Lane): Promise<Slices> {
  const slice = async (job: number, window: number): Promise<Slice> => {
    const before = readParts(parts)
    const result = await generator.run(job, { window, warmupMs: WARMUP_MS, measureMs: seconds * 1000 })
    return { result, parts: partsBetween(before, readParts(parts)) }
  }
  return { saturated: await slice(pairs, WIDEST_WINDOW), single: await slice(pairs, 1), hop: await slice(pair, 1) }
}

const perSecond = ({ result }: Slice) => result.count / result.load.seconds
const perMessage = (slice: Slice, part: 'nodes' | 'redis') => slice.parts.cpuSeconds[part] / slice.result.received
const saturated = (value: Slices) => perSecond(value.saturated)
const single = (value: Slices) => perSecond(value.single)
const hop = (value: Slices) => new LatencyHistogram(value.hop.result.latencies).percentile(0.5)
const othersShares = ({ saturated, single, hop }: Slices) =>
  [saturated, single, hop].map((slice) => slice.parts.othersShare)

function report(rounds: Rounds<Way, Slices>, placement: string): MeasurementResult {
  const row = (way: Way) => {
    const middle = (figure: (value: Slices) => number) => median(series(rounds, way, figure))
    const latencies = new LatencyHistogram()
    for (const round of rounds.rounds) latencies.add(round.values[way].hop.result.latencies)
    return [
      TITLES[way],
      count(middle(saturated)),
      microseconds(middle((value) => perMessage(value.saturated, 'nodes'))),
      microseconds(middle((value) => perMessage(value.saturated, 'redis'))),
      percent(middle(({ saturated: { parts } }) => parts.cpuSeconds.nodes / parts.seconds)),
      percent(middle(({ saturated: { parts } }) => parts.cpuSeconds.redis / parts.seconds)),
      percent(middle((value) => value.saturated.result.generatorIdle)),
      count(middle(single)),
      `${latencies.percentile(0.5)} µs`,
      `${latencies.percentile(0.99)} µs`,
    ]
  }
  const head = [
    ...['', 'msg/s', 'µs CPU nodes', 'Redis', 'cores, nodes', 'Redis', 'idle gen.'],
    ...['one in flight', 'hop p50', 'p99'],
  ]
  return {
    name: 'nodes',
    tables: [{ title: `Nodes: ${PAIRS} pairs, as in the relay; hop: one message in all`, head, rows: WAYS.map(row) }],
    comparisons: compare(rounds),
    notes: [placement, ...roundNotes(rounds), disturbance(rounds, othersShares)],
    raw: rounds,
  }
}

function compare(rounds: Rounds<Way, Slices>): Comparison[] {
  const over = (own: Way, other: Way, figure: (value: Slices) => number) =>
    ratios(series(rounds, own, figure), series(rounds, other, figure))
  const noisy = isNoisy(rounds, othersShares)
  const apart = 'relay across nodes'
  const redis = 'relay on one node, logs in Redis'
  return [
    comparison(`${apart}, saturated`, 'the same nodes, peers on one', over('apart', 'together', saturated), {
      bound: 'at least',
      value: 0.6,
    }),
    comparison(`${apart}, one in flight`, 'the same nodes, peers on one', over('apart', 'together', single), null),
    comparison('hop across nodes, p50', 'the same nodes, peers on one', over('apart', 'together', hop), {
      bound: 'at most',
      value: 3,
    }),
    comparison(`${redis}, saturated`, 'embedded', over('alone', 'embedded', saturated), {
      bound: 'at least',
      value: 0.5,
    }),
    comparison(`${redis}, one in flight`, 'embedded', over('alone', 'embedded', single), null),
    comparison('hop on one node, p50, log in Redis', 'embedded', over('together', 'embedded', hop), null),
  ].map((each) => ({ ...each, noisy }))
}
