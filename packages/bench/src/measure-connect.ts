// Authenticated connections per second: TCP, upgrade, and the message that says that the client is in.
import type { Result } from './jobs/job.ts'
import { type Bench, comparison, type MeasurementResult, targetOf } from './measurement.ts'
import { findPeers } from './peers.ts'
import { quiet } from './proc.ts'
import { sized } from './quick.ts'
import { count, microseconds, percent } from './report.ts'
import { alternate, disturbance, type Rounds, roundNotes, series } from './rounds.ts'
import { median, ratios } from './statistics.ts'
import { type ComparedName, type RunningSystem, SYSTEMS, startSystem, TITLES } from './systems.ts'

const CONNECTIONS = sized(6000)
/** Prosody takes milliseconds for a login. */
const FEWER_CONNECTIONS: Partial<Record<ComparedName, number>> = { prosody: sized(1500) }
const CONCURRENCY = 256
const UNTIL_DONE = { window: 0, warmupMs: 0, measureMs: 0 }

export async function measureConnect(bench: Bench): Promise<MeasurementResult> {
  const peers = findPeers()
  const compared = [...SYSTEMS, ...peers.here]
  const running = new Map<ComparedName, RunningSystem>()
  try {
    for (const system of compared) {
      running.set(system, await startSystem(system, bench.placement.serverCore, bench.directory))
    }
    const measure = (system: ComparedName) => storm(bench, running.get(system)!)
    for (const system of compared) await measure(system)
    const rounds = await alternate(bench, bench.rounds, compared, measure, othersShares)
    return report(rounds, compared, peers.notes)
  } finally {
    for (const server of running.values()) await server.stop()
  }
}

/** Credentials are made before and connections closed after the measured time; each generator opens its share. */
async function storm(bench: Bench, server: RunningSystem): Promise<Result> {
  const { generators } = bench
  const target = targetOf(server)
  const all = FEWER_CONNECTIONS[server.system as ComparedName] ?? CONNECTIONS
  const count = Math.floor(all / generators.length / 2) * 2
  const concurrency = Math.floor(CONCURRENCY / generators.length)
  const jobs = await Promise.all(
    generators.map((generator, i) =>
      generator.prepare({ kind: 'connect', target, first: (i * count) / 2, count, concurrency }),
    ),
  )
  const results = await Promise.all(generators.map((generator, i) => generator.run(jobs[i]!, UNTIL_DONE)))
  await Promise.all(generators.map((generator, i) => generator.release(jobs[i]!)))
  // It still has thousands of closed sockets to see to, on the core that the next one needs.
  await quiet(server.pid)
  // They began together: the one that took longest saw the server's whole load.
  const longest = results.reduce((a, b) => (b.load.seconds > a.load.seconds ? b : a))
  return { ...longest, count: results.reduce((total, result) => total + result.count, 0) }
}

const perSecond = (result: Result) => result.count / result.load.seconds

const othersShares = (result: Result) => [result.load.othersShare]

function report(rounds: Rounds<ComparedName, Result>, compared: ComparedName[], left: string[]): MeasurementResult {
  const row = (system: ComparedName) => {
    const middle = (figure: (value: Result) => number) => median(series(rounds, system, figure))
    return [
      TITLES[system],
      count(middle(perSecond)),
      percent(middle((value) => value.load.serverShare)),
      microseconds(middle((value) => value.load.serverCpuSeconds / value.count)),
    ]
  }
  const against = (system: ComparedName) =>
    ratios(series(rounds, 'ringwire', perSecond), series(rounds, system, perSecond))
  return {
    name: 'connect',
    tables: [
      {
        title: `Connect: ${CONNECTIONS} clients a round, ${CONCURRENCY} at a time`,
        head: ['', 'connections/s', 'server CPU', 'µs CPU each'],
        rows: compared.map(row),
      },
    ],
    comparisons: [
      comparison('connect', TITLES.peerserver, against('peerserver'), { bound: 'at least', value: 3 }),
      comparison('connect', TITLES.socketio, against('socketio'), null),
      comparison('connect', `${TITLES.bare}, no authentication`, against('bare'), { bound: 'at least', value: 0.6 }),
      ...compared.slice(SYSTEMS.length).map((peer) => comparison('connect', TITLES[peer], against(peer), null)),
    ],
    charts: [
      {
        kind: 'bars',
        name: 'connects',
        title: 'Clients that connect',
        unit: 'connections per second',
        bars: compared.map((system) => ({ label: TITLES[system], value: median(series(rounds, system, perSecond)) })),
      },
    ],
    notes: [...roundNotes(rounds), disturbance(rounds, othersShares), ...left],
    raw: rounds,
  }
}
