// Sessions that lost their sockets: how fast they come back, and what they cost meanwhile.
import { Generator } from './generators.ts'
import type { Job, Result } from './jobs/job.ts'
import { settledRss } from './measure-memory.ts'
import { type Bench, comparison, type MeasurementResult, targetOf } from './measurement.ts'
import { quiet } from './proc.ts'
import { sized } from './quick.ts'
import { count, microseconds, percent } from './report.ts'
import { alternate, disturbance, roundNotes, series } from './rounds.ts'
import { median, ratios } from './statistics.ts'
import { type RunningSystem, startSystem } from './systems.ts'

const SESSIONS = sized(5000)
const CONCURRENCY = 256
const UNTIL_DONE = { window: 0, warmupMs: 0, measureMs: 0 }
const STORMS = ['connect', 'resume'] as const
type Storm = (typeof STORMS)[number]
const TITLES: Record<Storm, string> = { connect: 'base, connects', resume: 'extended, resumes' }

export async function measureResume(bench: Bench): Promise<MeasurementResult> {
  const server = await startSystem('ringwire', bench.placement.serverCore, bench.directory)
  try {
    const bytes = await lostSessionBytes(bench, server)
    for (const kind of STORMS) await storm(bench, server, kind)
    const rounds = await alternate(bench, bench.rounds, STORMS, (kind) => storm(bench, server, kind), othersShares)
    const perSecond = (result: Result) => result.count / result.load.seconds
    const rows = STORMS.map((kind) => {
      const middle = (figure: (value: Result) => number) => median(series(rounds, kind, figure))
      return [
        TITLES[kind],
        count(middle(perSecond)),
        percent(middle((value) => value.load.serverShare)),
        microseconds(middle((value) => value.load.serverCpuSeconds / value.count)),
      ]
    })
    const kilobytes = bytes / 1024
    return {
      name: 'resume',
      tables: [
        {
          title: `Resume: ${SESSIONS} sessions at once, ${CONCURRENCY} at a time`,
          head: ['', 'per second', 'server CPU', 'µs CPU each'],
          rows,
        },
        {
          title: `Lost sockets: ${SESSIONS} extended sessions that can be resumed`,
          head: ['', 'KB each'],
          rows: [['beyond their empty logs', kilobytes.toFixed(1)]],
        },
      ],
      comparisons: [
        comparison(
          'resumes',
          'base connects',
          ratios(series(rounds, 'resume', perSecond), series(rounds, 'connect', perSecond)),
          { bound: 'at least', value: 0.7 },
        ),
        comparison('memory, KB per lost session', 'the target itself', [kilobytes], { bound: 'at most', value: 4 }),
      ],
      notes: [...roundNotes(rounds), disturbance(rounds, othersShares), 'Every session was recovered.'],
      raw: { rounds, bytes },
    }
  } finally {
    await server.stop()
  }
}

const othersShares = (result: Result) => [result.load.othersShare]

/** Clients that the storm needs exist before it, and sockets are closed after the measured time. */
async function storm({ generators }: Bench, server: RunningSystem, kind: Storm): Promise<Result> {
  const target = targetOf(server)
  const share = Math.floor(SESSIONS / generators.length / 2) * 2
  const concurrency = Math.floor(CONCURRENCY / generators.length)
  const jobs: number[] = []
  // One after another: to prepare is to connect.
  for (const [i, generator] of generators.entries()) {
    const job: Job = { kind, target, first: (i * share) / 2, count: share, concurrency }
    jobs.push(await generator.prepare(job))
  }
  await quiet(server.pid)
  const results = await Promise.all(generators.map((generator, i) => generator.run(jobs[i]!, UNTIL_DONE)))
  await Promise.all(generators.map((generator, i) => generator.release(jobs[i]!)))
  await quiet(server.pid)
  const longest = results.reduce((a, b) => (b.load.seconds > a.load.seconds ? b : a))
  return { ...longest, count: results.reduce((total, result) => total + result.count, 0) }
}

/** Resident memory with all of them lost, minus that before, for each. */
async function lostSessionBytes({ placement }: Bench, server: RunningSystem): Promise<number> {
  const generator = new Generator(placement.generatorCores[0] ?? null)
  try {
    const lose = async (first: number, sessions: number) => {
      const target = targetOf(server)
      await generator.prepare({ kind: 'resume', target, first, count: sessions, concurrency: 64 })
    }
    // Compiles the code, and fills what the runtime keeps for itself.
    for (let i = 0; i < 5; i++) await lose(100_000 + i * 500, 1000)
    const [before] = await settledRss([server])
    await lose(200_000, SESSIONS)
    const [after] = await settledRss([server])
    return (after! - before!) / SESSIONS
  } finally {
    await generator.stop()
  }
}
