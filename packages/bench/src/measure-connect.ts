// Authenticated connections per second: TCP, upgrade, and the message that says that the client is in.
import type { Result } from './jobs/job.ts'
import { type Bench, comparison, type MeasurementResult, targetOf } from './measurement.ts'
import { count, microseconds, percent } from './report.ts'
import { alternate, disturbance, type Rounds, roundNotes, series } from './rounds.ts'
import { median, ratios } from './statistics.ts'
import { type RunningSystem, SYSTEMS, type SystemName, startSystem, TITLES } from './systems.ts'

const CONNECTIONS = 4000
const CONCURRENCY = 256
const UNTIL_DONE = { window: 0, warmupMs: 0, measureMs: 0 }

export async function measureConnect(bench: Bench): Promise<MeasurementResult> {
  const running = new Map<SystemName, RunningSystem>()
  try {
    for (const system of SYSTEMS) {
      running.set(system, await startSystem(system, bench.placement.serverCore, bench.directory))
    }
    const measure = (system: SystemName) => storm(bench, running.get(system)!)
    for (const system of SYSTEMS) await measure(system)
    return report(await alternate(bench, bench.rounds, SYSTEMS, measure, othersShares))
  } finally {
    for (const server of running.values()) await server.stop()
  }
}

/** Credentials are made before and connections closed after the measured time; each generator opens its share. */
async function storm(bench: Bench, server: RunningSystem): Promise<Result> {
  const { generators } = bench
  const target = targetOf(server)
  const count = Math.floor(CONNECTIONS / generators.length / 2) * 2
  const concurrency = Math.floor(CONCURRENCY / generators.length)
  const jobs = await Promise.all(
    generators.map((generator, i) =>
      generator.prepare({ kind: 'connect', target, first: (i * count) / 2, count, concurrency }),
    ),
  )
  const results = await Promise.all(generators.map((generator, i) => generator.run(jobs[i]!, UNTIL_DONE)))
  await Promise.all(generators.map((generator, i) => generator.release(jobs[i]!)))
  // They began together: the one that took longest saw the server's whole load.
  const longest = results.reduce((a, b) => (b.load.seconds > a.load.seconds ? b : a))
  return { ...longest, count: results.reduce((total, result) => total + result.count, 0) }
}

const perSecond = (result: Result) => result.count / result.load.seconds

const othersShares = (result: Result) => [result.load.othersShare]

function report(rounds: Rounds<SystemName, Result>): MeasurementResult {
  const row = (system: SystemName) => {
    const middle = (figure: (value: Result) => number) => median(series(rounds, system, figure))
    return [
      TITLES[system],
      count(middle(perSecond)),
      percent(middle((value) => value.load.serverShare)),
      microseconds(middle((value) => value.load.serverCpuSeconds / value.count)),
    ]
  }
  const against = (system: SystemName) =>
    ratios(series(rounds, 'ringwire', perSecond), series(rounds, system, perSecond))
  return {
    name: 'connect',
    tables: [
      {
        title: `Connect: ${CONNECTIONS} clients a round, ${CONCURRENCY} at a time`,
        head: ['', 'connections/s', 'server CPU', 'µs CPU each'],
        rows: SYSTEMS.map(row),
      },
    ],
    comparisons: [
      comparison('connect', TITLES.peerserver, against('peerserver'), { bound: 'at least', value: 1.6 }),
      comparison('connect', TITLES.socketio, against('socketio'), null),
      comparison('connect', `${TITLES.bare}, no authentication`, against('bare'), null),
    ],
    notes: [...roundNotes(rounds), disturbance(rounds, othersShares)],
    raw: rounds,
  }
}
