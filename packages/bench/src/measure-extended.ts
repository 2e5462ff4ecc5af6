// Relays of extended sessions beside those of base sessions, on one service in the same rounds.
import type { Result } from './jobs/job.ts'
import { WIDEST_WINDOW } from './jobs/window.ts'
import { type Bench, comparison, type Goal, type MeasurementResult, targetOf } from './measurement.ts'
import { sized } from './quick.ts'
import { count, microseconds, percent } from './report.ts'
import { alternate, disturbance, type Rounds, roundNotes, series } from './rounds.ts'
import { median, ratios } from './statistics.ts'
import { startSystem } from './systems.ts'

const PAIRS = 100
const WARMUP_MS = 100
const FIRST_WARMUP_MS = sized(1500)
const MODES = ['ringwire', 'extended', 'acknowledged'] as const
type Mode = (typeof MODES)[number]
const TITLES: Record<Mode, string> = {
  ringwire: 'base',
  extended: 'extended',
  acknowledged: 'extended, acknowledged',
}
const GOALS: Record<Exclude<Mode, 'ringwire'>, Goal | null> = {
  extended: { bound: 'at least', value: 0.85 },
  // Twice as many messages leave the service.
  acknowledged: null,
}

interface Slices {
  saturated: Result
  single: Result
}

export async function measureExtended(bench: Bench): Promise<MeasurementResult> {
  const [generator] = bench.generators
  const server = await startSystem('ringwire', bench.placement.serverCore, bench.directory)
  try {
    const jobs = new Map<Mode, number>()
    for (const [i, system] of MODES.entries()) {
      const target = { ...targetOf(server), system }
      jobs.set(system, await generator.prepare({ kind: 'relay', target, pairs: PAIRS, firstPair: i * PAIRS }))
      await generator.run(jobs.get(system)!, { window: WIDEST_WINDOW, warmupMs: FIRST_WARMUP_MS, measureMs: 1 })
    }
    const measure = (mode: Mode) => slices(bench, jobs.get(mode)!)
    const rounds = await alternate(bench, bench.rounds, MODES, measure, othersShares)
    for (const job of jobs.values()) await generator.release(job)
    return report(rounds)
  } finally {
    await server.stop()
  }
}

async function slices({ generators: [generator], seconds }: Bench, job: number): Promise<Slices> {
  const measureMs = seconds * 1000
  return {
    saturated: await generator.run(job, { window: WIDEST_WINDOW, warmupMs: WARMUP_MS, measureMs }),
    single: await generator.run(job, { window: 1, warmupMs: WARMUP_MS, measureMs }),
  }
}

const perSecond = (result: Result) => result.count / result.load.seconds
const saturated = (value: Slices) => perSecond(value.saturated)
const single = (value: Slices) => perSecond(value.single)
const othersShares = ({ saturated, single }: Slices) => [saturated.load.othersShare, single.load.othersShare]

function report(rounds: Rounds<Mode, Slices>): MeasurementResult {
  const row = (mode: Mode) => {
    const middle = (figure: (value: Slices) => number) => median(series(rounds, mode, figure))
    const first = rounds.rounds[0]!.values[mode].saturated
    return [
      TITLES[mode],
      count(middle(saturated)),
      percent(middle((value) => value.saturated.load.serverShare)),
      microseconds(middle((value) => value.saturated.load.serverCpuSeconds / value.saturated.count)),
      percent(middle((value) => value.saturated.generatorIdle)),
      count(middle(single)),
      percent(middle((value) => value.single.generatorIdle)),
      String(first.clientFrameBytes),
      String(first.serverFrameBytes),
    ]
  }
  const head = ['', 'msg/s', 'server CPU', 'µs CPU/msg', 'idle gen.', 'one in flight', 'idle gen.', 'B in', 'B out']
  const compare = (what: string, figure: (value: Slices) => number, isGoal: boolean) =>
    (['extended', 'acknowledged'] as const).map((mode) =>
      comparison(
        `relay ${TITLES[mode]}, ${what}`,
        'base',
        ratios(series(rounds, mode, figure), series(rounds, 'ringwire', figure)),
        isGoal ? GOALS[mode] : null,
      ),
    )
  return {
    name: 'extended',
    tables: [{ title: `Extended relay: ${PAIRS} pairs, as in the relay above`, head, rows: MODES.map(row) }],
    comparisons: [...compare('saturated', saturated, true), ...compare('one in flight', single, false)],
    notes: [...roundNotes(rounds), disturbance(rounds, othersShares), 'Every seq was the one after the last.'],
    raw: rounds,
  }
}
