// What its timeline costs a call: the service beside one that writes none, on new processes in each round.
import type { Result } from './jobs/job.ts'
import { type Bench, comparison, type MeasurementResult, targetOf } from './measurement.ts'
import { count } from './report.ts'
import { alternate, disturbance, roundNotes, series } from './rounds.ts'
import { median, ratios } from './statistics.ts'
import { startSystem } from './systems.ts'

const CALLS = 2000
const AT_A_TIME = 50
const WARMUP_RUNS = 2
/** What was seen is written a second later, what was relayed is counted up to five: all of it is in the slice of its calls. */
const AFTERMATH_MS = 6500
const WAYS = ['off', 'on'] as const
type Way = (typeof WAYS)[number]
type Pair = Record<Way, Result[]>
/** What drifts hits both alike. */
const ORDER: readonly Way[] = ['off', 'on', 'on', 'off']
const TITLES: Record<Way, string> = { off: 'no timelines', on: 'a timeline of each call' }
const UNTIL_DONE = { window: 0, warmupMs: 0, measureMs: 0 }

export async function measureTimeline(bench: Bench): Promise<MeasurementResult> {
  const rounds = await alternate(bench, bench.rounds, ['pair'], () => measurePair(bench), othersShares)
  const of = (way: Way, figure: (value: Result) => number) =>
    series(rounds, 'pair', (slices) => mean(slices[way].map(figure)))
  const row = (way: Way) => [
    TITLES[way],
    count(median(of(way, ({ count, callSeconds }) => count / callSeconds!))),
    count(median(of(way, cpuPerCall)) * 1e6),
  ]
  return {
    name: 'timeline',
    tables: [
      {
        title: `Timelines: ${CALLS} calls, ${AT_A_TIME} at a time, on new processes in each round`,
        head: ['', 'calls/s', 'µs CPU/call'],
        rows: WAYS.map(row),
      },
    ],
    comparisons: [
      comparison('timeline, CPU time of a call', TITLES.off, ratios(of('on', cpuPerCall), of('off', cpuPerCall)), {
        bound: 'at most',
        value: 1.05,
      }),
    ],
    notes: [...roundNotes(rounds), disturbance(rounds, othersShares)],
    raw: rounds,
  }
}

async function measurePair({ placement, directory, generators: [generator] }: Bench): Promise<Pair> {
  const servers = {
    off: await startSystem('ringwire', placement.serverCore, directory, { preload: 'no-timeline.ts' }),
    on: await startSystem('ringwire', placement.serverCore, directory),
  }
  try {
    const jobs = {} as Record<Way, number>
    for (const way of WAYS) {
      jobs[way] = await generator.prepare({
        kind: 'call',
        target: targetOf(servers[way]),
        calls: CALLS,
        pairs: AT_A_TIME,
        aftermathMs: AFTERMATH_MS,
      })
    }
    for (let i = 0; i < WARMUP_RUNS; i++) for (const way of WAYS) await generator.run(jobs[way], UNTIL_DONE)
    const slices: Pair = { off: [], on: [] }
    for (const way of ORDER) slices[way].push(await generator.run(jobs[way], UNTIL_DONE))
    for (const way of WAYS) await generator.release(jobs[way])
    return slices
  } finally {
    for (const way of WAYS) await servers[way].stop()
  }
}

const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length
const cpuPerCall = ({ load, count }: Result) => load.serverCpuSeconds / count
const othersShares = ({ off, on }: Pair) => [...off, ...on].map(({ load }) => load.othersShare)
