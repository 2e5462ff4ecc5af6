// Candidates per second between 100 pairs: saturated, with four messages in flight per pair, and with one. And how long a
// hop takes where ten are in flight in all.
import type { Result, Shape } from './jobs/job.ts'
import { WIDEST_WINDOW } from './jobs/window.ts'
import { type Bench, type Comparison, comparison, type Goal, type MeasurementResult, targetOf } from './measurement.ts'
import { findPeers } from './peers.ts'
import { readRss } from './proc.ts'
import { sized } from './quick.ts'
import { count, microseconds, percent } from './report.ts'
import { alternate, disturbance, type Rounds, roundNotes, series } from './rounds.ts'
import { LatencyHistogram, median, ratios } from './statistics.ts'
import { type AnySystem, type ComparedName, type ReferenceName, SYSTEMS, startSystem, TITLES } from './systems.ts'

const PAIRS = sized(100)
const FEW_PAIRS = 10
const WARMUP_MS = 100
const FIRST_WARMUP_MS = sized(1500)
const REFERENCE_ROUNDS = sized(3)
const REFERENCES: ReferenceName[] = ['bare-coalesced', 'bare-forward']
const FEW = 4
/** After this time of FEW in flight the resident memory is read. */
const LONG_MS = sized(10_000)
const MOST_RESIDENT_MB = 250
/** Of Ringwire over each of the others; those without one have no target. */
type Goals = Partial<Record<ComparedName, Goal>>
const GOALS: Goals = {
  peerserver: { bound: 'at least', value: 4.5 },
  bare: { bound: 'at least', value: 2.2 },
}
const FEW_GOALS: Goals = {
  peerserver: { bound: 'at least', value: 3 },
  bare: { bound: 'at least', value: 1.5 },
}
const SINGLE_GOALS: Goals = { bare: { bound: 'at least', value: 0.9 } }
/** Over the bare relay that writes once a turn, too, as Ringwire does. */
const CPU_GOAL: Goal = { bound: 'at most', value: 1.5 }

interface Slices {
  saturated: Result
  few: Result
  single: Result
  ten: Result
}

/** The same system, with many pairs and with few. */
interface Jobs {
  readonly all: number
  readonly few: number
}

export async function measureRelay(bench: Bench): Promise<MeasurementResult> {
  const peers = findPeers()
  const compared = [...SYSTEMS, ...peers.here] as const
  const all: AnySystem[] = [...compared, ...REFERENCES]
  const jobs = new Map<AnySystem, Jobs>()
  const running = []
  try {
    for (const system of all) {
      const server = await startSystem(system, bench.placement.serverCore, bench.directory)
      running.push(server)
      const target = targetOf(server)
      const [generator] = bench.generators
      const all = await generator.prepare({ kind: 'relay', target, pairs: PAIRS, firstPair: 0 })
      const few = await generator.prepare({ kind: 'relay', target, pairs: FEW_PAIRS, firstPair: PAIRS })
      jobs.set(system, { all, few })
      await generator.run(all, shape(WIDEST_WINDOW, FIRST_WARMUP_MS, 1))
    }
    const measure = (system: AnySystem) => slices(bench, jobs.get(system)!)
    const rounds = await alternate(bench, bench.rounds, compared, measure, othersShares)
    const references = await alternate(bench, REFERENCE_ROUNDS, REFERENCES, measure)
    await bench.generators[0].run(jobs.get('ringwire')!.all, shape(FEW, WARMUP_MS, LONG_MS))
    const residentMb = readRss(running[all.indexOf('ringwire')]!.pid) / 1e6
    for (const { all, few } of jobs.values()) for (const job of [all, few]) await bench.generators[0].release(job)
    return report({ compared, rounds, references, residentMb, left: peers.notes })
  } finally {
    for (const server of running) await server.stop()
  }
}

function shape(window: number, warmupMs: number, measureMs: number): Shape {
  return { window, warmupMs, measureMs }
}

async function slices(bench: Bench, { all, few }: Jobs): Promise<Slices> {
  const measureMs = bench.seconds * 1000
  const run = (job: number, window: number) => bench.generators[0].run(job, shape(window, WARMUP_MS, measureMs))
  return {
    saturated: await run(all, WIDEST_WINDOW),
    few: await run(all, FEW),
    single: await run(all, 1),
    ten: await run(few, 1),
  }
}

const perSecond = (result: Result) => result.count / result.load.seconds
const saturated = (value: Slices) => perSecond(value.saturated)
const cpuOfMessage = (value: Slices) => value.saturated.load.serverCpuSeconds / value.saturated.count
const few = (value: Slices) => perSecond(value.few)
const single = (value: Slices) => perSecond(value.single)
const tenP99 = ({ ten }: Slices) => hopsOf(ten).percentile(0.99)
const othersShares = ({ saturated, few, single, ten }: Slices) =>
  [saturated, few, single, ten].map(({ load }) => load.othersShare)

interface Outcome {
  /** Ringwire is the first one. */
  compared: readonly [ComparedName, ...ComparedName[]]
  rounds: Rounds<ComparedName, Slices>
  references: Rounds<ReferenceName, Slices>
  residentMb: number
  /** Lines about the peers that are left out. */
  left: string[]
}

function report({ compared, rounds, references, residentMb, left }: Outcome): MeasurementResult {
  const [own, ...others] = compared
  const compare = (what: string, figure: (value: Slices) => number, goals: Goals): Comparison[] =>
    others.map((system) => {
      const against = ratios(series(rounds, own, figure), series(rounds, system, figure))
      return comparison(what, TITLES[system], against, goals[system] ?? null)
    })
  // Measured after the rounds, and less often: compared with the median.
  const coalesced = median(series(references, 'bare-coalesced', cpuOfMessage))
  const overCoalesced = series(rounds, own, cpuOfMessage).map((value) => value / coalesced)
  const rows = [
    ...compared.map((system) => row(TITLES[system], rounds, system)),
    ...REFERENCES.map((system) => row(`(${TITLES[system]})`, references, system)),
  ]
  const head = [
    '',
    'msg/s',
    'server CPU',
    'µs CPU/msg',
    'idle gen.',
    'four in flight',
    'one in flight',
    'server CPU',
    'idle gen.',
    'p50',
    'p99',
    'ten in all: p50',
    'p99',
    'B in',
    'B out',
  ]
  return {
    name: 'relay',
    tables: [
      {
        title: `Relay: ${PAIRS} pairs, ${WIDEST_WINDOW} messages in flight per pair, then four, then one; ${FEW_PAIRS} pairs with one`,
        head,
        rows,
      },
    ],
    comparisons: [
      ...compare('relay, saturated', saturated, GOALS),
      ...compare('relay, four in flight', few, FEW_GOALS),
      ...compare('relay, one in flight', single, SINGLE_GOALS),
      // Lower is better.
      ...compare('relay, saturated, CPU time of a message', cpuOfMessage, {}),
      comparison('relay, saturated, CPU time of a message', TITLES['bare-coalesced'], overCoalesced, CPU_GOAL),
      ...compare('p99 of a hop, ten in flight in all', tenP99, {}),
      comparison(
        'MB resident after ten seconds, four in flight',
        `${MOST_RESIDENT_MB} MB`,
        [residentMb / MOST_RESIDENT_MB],
        {
          bound: 'at most',
          value: 1,
        },
      ),
    ],
    charts: [
      {
        kind: 'bars',
        name: 'relay',
        title: 'Relay, saturated',
        unit: 'messages per second',
        bars: compared.map((system) => ({ label: TITLES[system], value: median(series(rounds, system, saturated)) })),
      },
    ],
    notes: [...roundNotes(rounds), disturbance(rounds, othersShares), delivered(rounds), ...left],
    raw: { rounds, references, residentMb },
  }
}

function row<Key extends AnySystem>(title: string, rounds: Rounds<Key, Slices>, system: Key): string[] {
  const middle = (figure: (value: Slices) => number) => median(series(rounds, system, figure))
  const first = rounds.rounds[0]!.values[system].saturated
  const values = rounds.rounds.map((round) => round.values[system])
  const latencies = hopsOf(...values.map((value) => value.single))
  const ofTen = hopsOf(...values.map((value) => value.ten))
  return [
    title,
    count(middle(saturated)),
    percent(middle((value) => value.saturated.load.serverShare)),
    microseconds(middle(cpuOfMessage)),
    percent(middle((value) => value.saturated.generatorIdle)),
    count(middle(few)),
    count(middle(single)),
    percent(middle((value) => value.single.load.serverShare)),
    percent(middle((value) => value.single.generatorIdle)),
    `${latencies.percentile(0.5)} µs`,
    `${latencies.percentile(0.99)} µs`,
    `${ofTen.percentile(0.5)} µs`,
    `${ofTen.percentile(0.99)} µs`,
    String(first.clientFrameBytes),
    String(first.serverFrameBytes),
  ]
}

function hopsOf(...results: readonly Result[]): LatencyHistogram {
  const hops = new LatencyHistogram()
  for (const { latencies } of results) hops.add(latencies)
  return hops
}

function delivered(rounds: Rounds<ComparedName, Slices>): string {
  const results = rounds.rounds
    .flatMap((round) => Object.values(round.values))
    .flatMap((v) => [v.saturated, v.few, v.single, v.ten])
  const sent = results.reduce((total, result) => total + result.sent, 0)
  const received = results.reduce((total, result) => total + result.received, 0)
  return `Of ${sent} messages that were sent ${received} were delivered, none twice.`
}
