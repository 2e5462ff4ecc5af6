// What traces cost a call: the service beside one without a collector, on new processes in each round.
import type { Result } from './jobs/job.ts'
import { type Bench, comparison, type MeasurementResult, targetOf } from './measurement.ts'
import { type Receiver, startReceiver } from './receivers.ts'
import { count } from './report.ts'
import { alternate, disturbance, type Rounds, roundNotes, series } from './rounds.ts'
import { median, ratios } from './statistics.ts'
import { type RunningSystem, startSystem } from './systems.ts'

const CALLS = 1000
const AT_A_TIME = 50
/** The first thousands of calls compile the code. */
const WARMUP_RUNS = 2
/** Spans are sent every 5 s: all of a slice are in it. */
const AFTERMATH_MS = 5500
/** The call, its three times, its four steps, and the first messages of each kind from each side. */
const SPANS_PER_CALL = 12
const WAYS = ['off', 'on'] as const
type Way = (typeof WAYS)[number]
type Slices = Record<Way, Result[]>
/** What drifts hits both alike. */
const ORDER: readonly Way[] = ['off', 'on', 'on', 'off']
const TITLES: Record<Way, string> = { off: 'no traces', on: 'each call is traced' }
const UNTIL_DONE = { window: 0, warmupMs: 0, measureMs: 0 }

export async function measureTraces(bench: Bench): Promise<MeasurementResult> {
  const receiver = await startReceiver(bench.placement, bench.directory)
  try {
    return report(await alternate(bench, bench.rounds, ['pair'], () => measurePair(bench, receiver), othersShares))
  } finally {
    await receiver.stop()
  }
}

async function measurePair({ placement, directory, generators: [generator] }: Bench, receiver: Receiver) {
  const start = (settings: Record<string, string>) =>
    startSystem('ringwire', placement.serverCore, directory, { settings })
  const servers = { off: await start({}), on: await start({ OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url }) }
  const had = await receiver.spans()
  try {
    const jobs = {} as Record<Way, number>
    for (const way of WAYS) jobs[way] = await generator.prepare(jobOf(servers[way]))
    for (let i = 0; i < WARMUP_RUNS; i++) for (const way of WAYS) await generator.run(jobs[way], UNTIL_DONE)
    const slices: Slices = { off: [], on: [] }
    for (const way of ORDER) slices[way].push(await generator.run(jobs[way], UNTIL_DONE))
    for (const way of WAYS) await generator.release(jobs[way])
    const came = (await receiver.spans()) - had
    const expected = (WARMUP_RUNS + slices.on.length) * CALLS * SPANS_PER_CALL
    if (came !== expected) throw new Error(`${came} spans came instead of ${expected}`)
    return slices
  } finally {
    for (const way of WAYS) await servers[way].stop()
  }
}

const jobOf = (server: RunningSystem) =>
  ({ kind: 'call', target: targetOf(server), calls: CALLS, pairs: AT_A_TIME, aftermathMs: AFTERMATH_MS }) as const

const cpuPerCall = ({ load, count }: Result) => load.serverCpuSeconds / count
const othersShares = ({ off, on }: Slices) => [...off, ...on].map(({ load }) => load.othersShare)

function report(rounds: Rounds<'pair', Slices>): MeasurementResult {
  const of = (way: Way, figure: (value: Result) => number) =>
    series(rounds, 'pair', (slices) => median(slices[way].map(figure)))
  const row = (way: Way) => [
    TITLES[way],
    count(median(of(way, ({ count, callSeconds }) => count / callSeconds!))),
    count(median(of(way, cpuPerCall)) * 1e6),
  ]
  return {
    name: 'traces',
    tables: [
      {
        title: `Traces: ${CALLS} calls a slice, ${AT_A_TIME} at a time, on new processes in each round`,
        head: ['', 'calls/s', 'µs CPU/call'],
        rows: WAYS.map(row),
      },
    ],
    comparisons: [
      comparison('traces, CPU time of a call', TITLES.off, ratios(of('on', cpuPerCall), of('off', cpuPerCall)), {
        bound: 'at most',
        value: 1.03,
      }),
    ],
    notes: [
      ...roundNotes(rounds),
      disturbance(rounds, othersShares),
      `Each call had ${SPANS_PER_CALL} spans, and all of them came.`,
    ],
    raw: rounds,
  }
}
