// Session tokens per second, beside an HTTP echo of the same body.
import type { Result } from './jobs/job.ts'
import { type Bench, comparison, type MeasurementResult, targetOf } from './measurement.ts'
import { sized } from './quick.ts'
import { count, microseconds, percent } from './report.ts'
import { alternate, disturbance, type Rounds, roundNotes, series } from './rounds.ts'
import { median, ratios } from './statistics.ts'
import { startSystem, TITLES } from './systems.ts'

const CONNECTIONS = 16
const WARMUP_MS = 100
const FIRST_WARMUP_MS = sized(1000)
const COMPARED = ['ringwire', 'bare'] as const
type Compared = (typeof COMPARED)[number]

export async function measureToken(bench: Bench): Promise<MeasurementResult> {
  const jobs = new Map<Compared, number>()
  const running = []
  try {
    for (const system of COMPARED) {
      const server = await startSystem(system, bench.placement.serverCore, bench.directory)
      running.push(server)
      const target = targetOf(server)
      jobs.set(system, await bench.generators[0].prepare({ kind: 'token', target, connections: CONNECTIONS }))
      await bench.generators[0].run(jobs.get(system)!, { window: 0, warmupMs: FIRST_WARMUP_MS, measureMs: 1 })
    }
    const shape = { window: 0, warmupMs: WARMUP_MS, measureMs: bench.seconds * 1000 }
    const measure = (system: Compared) => bench.generators[0].run(jobs.get(system)!, shape)
    const rounds = await alternate(bench, bench.rounds, COMPARED, measure, othersShares)
    for (const job of jobs.values()) await bench.generators[0].release(job)
    return report(rounds)
  } finally {
    for (const server of running) await server.stop()
  }
}

const perSecond = (result: Result) => result.count / result.load.seconds

const othersShares = (result: Result) => [result.load.othersShare]

function report(rounds: Rounds<Compared, Result>): MeasurementResult {
  const row = (system: Compared) => {
    const middle = (figure: (value: Result) => number) => median(series(rounds, system, figure))
    return [
      system === 'bare' ? `${TITLES.bare}, JSON echo` : TITLES[system],
      count(middle(perSecond)),
      percent(middle((value) => value.load.serverShare)),
      microseconds(middle((value) => value.load.serverCpuSeconds / value.count)),
      percent(middle((value) => value.load.generatorShare)),
    ]
  }
  return {
    name: 'token',
    tables: [
      {
        title: `Token: ${CONNECTIONS} keep-alive connections, one request in flight on each`,
        head: ['', 'answers/s', 'server CPU', 'µs CPU each', 'generator CPU'],
        rows: COMPARED.map(row),
      },
    ],
    comparisons: [
      comparison(
        'token',
        `${TITLES.bare}, JSON echo`,
        ratios(series(rounds, 'ringwire', perSecond), series(rounds, 'bare', perSecond)),
        null,
      ),
    ],
    notes: [...roundNotes(rounds), disturbance(rounds, othersShares)],
    raw: rounds,
  }
}
