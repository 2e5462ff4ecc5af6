// Whole calls with one, two and three nodes: what a call costs the nodes, Redis and PostgreSQL.
import { AFTERMATH_MS } from './jobs/call.ts'
import { MESSAGES_PER_CALL } from './jobs/call-script.ts'
import type { CallJob, Result, Spread } from './jobs/job.ts'
import { type Bench, type Comparison, comparison, type MeasurementResult } from './measurement.ts'
import { missingForNodes, type Nodes, sharedPlaces, startNodes, startPostgres } from './nodes.ts'
import { PARTS, type Part, type PartName, type PartsLoad, partsBetween, readParts } from './parts.ts'
import { count, percent } from './report.ts'
import { alternate, disturbance, isNoisy, type Rounds, roundNotes, series } from './rounds.ts'
import { median, ratios } from './statistics.ts'
import { type TripCounts, tripsEach } from './trips.ts'

/** The number of pairs on each node: every node of a caller with every node of a callee as often. */
const PAIRS = 36
/** What each node is offered; three of them stay below what the load's core and the others can do. */
const CALLS_A_SECOND = 120
const CALLS = 8 * PAIRS
/** The first thousands of calls compile the code, on each node. */
const WARMUP_CALLS = 21 * PAIRS
const WARMUP_RUNS = 4
const TRIP_RUNS = 4
const COUNTS = [1, 2, 3] as const
type Count = (typeof COUNTS)[number]
const WAYS = ['one', 'two', 'three', 'three within', 'one full', 'three full'] as const
type Way = (typeof WAYS)[number]
interface Shape {
  title: string
  nodes: Count
  /** `mixed`: half of the calls are across two nodes, two thirds across three. */
  spread: Spread
  /** False: each pair calls again as soon as its call is over. */
  isPaced: boolean
}
const SHAPES: Record<Way, Shape> = {
  one: { title: '1', nodes: 1, spread: 'together', isPaced: true },
  two: { title: '2', nodes: 2, spread: 'mixed', isPaced: true },
  three: { title: '3', nodes: 3, spread: 'mixed', isPaced: true },
  'three within': { title: '3, no call across', nodes: 3, spread: 'together', isPaced: true },
  'one full': { title: '1, back to back', nodes: 1, spread: 'together', isPaced: false },
  'three full': { title: '3, back to back', nodes: 3, spread: 'mixed', isPaced: false },
}
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
      running.set(n, await startNodes(postgres, sharedPlaces(bench.placement, n), bench.directory))
    }
    const lanes = await prepareLanes(bench, running)
    const idle = await idleOf(running)
    const measure = (way: Way) => runOnce(bench, lanes.get(way)!)
    const rounds = await alternate(bench, bench.rounds, WAYS, measure, othersShares)
    const trips = new Map<Way, TripCounts>()
    for (const way of WAYS) trips.set(way, await tripsOf(bench, running.get(SHAPES[way].nodes)!, lanes.get(way)!))
    for (const { job } of lanes.values()) await bench.generators[0].release(job)
    return report(rounds, trips, [note, idle])
  } finally {
    for (const nodes of running.values()) await nodes.stop()
    await stop()
  }
}

async function prepareLanes(bench: Bench, running: ReadonlyMap<Count, Nodes>): Promise<Map<Way, Lane>> {
  const lanes = new Map<Way, Lane>()
  for (const [i, way] of WAYS.entries()) {
    const { nodes, spread, isPaced } = SHAPES[way]
    // Participants of their own: all stay connected.
    const pairs = { pairs: nodes * PAIRS, firstPair: i * 1000, spread }
    const pace = isPaced ? { perSecond: nodes * CALLS_A_SECOND } : {}
    lanes.set(way, await prepareLane(bench, running.get(nodes)!, { ...pairs, calls: nodes * CALLS, ...pace }))
  }
  for (const [i, nodes] of COUNTS.entries()) {
    const pairs = { pairs: nodes * PAIRS, firstPair: (WAYS.length + i) * 1000 }
    const lane = await prepareLane(bench, running.get(nodes)!, {
      ...pairs,
      spread: 'mixed',
      calls: nodes * WARMUP_CALLS,
    })
    for (let run = 0; run < WARMUP_RUNS; run++) await runOnce(bench, lane)
    await bench.generators[0].release(lane.job)
  }
  return lanes
}

async function prepareLane(
  bench: Bench,
  { target, parts }: Nodes,
  job: Omit<CallJob, 'kind' | 'target'>,
): Promise<Lane> {
  return { job: await bench.generators[0].prepare({ kind: 'call', target, ...job }), parts }
}

async function runOnce(bench: Bench, { job, parts }: Lane): Promise<Slice> {
  const before = readParts(parts)
  const result = await bench.generators[0].run(job, UNTIL_DONE)
  return { result, parts: partsBetween(before, readParts(parts)) }
}

async function tripsOf(bench: Bench, { trips }: Nodes, lane: Lane): Promise<TripCounts> {
  const before = await trips.read()
  let calls = 0
  for (let i = 0; i < TRIP_RUNS; i++) calls += (await runOnce(bench, lane)).result.count
  return tripsEach(before, await trips.read(), calls)
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
/** The wait for what comes after the last call is no time of calls. */
const perSecond = ({ result }: Slice) => result.count / (result.load.seconds - AFTERMATH_MS / 1000)
const othersShares = ({ parts }: Slice) => [parts.othersShare]
const nodesOf = (way: Way) => SHAPES[way].title.replace(/^\d/, (n) => (n === '1' ? '1 node' : `${n} nodes`))

function report(rounds: Rounds<Way, Slice>, trips: ReadonlyMap<Way, TripCounts>, notes: string[]): MeasurementResult {
  const row = (way: Way) => {
    const us = (figure: (slice: Slice) => number) => count(median(series(rounds, way, figure)) * 1e6)
    const share =
      (part: PartName) =>
      ({ parts }: Slice) =>
        parts.cpuSeconds[part] / parts.seconds
    return [
      SHAPES[way].title,
      count(median(series(rounds, way, perSecond))),
      us(inAll),
      ...PARTS.map((part) => us(perCall(part))),
      ...PARTS.map((part) => percent(median(series(rounds, way, share(part))))),
      ...Object.values(trips.get(way)!).map((count: number) => count.toFixed(1)),
    ]
  }
  const titles = PARTS.map((part) => PART_TITLES[part])
  return {
    name: 'scale',
    tables: [
      {
        title: `Scale: ${CALLS_A_SECOND} calls a second per node, ${MESSAGES_PER_CALL} client messages each`,
        head: [
          ...['nodes', 'calls/s', 'µs CPU per call', ...titles, ...titles.map((title) => `cores, ${title}`)],
          ...['scripts per call', 'published', 'transactions'],
        ],
        rows: WAYS.map(row),
      },
    ],
    comparisons: compare(rounds),
    charts: [
      {
        kind: 'bars',
        name: 'components',
        title: 'CPU time of a call, by component',
        unit: 'µs; one node and three, each offered as many calls a second',
        bars: (['one', 'three'] as const).flatMap((way) =>
          PARTS.map((part) => ({
            label: `${nodesOf(way)}: ${PART_TITLES[part]}`,
            value: median(series(rounds, way, perCall(part))) * 1e6,
          })),
        ),
      },
      {
        kind: 'bars',
        name: 'calls',
        title: 'Calls between nodes',
        unit: 'calls per second',
        bars: WAYS.map((way) => ({ label: nodesOf(way), value: median(series(rounds, way, perSecond)) })),
      },
    ],
    notes: [...notes, bottleneck(rounds), ...roundNotes(rounds), disturbance(rounds, othersShares)],
    raw: { rounds, trips: Object.fromEntries(trips) },
  }
}

function compare(rounds: Rounds<Way, Slice>): Comparison[] {
  const noisy = isNoisy(rounds, othersShares)
  const over = (way: Way, figure: (slice: Slice) => number) =>
    ratios(series(rounds, way, figure), series(rounds, 'one', figure))
  const others = WAYS.filter((way) => way !== 'one')
  return others.flatMap((way) => {
    const { title, spread, isPaced } = SHAPES[way]
    const goal = isPaced && spread === 'mixed' ? GOAL : null
    const own = PARTS.map((part) =>
      comparison(`… of it ${PART_TITLES[part]}`, '1 node', over(way, perCall(part)), goal),
    )
    const all = comparison(`CPU time of a call, nodes: ${title}`, '1 node', over(way, inAll), goal)
    return [all, ...own].map((each) => ({ ...each, noisy }))
  })
}

/** Nodes and backends of PostgreSQL are added with the load; a Redis server is one thread. */
function bottleneck(rounds: Rounds<Way, Slice>): string {
  const of = (part: PartName) => median(series(rounds, 'three full', perCall(part)))
  const limit = 1 / of('redis')
  const cores = (part: PartName) => (limit * of(part)).toFixed(1)
  return (
    `One core is all that a Redis server uses: full at ${count(limit)} such calls a second, when the nodes need ` +
    `${cores('nodes')} cores and PostgreSQL ${cores('postgres')}.`
  )
}
