// What its timeline costs a call and a relayed message: the service beside one that writes none, on new processes in each round.
import type { Result } from './jobs/job.ts'
import { WIDEST_WINDOW } from './jobs/window.ts'
import { type Bench, comparison, type MeasurementResult, targetOf } from './measurement.ts'
import { count, microseconds } from './report.ts'
import { alternate, disturbance, roundNotes, series } from './rounds.ts'
import { median, ratios } from './statistics.ts'
import { startSystem } from './systems.ts'

const CALLS = 2000
const AT_A_TIME = 50
const WARMUP_RUNS = 2
const RELAY_PAIRS = 100
const RELAY_WARMUP_MS = 1500
/** Sightings are written a second later, relays are counted up to five: all of it is in the slice of its calls. */
const AFTERMATH_MS = 6500
const WAYS = ['off', 'on'] as const
type Way = (typeof WAYS)[number]
type Slices = Record<Way, Result[]>
interface Pair {
  readonly calls: Slices
  readonly relays: Slices
}
/** What drifts hits both alike. */
const ORDER: readonly Way[] = ['off', 'on', 'on', 'off']
/** A relay is quick to measure, and what is measured is small. */
const RELAY_ORDER: readonly Way[] = [...ORDER, 'on', 'off', 'off', 'on']
const TITLES: Record<Way, string> = { off: 'no timelines', on: 'a timeline of each call' }
const UNTIL_DONE = { window: 0, warmupMs: 0, measureMs: 0 }

export async function measureTimeline(bench: Bench): Promise<MeasurementResult> {
  const rounds = await alternate(bench, bench.rounds, ['pair'], () => measurePair(bench), othersShares)
  const of = (what: keyof Pair, way: Way, figure: (value: Result) => number) =>
    series(rounds, 'pair', (pair) => mean(pair[what][way].map(figure)))
  const callRow = (way: Way) => [
    TITLES[way],
    count(median(of('calls', way, ({ count, callSeconds }) => count / callSeconds!))),
    count(median(of('calls', way, cpuOfOne)) * 1e6),
  ]
  const relayRow = (way: Way) => [
    TITLES[way],
    count(median(of('relays', way, ({ count, load }) => count / load.seconds))),
    microseconds(median(of('relays', way, cpuOfOne))),
  ]
  const cost = (what: keyof Pair) => ratios(of(what, 'on', cpuOfOne), of(what, 'off', cpuOfOne))
  const atMost = { bound: 'at most', value: 1.05 } as const
  return {
    name: 'timeline',
    tables: [
      {
        title: `Timelines: ${CALLS} calls, ${AT_A_TIME} at a time, on new processes in each round`,
        head: ['', 'calls/s', 'µs CPU/call'],
        rows: WAYS.map(callRow),
      },
      {
        title: `Relay: ${RELAY_PAIRS} pairs, ${WIDEST_WINDOW} messages in flight per pair, on the same processes`,
        head: ['', 'msg/s', 'µs CPU/msg'],
        rows: WAYS.map(relayRow),
      },
    ],
    comparisons: [
      comparison('timeline, CPU time of a call', TITLES.off, cost('calls'), atMost),
      comparison('timeline, CPU time of a relayed message', TITLES.off, cost('relays'), atMost),
    ],
    notes: [...roundNotes(rounds), disturbance(rounds, othersShares)],
    raw: rounds,
  }
}

async function measurePair(bench: Bench): Promise<Pair> {
  const { placement, directory } = bench
  const servers = {
    off: await startSystem('ringwire', placement.serverCore, directory, { preload: 'no-timeline.ts' }),
    on: await startSystem('ringwire', placement.serverCore, directory),
  }
  try {
    return { calls: await measureCalls(bench, servers), relays: await measureRelays(bench, servers) }
  } finally {
    for (const way of WAYS) await servers[way].stop()
  }
}

type Servers = Record<Way, Awaited<ReturnType<typeof startSystem>>>

async function measureCalls({ generators: [generator] }: Bench, servers: Servers): Promise<Slices> {
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
  const slices: Slices = { off: [], on: [] }
  for (const way of ORDER) slices[way].push(await generator.run(jobs[way], UNTIL_DONE))
  for (const way of WAYS) await generator.release(jobs[way])
  return slices
}

async function measureRelays({ generators: [generator], seconds }: Bench, servers: Servers): Promise<Slices> {
  const jobs = {} as Record<Way, number>
  for (const way of WAYS) {
    const target = targetOf(servers[way])
    jobs[way] = await generator.prepare({ kind: 'relay', target, pairs: RELAY_PAIRS, firstPair: 0 })
    await generator.run(jobs[way], { window: WIDEST_WINDOW, warmupMs: RELAY_WARMUP_MS, measureMs: 1 })
  }
  const slices: Slices = { off: [], on: [] }
  const window = { window: WIDEST_WINDOW, warmupMs: 100, measureMs: seconds * 1000 }
  for (const way of RELAY_ORDER) slices[way].push(await generator.run(jobs[way], window))
  for (const way of WAYS) await generator.release(jobs[way])
  return slices
}

const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length
const cpuOfOne = ({ load, count }: Result) => load.serverCpuSeconds / count
const othersShares = ({ calls, relays }: Pair) =>
  [calls, relays].flatMap(({ off, on }) => [...off, ...on].map(({ load }) => load.othersShare))
