// One machine with one worker and with two, on PostgreSQL and Redis: relayed messages and durable calls.
import type { Result } from './jobs/job.ts'
import { WIDEST_WINDOW } from './jobs/window.ts'
import { type Bench, comparison, type Goal, type MeasurementResult } from './measurement.ts'
import { missingForNodes, type Nodes, places, startNodes, startPostgres } from './nodes.ts'
import { type PartsLoad, partsBetween, readParts } from './parts.ts'
import { sized } from './quick.ts'
import { count, microseconds, percent } from './report.ts'
import { alternate, disturbance, isNoisy, type Rounds, roundNotes, series } from './rounds.ts'
import { median, ratios } from './statistics.ts'

const PAIRS = sized(100)
const CALLS = sized(400)
const AT_A_TIME = sized(80)
const WARMUP_MS = 100
const FIRST_WARMUP_MS = sized(1500)
const UNTIL_DONE = { window: 0, warmupMs: 0, measureMs: 0 }
const COUNTS = ['1', '2'] as const
type Count = (typeof COUNTS)[number]
/** Where each worker has a core for itself. */
const GOAL: Goal = { bound: 'at least', value: 1.8 }

interface Slice {
  result: Result
  parts: PartsLoad
}

interface Slices {
  relay: Slice
  calls: Slice
}

interface Lane {
  nodes: Nodes
  relay: number
  calls: number
}

export async function measureWorkers(bench: Bench): Promise<MeasurementResult> {
  const missing = missingForNodes('workers')
  if (missing !== undefined) return { name: 'workers', tables: [], comparisons: [], notes: [missing], raw: null }
  const { nodes: cores, stores, note } = places(bench.placement)
  const { postgres, stop } = await startPostgres(stores)
  const lanes = new Map<Count, Lane>()
  try {
    for (const workers of COUNTS) {
      const where = { nodes: [cores.slice(0, Number(workers)).flat()], stores, note }
      const nodes = await startNodes(postgres, where, bench.directory, { RINGWIRE_WORKERS: workers })
      lanes.set(workers, { nodes, ...(await prepare(bench, nodes)) })
    }
    const measure = (workers: Count) => slices(bench, lanes.get(workers)!)
    const rounds = await alternate(bench, bench.rounds, COUNTS, measure, othersShares)
    for (const { relay, calls } of lanes.values())
      for (const job of [relay, calls]) await bench.generators[0].release(job)
    return report(rounds, stores.length > 0, note)
  } finally {
    for (const { nodes } of lanes.values()) await nodes.stop()
    await stop()
  }
}

async function prepare({ generators: [generator] }: Bench, { target }: Nodes) {
  const relay = await generator.prepare({ kind: 'relay', target, pairs: PAIRS, firstPair: 0 })
  const calls = await generator.prepare({ kind: 'call', target, calls: CALLS, pairs: AT_A_TIME, firstPair: PAIRS })
  await generator.run(relay, { window: WIDEST_WINDOW, warmupMs: FIRST_WARMUP_MS, measureMs: 1 })
  await generator.run(calls, UNTIL_DONE)
  return { relay, calls }
}

async function slices({ generators: [generator], seconds }: Bench, { nodes, relay, calls }: Lane): Promise<Slices> {
  const slice = async (run: () => Promise<Result>): Promise<Slice> => {
    const before = readParts(nodes.parts)
    const result = await run()
    return { result, parts: partsBetween(before, readParts(nodes.parts)) }
  }
  const shape = { window: WIDEST_WINDOW, warmupMs: WARMUP_MS, measureMs: seconds * 1000 }
  return {
    relay: await slice(() => generator.run(relay, shape)),
    calls: await slice(() => generator.run(calls, UNTIL_DONE)),
  }
}

const messagesPerSecond = ({ relay: { result } }: Slices) => result.count / result.load.seconds
const callsPerSecond = ({ calls: { result } }: Slices) => result.count / result.callSeconds!
const cores = ({ parts }: Slice) => parts.cpuSeconds.nodes / parts.seconds
const othersShares = ({ relay, calls }: Slices) => [relay, calls].map(({ parts }) => parts.othersShare)

function report(rounds: Rounds<Count, Slices>, isPinned: boolean, note: string): MeasurementResult {
  const row = (workers: Count) => {
    const middle = (figure: (value: Slices) => number) => median(series(rounds, workers, figure))
    return [
      workers,
      count(middle(messagesPerSecond)),
      microseconds(middle(({ relay }) => relay.parts.cpuSeconds.nodes / relay.result.received)),
      percent(middle(({ relay }) => cores(relay))),
      percent(middle(({ relay }) => relay.result.generatorIdle)),
      count(middle(callsPerSecond)),
      percent(middle(({ calls }) => cores(calls))),
    ]
  }
  const over = (figure: (value: Slices) => number) => ratios(series(rounds, '2', figure), series(rounds, '1', figure))
  const noisy = isNoisy(rounds, othersShares)
  const goal = isPinned ? GOAL : null
  return {
    name: 'workers',
    tables: [
      {
        title: `Workers: ${PAIRS} pairs, ${WIDEST_WINDOW} messages in flight per pair; ${CALLS} durable calls, ${AT_A_TIME} at a time`,
        head: ['workers', 'msg/s', 'µs CPU/msg', 'cores', 'idle gen.', 'calls/s', 'cores'],
        rows: COUNTS.map(row),
      },
    ],
    comparisons: [
      { ...comparison('two workers, relay, saturated', 'one', over(messagesPerSecond), null), noisy },
      { ...comparison('two workers, durable calls', 'one', over(callsPerSecond), goal), noisy },
    ],
    notes: [note, ...roundNotes(rounds), disturbance(rounds, othersShares)],
    raw: rounds,
  }
}
