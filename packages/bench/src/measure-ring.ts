// From invite to ringing across nodes, beside a bare commit on the same PostgreSQL server.
import type { Result } from './jobs/job.ts'
import { type Bench, comparison, type MeasurementResult } from './measurement.ts'
import { missingForNodes, places, startNodes, startPostgres } from './nodes.ts'
import { type Part, type PartsLoad, partsBetween, readParts } from './parts.ts'
import { count } from './report.ts'
import { alternate, disturbance, isNoisy, type Rounds, roundNotes, series } from './rounds.ts'
import { LatencyHistogram, median, ratios } from './statistics.ts'

const WARMUP_MS = 50
const FIRST_WARMUP_MS = 2000
const COMPARED = ['commit', 'together', 'apart'] as const
type Compared = (typeof COMPARED)[number]
const TITLES: Record<Compared, string> = {
  commit: 'bare commit of one row',
  together: 'invite to ringing, one node',
  apart: 'invite to ringing, two nodes',
}
/** What the way through Redis and two nodes may cost, beside two commits. */
const ALLOWED_US = 3000

interface Slice {
  result: Result
  parts: PartsLoad
}

export async function measureRing(bench: Bench): Promise<MeasurementResult> {
  const missing = missingForNodes('ring')
  if (missing !== undefined) return { name: 'ring', tables: [], comparisons: [], notes: [missing], raw: null }
  const where = places(bench.placement)
  const { postgres, stop } = await startPostgres(where.stores)
  try {
    const { target, parts, stop: stopNodes } = await startNodes(postgres, where, bench.directory)
    try {
      const [generator] = bench.generators
      const jobs: Record<Compared, number> = {
        commit: await generator.prepare({ kind: 'commit', url: await postgres.database() }),
        together: await generator.prepare({ kind: 'ring', target, pair: 0, spread: 'together' }),
        apart: await generator.prepare({ kind: 'ring', target, pair: 1, spread: 'apart' }),
      }
      for (const job of Object.values(jobs)) await run(bench, job, parts, FIRST_WARMUP_MS)
      const measure = (compared: Compared) => run(bench, jobs[compared], parts, WARMUP_MS)
      const rounds = await alternate(bench, bench.rounds, COMPARED, measure, othersShares)
      for (const job of Object.values(jobs)) await generator.release(job)
      return report(rounds, where.note)
    } finally {
      await stopNodes()
    }
  } finally {
    await stop()
  }
}

async function run(bench: Bench, job: number, parts: readonly Part[], warmupMs: number): Promise<Slice> {
  const before = readParts(parts)
  const result = await bench.generators[0].run(job, { window: 1, warmupMs, measureMs: bench.seconds * 1000 })
  return { result, parts: partsBetween(before, readParts(parts)) }
}

const p50 = ({ result }: Slice) => new LatencyHistogram(result.latencies).percentile(0.5)
const othersShares = ({ parts }: Slice) => [parts.othersShare]

function report(rounds: Rounds<Compared, Slice>, placement: string): MeasurementResult {
  const row = (compared: Compared) => {
    const latencies = new LatencyHistogram()
    for (const round of rounds.rounds) latencies.add(round.values[compared].result.latencies)
    const of = (share: number) => `${latencies.percentile(share)} µs`
    const each = median(series(rounds, compared, ({ result }) => result.count))
    return [TITLES[compared], count(each), of(0.5), of(0.99)]
  }
  const allowed = series(rounds, 'commit', p50).map((us) => 2 * us + ALLOWED_US)
  const compare = (compared: Compared) => ratios(series(rounds, compared, p50), allowed)
  const against = `2 × a bare commit + ${ALLOWED_US / 1000} ms`
  const noisy = isNoisy(rounds, othersShares)
  return {
    name: 'ring',
    tables: [{ title: 'Ring: one after another', head: ['', 'in a round', 'p50', 'p99'], rows: COMPARED.map(row) }],
    comparisons: [
      comparison('invite to ringing across nodes, p50', against, compare('apart'), { bound: 'at most', value: 1 }),
      comparison('invite to ringing on one node, p50', against, compare('together'), null),
    ].map((each) => ({ ...each, noisy })),
    notes: [
      placement,
      ...roundNotes(rounds),
      disturbance(rounds, othersShares),
      'Every row that was inserted is there.',
    ],
    raw: rounds,
  }
}
