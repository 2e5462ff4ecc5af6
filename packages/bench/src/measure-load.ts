// How long a hop takes at a load that does not wait for the server: messages leave at fixed times.
import type { Chart } from './chart.ts'
import type { Result, Shape } from './jobs/job.ts'
import { WIDEST_WINDOW } from './jobs/window.ts'
import { type Bench, comparison, type MeasurementResult, targetOf } from './measurement.ts'
import { sized } from './quick.ts'
import { count, percent } from './report.ts'
import { alternate, disturbance, type Rounds, roundNotes, series } from './rounds.ts'
import { LatencyHistogram, LONGEST_US, median, ratios } from './statistics.ts'
import { startSystem, TITLES } from './systems.ts'

const PAIRS = sized(100)
const WARMUP_MS = 200
const FIRST_WARMUP_MS = sized(1500)
/** A thousandth of the messages has to be some, also at the lowest load. */
const LEAST_MS = sized(1000)
/** Of the rate of the saturated relay of the same round. */
const SHARES = [0.1, 0.25, 0.5, 0.75, 0.9] as const
const HALF = SHARES.indexOf(0.5)
const LOADED = ['ringwire', 'bare', 'peerserver'] as const
type Loaded = (typeof LOADED)[number]

interface Slices {
  saturated: Result
  /** By share. */
  loads: Result[]
}

export async function measureLoad(bench: Bench): Promise<MeasurementResult> {
  const [generator] = bench.generators
  const jobs = new Map<Loaded, number>()
  const running = []
  try {
    for (const system of LOADED) {
      const server = await startSystem(system, bench.placement.serverCore, bench.directory)
      running.push(server)
      const job = await generator.prepare({ kind: 'relay', target: targetOf(server), pairs: PAIRS, firstPair: 0 })
      jobs.set(system, job)
      await generator.run(job, { window: WIDEST_WINDOW, warmupMs: FIRST_WARMUP_MS, measureMs: 1 })
    }
    const rounds = await alternate(
      bench,
      bench.rounds,
      LOADED,
      (system) => slices(bench, jobs.get(system)!),
      othersShares,
    )
    for (const job of jobs.values()) await generator.release(job)
    return report(rounds)
  } finally {
    for (const server of running) await server.stop()
  }
}

async function slices({ generators: [generator], seconds }: Bench, job: number): Promise<Slices> {
  const whole: Shape = { window: WIDEST_WINDOW, warmupMs: WARMUP_MS, measureMs: seconds * 1000 }
  const saturated = await generator.run(job, whole)
  const loads: Result[] = []
  for (const share of SHARES) {
    const measureMs = Math.max(LEAST_MS, seconds * 1000)
    loads.push(await generator.run(job, { ...whole, measureMs, perSecond: share * perSecond(saturated) }))
  }
  return { saturated, loads }
}

const perSecond = (result: Result) => result.count / result.load.seconds
const othersShares = ({ saturated, loads }: Slices) => [saturated, ...loads].map(({ load }) => load.othersShare)
const latencyOf = (share: number, at: number) => (value: Slices) =>
  new LatencyHistogram(value.loads[at]!.latencies).percentile(share)

function report(rounds: Rounds<Loaded, Slices>): MeasurementResult {
  const known = LOADED.filter((system) => !series(rounds, system, latencyOf(0.99, HALF)).some(isOver))
  const others = known.filter((system) => system !== 'ringwire')
  const tail = (system: Loaded) =>
    ratios(series(rounds, system, latencyOf(0.99, HALF)), series(rounds, system, latencyOf(0.5, HALF)))
  const against = (system: Loaded) =>
    ratios(series(rounds, 'ringwire', latencyOf(0.99, HALF)), series(rounds, system, latencyOf(0.99, HALF)))
  return {
    name: 'load',
    tables: [
      {
        title: `Load: ${PAIRS} pairs, each message at its time; shares of the rate of the saturated relay in the same round`,
        head: ['', 'load', 'msg/s', 'p50', 'p99', 'p99.9', 'server CPU', 'left late, p99', 'idle gen.'],
        rows: LOADED.flatMap((system) => SHARES.map((_, at) => row(rounds, system, at))),
      },
    ],
    comparisons: known.includes('ringwire')
      ? [
          comparison('p99 of a hop at half load', 'its p50', tail('ringwire'), { bound: 'at most', value: 3 }),
          ...others.map((system) =>
            comparison('p99 of a hop at half load', `${TITLES[system]} at its half load`, against(system), null),
          ),
        ]
      : [],
    charts: [chartOfLoad(rounds)],
    notes: [
      ...LOADED.filter((system) => !known.includes(system)).map(
        (system) =>
          `${TITLES[system]}: the p99 at half load was over ${LONGEST_US / 1000} ms in a round: not compared.`,
      ),
      ...others.map((system) => `${TITLES[system]}: p99 over p50 at half load ${median(tail(system)).toFixed(2)}.`),
      ...roundNotes(rounds),
      disturbance(rounds, othersShares),
    ],
    raw: rounds,
  }
}

function chartOfLoad(rounds: Rounds<Loaded, Slices>): Chart {
  const line = (system: Loaded, share: number) => ({
    label: `${TITLES[system]}, p${share * 100}`,
    points: SHARES.map((_, at) => {
      const loads = rounds.rounds.map(({ values }) => values[system].loads[at]!)
      const us = sumOf(loads.map(({ latencies }) => latencies)).percentile(share)
      return [median(loads.map(perSecond)), Math.max(1, us)] as const
    }),
  })
  const lines = [0.5, 0.99].flatMap((share) => LOADED.map((system) => line(system, share)))
  return { kind: 'lines', name: 'load', title: 'Latency of a hop', x: 'messages per second', y: 'µs', lines }
}

function row(rounds: Rounds<Loaded, Slices>, system: Loaded, at: number): string[] {
  const results = rounds.rounds.map(({ values }) => values[system].loads[at]!)
  const middle = (figure: (result: Result) => number) => median(results.map(figure))
  const latencies = sumOf(results.map((result) => result.latencies))
  return [
    TITLES[system],
    percent(SHARES[at]!),
    count(middle(perSecond)),
    microseconds(latencies.percentile(0.5)),
    microseconds(latencies.percentile(0.99)),
    microseconds(latencies.percentile(0.999)),
    percent(middle(({ load }) => load.serverShare)),
    microseconds(sumOf(results.map(({ lateness = [] }) => lateness)).percentile(0.99)),
    percent(middle(({ generatorIdle }) => generatorIdle)),
  ]
}

function sumOf(histograms: readonly number[][]): LatencyHistogram {
  const all = new LatencyHistogram()
  for (const counts of histograms) all.add(counts)
  return all
}

/** Nobody knows how long it really was. */
const isOver = (us: number) => us >= LONGEST_US

const microseconds = (us: number) => (isOver(us) ? `over ${LONGEST_US / 1000} ms` : `${us} µs`)
