// Whole calls with one, two and three nodes: what a call costs the nodes, Redis and PostgreSQL.
import { MESSAGES_PER_CALL } from './jobs/call-script.ts'
import type { Result } from './jobs/job.ts'
import { type Bench, type Comparison, comparison, type MeasurementResult } from './measurement.ts'
import { missingForNodes, type Nodes, sharedPlaces, startNodes, startPostgres } from './nodes.ts'
import { PARTS, type Part, type PartName, type PartsLoad, partsBetween, readParts } from './parts.ts'
import { count, percent } from './report.ts'
import { alternate, disturbance, isNoisy, type Rounds, roundNotes, series } from './rounds.ts'
import { median, ratios } from './statistics.ts'

/** So many at a time: each node of the callers with each of the callees as often, of one, two and three nodes. */
const AT_A_TIME = 36
const CALLS = 20 * AT_A_TIME
/** The first thousands of calls compile the code, on each node. */
const WARMUP_RUNS = 4
const COUNTS = ['1', '2', '3'] as const
type Count = (typeof COUNTS)[number]
const IDLE_MS = 2000
const UNTIL_DONE = { window: 0, warmupMs: 0, measureMs: 0 }
const PART_TITLES: Record<PartName, string> = { nodes: 'nodes', redis: 'Redis', postgres: 'PostgreSQL' }
/** Of the CPU time per call, over that with one node. */
const GOAL = { bound: 'at most', value: 1.2 } as const

interface Slice {
  result: Result
  parts: PartsLoad
}

interface Lane {
  job: number
  parts: readonly Part[]
}

export async function measureScale(bench: Bench): Promise<MeasurementResult> {
  const missing = missingForNodes('scale')
  if (missing !== undefined) return { name: 'scale', tables: [], comparisons: [], notes: [missing], raw: null }
  const { stores, note } = sharedPlaces(bench.placement, 1)
  const { postgres, stop } = await startPostgres(stores)
  const running = new Map<Count, Nodes>()
  try {
    for (const n of COUNTS) {
      running.set(n, await startNodes(postgres, sharedPlaces(bench.placement, Number(n)), bench.directory))
    }
    const lanes = await prepareLanes(bench, running)
    const idle = await idleOf(running)
    const rounds = await alternate(bench, bench.rounds, COUNTS, (n) => run(bench, lanes.get(n)!), othersShares)
    for (const { job } of lanes.values()) await bench.generators[0].release(job)
    return report(rounds, [note, idle])
  } finally {
    for (const nodes of running.values()) await nodes.stop()
    await stop()
  }
}

async function prepareLanes(bench: Bench, running: ReadonlyMap<Count, Nodes>): Promise<Map<Count, Lane>> {
  const lanes = new Map<Count, Lane>()
  for (const [n, { target, parts }] of running) {
    const base = { kind: 'call', target, calls: CALLS, pairs: AT_A_TIME, spread: 'mixed' } as const
    const lane = { job: await bench.generators[0].prepare(base), parts }
    lanes.set(n, lane)
    for (let i = 0; i < WARMUP_RUNS * Number(n); i++) await run(bench, lane)
  }
  return lanes
}

async function run(bench: Bench, { job, parts }: Lane): Promise<Slice> {
  const before = readParts(parts)
  const result = await bench.generators[0].run(job, UNTIL_DONE)
  return { result, parts: partsBetween(before, readParts(parts)) }
}

/** What nobody's calls cost: all the nodes stay while one set of them works. */
async function idleOf(running: ReadonlyMap<Count, Nodes>): Promise<string> {
  const parts = [...running.values()].flatMap((nodes) => nodes.parts).filter(({ name }) => name !== 'postgres')
  const [postgres] = [...running.values()].flatMap((nodes) => nodes.parts).filter(({ name }) => name === 'postgres')
  const all = [...parts, postgres!]
  const before = readParts(all)
  await Bun.sleep(IDLE_MS)
  const { seconds, cpuSeconds } = partsBetween(before, readParts(all))
  const shares = PARTS.map((part) => `${PART_TITLES[part]} ${((cpuSeconds[part] / seconds) * 1000).toFixed(1)} ms`)
  return `With no call at all the six nodes, three Redis and one PostgreSQL use a second: ${shares.join(', ')}.`
}

const perCall = (part: PartName) => (slice: Slice) => slice.parts.cpuSeconds[part] / slice.result.count
const inAll = (slice: Slice) => PARTS.reduce((total, part) => total + perCall(part)(slice), 0)
const perSecond = ({ result }: Slice) => result.count / result.load.seconds
const othersShares = ({ parts }: Slice) => [parts.othersShare]

function report(rounds: Rounds<Count, Slice>, notes: string[]): MeasurementResult {
  const row = (n: Count) => {
    const us = (figure: (slice: Slice) => number) => count(median(series(rounds, n, figure)) * 1e6)
    const share =
      (part: PartName) =>
      ({ parts }: Slice) =>
        parts.cpuSeconds[part] / parts.seconds
    return [
      n,
      count(median(series(rounds, n, perSecond))),
      us(inAll),
      ...PARTS.map((part) => us(perCall(part))),
      ...PARTS.map((part) => percent(median(series(rounds, n, share(part))))),
    ]
  }
  const titles = PARTS.map((part) => PART_TITLES[part])
  return {
    name: 'scale',
    tables: [
      {
        title: `Scale: ${CALLS} calls a round, ${AT_A_TIME} at a time, ${MESSAGES_PER_CALL} client messages each`,
        head: ['nodes', 'calls/s', 'µs CPU per call', ...titles, ...titles.map((title) => `cores, ${title}`)],
        rows: COUNTS.map(row),
      },
    ],
    comparisons: compare(rounds),
    notes: [...notes, bottleneck(rounds), ...roundNotes(rounds), disturbance(rounds, othersShares)],
    raw: rounds,
  }
}

function compare(rounds: Rounds<Count, Slice>): Comparison[] {
  const noisy = isNoisy(rounds, othersShares)
  const over = (n: Count, figure: (slice: Slice) => number) =>
    ratios(series(rounds, n, figure), series(rounds, '1', figure))
  return (['2', '3'] as const).flatMap((n) =>
    [
      comparison(`CPU time of a call, ${n} nodes`, '1 node', over(n, inAll), GOAL),
      ...PARTS.map((part) =>
        comparison(`… of it ${PART_TITLES[part]}, ${n} nodes`, '1 node', over(n, perCall(part)), GOAL),
      ),
    ].map((each) => ({ ...each, noisy })),
  )
}

/** Nodes and backends of PostgreSQL are added with the load; a Redis server is one thread. */
function bottleneck(rounds: Rounds<Count, Slice>): string {
  const of = (part: PartName) => median(series(rounds, '3', perCall(part)))
  const limit = 1 / of('redis')
  const cores = (part: PartName) => (limit * of(part)).toFixed(1)
  return (
    `One core is all that a Redis server uses: full at ${count(limit)} such calls a second, when the nodes need ` +
    `${cores('nodes')} cores and PostgreSQL ${cores('postgres')}.`
  )
}
