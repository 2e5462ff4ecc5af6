// What an endpoint that hears of everything costs whole calls, and how long after an event its request arrives.
import type { Result } from './jobs/job.ts'
import { type Bench, comparison, type MeasurementResult, targetOf } from './measurement.ts'
import { cpuBetween, quiet, readCpu } from './proc.ts'
import { addEndpoint, startReceiver } from './receivers.ts'
import { count } from './report.ts'
import { alternate, disturbance, type Rounds, roundNotes, series } from './rounds.ts'
import { median, percentile, ratios } from './statistics.ts'
import { startSystem } from './systems.ts'

const CALLS = 1000
const AT_A_TIME = 50
const WARMUP_RUNS = 4
/** call.ringing, call.wake, call.accepted, call.wake_cancelled, call.connected, call.ended. */
const EVENTS_PER_CALL = 6
const PACED_CALLS = 500
const PACE = 100
const P50_MS = 20
const P99_MS = 200

const WAYS = ['off', 'on', 'paced'] as const
type Way = (typeof WAYS)[number]
const TITLES: Record<Way, string> = {
  off: 'no endpoint',
  on: 'one endpoint, all events',
  paced: `the same, ${PACE} calls a second`,
}
const UNTIL_DONE = { window: 0, warmupMs: 0, measureMs: 0 }

interface Run {
  result: Result
  cpuSeconds: number
  /** Until every endpoint had every event. */
  toldSeconds: number
  /** From event to request, in microseconds. */
  latencies: number[]
}

export async function measureWebhooks(bench: Bench): Promise<MeasurementResult> {
  const { placement, directory, generators } = bench
  const [generator] = generators
  const receiver = await startReceiver(placement, directory)
  const start = () =>
    startSystem('ringwire', placement.serverCore, directory, { settings: { RINGWIRE_WEBHOOK_ALLOW: '127.0.0.1' } })
  const [off, on] = await Promise.all([start(), start()])
  try {
    await addEndpoint(on.port, `${receiver.url}/hook`)
    const job = { kind: 'call', target: targetOf(on), calls: CALLS, pairs: AT_A_TIME } as const
    const jobs: Record<Way, number> = {
      off: await generator.prepare({ ...job, target: targetOf(off) }),
      on: await generator.prepare(job),
      paced: await generator.prepare({ ...job, calls: PACED_CALLS, perSecond: PACE, firstPair: AT_A_TIME }),
    }
    let told = 0
    const measure = async (way: Way): Promise<Run> => {
      const { pid } = way === 'off' ? off : on
      const begin = Date.now()
      const before = readCpu(pid)
      const result = await generator.run(jobs[way], UNTIL_DONE)
      if (way !== 'off') told += result.count * EVENTS_PER_CALL
      const { lastAt, latencies } = await receiver.until(told)
      await quiet(pid)
      const toldSeconds = way === 'off' ? result.callSeconds! : (lastAt - begin) / 1000
      return { result, cpuSeconds: cpuBetween(before, readCpu(pid)), toldSeconds, latencies }
    }
    for (let i = 0; i < WARMUP_RUNS; i++) for (const way of ['off', 'on'] as const) await measure(way)
    const rounds = await alternate(bench, bench.rounds, WAYS, measure, othersShares)
    for (const way of WAYS) await generator.release(jobs[way])
    return report(rounds)
  } finally {
    for (const server of [off, on]) await server.stop()
    await receiver.stop()
  }
}

const callsPerSecond = ({ result }: Run) => result.count / result.callSeconds!
const toldPerSecond = ({ result, toldSeconds }: Run) => result.count / toldSeconds
const cpuPerCall = ({ result, cpuSeconds }: Run) => cpuSeconds / result.count
const othersShares = ({ result }: Run) => [result.load.othersShare]

function report(rounds: Rounds<Way, Run>): MeasurementResult {
  const latency = (way: Way, share: number) =>
    series(rounds, way, ({ latencies }) => percentile(latencies, share) / 1000)
  const row = (way: Way) => {
    const middle = (figure: (value: Run) => number) => median(series(rounds, way, figure))
    const ms = (share: number) => (way === 'off' ? '–' : median(latency(way, share)).toFixed(1))
    return [
      TITLES[way],
      count(middle(callsPerSecond)),
      count(middle(toldPerSecond)),
      count(middle(cpuPerCall) * 1e6),
      ms(0.5),
      ms(0.99),
    ]
  }
  const compare = (figure: (value: Run) => number) =>
    ratios(series(rounds, 'on', figure), series(rounds, 'off', figure))
  const atMost = (value: number) => ({ bound: 'at most', value }) as const
  return {
    name: 'webhooks',
    tables: [
      {
        title: `Webhooks: ${CALLS} calls, ${AT_A_TIME} at a time, ${EVENTS_PER_CALL} events each`,
        head: ['', 'calls/s', 'and told', 'µs CPU/call', 'p50, ms', 'p99, ms'],
        rows: WAYS.map(row),
      },
    ],
    comparisons: [
      comparison('webhooks, calls a second', TITLES.off, compare(callsPerSecond), { bound: 'at least', value: 0.85 }),
      comparison('webhooks, calls a second, all told', TITLES.off, compare(toldPerSecond), null),
      comparison('webhooks, CPU time of a call', TITLES.off, compare(cpuPerCall), null),
      comparison('webhooks, ms from event to request, p50', 'the target itself', latency('paced', 0.5), atMost(P50_MS)),
      comparison(
        'webhooks, ms from event to request, p99',
        'the target itself',
        latency('paced', 0.99),
        atMost(P99_MS),
      ),
    ],
    notes: [
      ...roundNotes(rounds),
      disturbance(rounds, othersShares),
      'Each event came once, and in the order of its call.',
    ],
    raw: rounds,
  }
}
