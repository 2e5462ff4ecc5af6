// From the invite of a group to ringing at each of its members, across nodes.
import type { Result } from './jobs/job.ts'
import { type Bench, comparison, type MeasurementResult } from './measurement.ts'
import { missingForNodes, places, startNodes, startPostgres } from './nodes.ts'
import { type PartsLoad, partsBetween, readParts } from './parts.ts'
import { alternate, disturbance, isNoisy, type Rounds, roundNotes, series } from './rounds.ts'
import { median, percentile } from './statistics.ts'

const SIZE = 500
const WARMUPS = 3
const P50_MS = 250
const LONGEST_MS = 1000

interface Slice {
  result: Result
  parts: PartsLoad
}

export async function measureGroup(bench: Bench): Promise<MeasurementResult> {
  const missing = missingForNodes('group')
  if (missing !== undefined) return { name: 'group', tables: [], comparisons: [], notes: [missing], raw: null }
  const where = places(bench.placement)
  const { postgres, stop } = await startPostgres(where.stores)
  try {
    const { target, parts, stop: stopNodes } = await startNodes(postgres, where, bench.directory)
    try {
      const [generator] = bench.generators
      const job = await generator.prepare({ kind: 'group', target, size: SIZE })
      const measure = async (): Promise<Slice> => {
        const before = readParts(parts)
        const result = await generator.run(job, { window: 1, warmupMs: 0, measureMs: 0 })
        return { result, parts: partsBetween(before, readParts(parts)) }
      }
      for (let n = 0; n < WARMUPS; n++) await measure()
      const rounds = await alternate(bench, bench.rounds, ['group'], measure, othersShares)
      await generator.release(job)
      return report(rounds, where.note)
    } finally {
      await stopNodes()
    }
  } finally {
    await stop()
  }
}

const othersShares = ({ parts }: Slice) => [parts.othersShare]

function report(rounds: Rounds<'group', Slice>, placement: string): MeasurementResult {
  const of = (share: number) => series(rounds, 'group', ({ result }) => percentile(result.samples ?? [], share) / 1000)
  const cpu = (part: keyof PartsLoad['cpuSeconds']) =>
    (median(series(rounds, 'group', ({ parts }) => parts.cpuSeconds[part])) * 1000).toFixed(0)
  const ms = (share: number) => median(of(share)).toFixed(0)
  const noisy = isNoisy(rounds, othersShares)
  return {
    name: 'group',
    tables: [
      {
        title: `Group: ${SIZE} members, half of them on each of two nodes; ms from invite to ringing, CPU of ring and cancel`,
        head: ['p50', 'p99', 'all', 'longest of all rounds', 'ms CPU nodes', 'Redis', 'PostgreSQL'],
        rows: [
          [
            ...[ms(0.5), ms(0.99), ms(1), Math.max(...of(1)).toFixed(0)],
            ...[cpu('nodes'), cpu('redis'), cpu('postgres')],
          ],
        ],
      },
    ],
    comparisons: [
      comparison(
        `a group of ${SIZE}, p50 of its members`,
        `${P50_MS} ms`,
        of(0.5).map((value) => value / P50_MS),
        {
          bound: 'at most',
          value: 1,
        },
      ),
      comparison(
        `a group of ${SIZE}, its last member`,
        `${LONGEST_MS} ms`,
        of(1).map((value) => value / LONGEST_MS),
        {
          bound: 'at most',
          value: 1,
        },
      ),
    ].map((each) => ({ ...each, noisy })),
    notes: [placement, ...roundNotes(rounds), disturbance(rounds, othersShares)],
    raw: rounds,
  }
}
