// CPU time of a whole durable call, compared with carrying as many messages of the same sizes with no service at all.
import { MESSAGES_PER_CALL } from './jobs/call-script.ts'
import type { Result } from './jobs/job.ts'
import { type Bench, comparison, type MeasurementResult, targetOf } from './measurement.ts'
import { sized } from './quick.ts'
import { count, microseconds } from './report.ts'
import { alternate, disturbance, type Rounds, roundNotes, series } from './rounds.ts'
import { median, ratios } from './statistics.ts'
import { startSystem, TITLES } from './systems.ts'

const CALLS = sized(1000)
const AT_A_TIME = 50
/** The first thousands of calls compile the code, which is the work of once and not of every call. */
const WARMUP_RUNS = sized(4)
const COMPARED = ['ringwire', 'bare'] as const
type Compared = (typeof COMPARED)[number]
const UNTIL_DONE = { window: 0, warmupMs: 0, measureMs: 0 }

export async function measureCall(bench: Bench): Promise<MeasurementResult> {
  const jobs = new Map<Compared, number>()
  const running = []
  try {
    for (const system of COMPARED) {
      const server = await startSystem(system, bench.placement.serverCore, bench.directory)
      running.push(server)
      const target = targetOf(server)
      jobs.set(system, await bench.generators[0].prepare({ kind: 'call', target, calls: CALLS, pairs: AT_A_TIME }))
      for (let i = 0; i < WARMUP_RUNS; i++) await bench.generators[0].run(jobs.get(system)!, UNTIL_DONE)
    }
    const measure = (system: Compared) => bench.generators[0].run(jobs.get(system)!, UNTIL_DONE)
    const rounds = await alternate(bench, bench.rounds, COMPARED, measure, othersShares)
    for (const job of jobs.values()) await bench.generators[0].release(job)
    return report(rounds)
  } finally {
    for (const server of running) await server.stop()
  }
}

const cpuPerCall = (result: Result) => result.load.serverCpuSeconds / result.count

const othersShares = (result: Result) => [result.load.othersShare]

function report(rounds: Rounds<Compared, Result>): MeasurementResult {
  const row = (system: Compared) => [
    TITLES[system],
    count(median(series(rounds, system, cpuPerCall)) * 1e6),
    microseconds(median(series(rounds, system, cpuPerCall)) / MESSAGES_PER_CALL),
  ]
  return {
    name: 'call',
    tables: [
      {
        title: `Call: ${CALLS} calls a round, ${AT_A_TIME} at a time, ${MESSAGES_PER_CALL} client messages each`,
        head: ['', 'µs CPU per call', 'per message'],
        rows: COMPARED.map(row),
      },
    ],
    comparisons: [
      comparison(
        'call, CPU time',
        `${TITLES.bare}, messages only`,
        ratios(series(rounds, 'ringwire', cpuPerCall), series(rounds, 'bare', cpuPerCall)),
        { bound: 'at most', value: 2.5 },
      ),
    ],
    charts: [
      {
        kind: 'bars',
        name: 'call',
        title: 'CPU time of a call',
        unit: `µs; bare Bun only carries as many messages`,
        bars: COMPARED.map((system) => ({
          label: TITLES[system],
          value: median(series(rounds, system, cpuPerCall)) * 1e6,
        })),
      },
    ],
    notes: [
      ...roundNotes(rounds),
      disturbance(rounds, othersShares),
      'Every call was found connected and ended in the history of its caller.',
    ],
    raw: rounds,
  }
}
