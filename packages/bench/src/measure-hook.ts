// What a backend that never answers costs the invites of another product.
import type { Result } from './jobs/job.ts'
import { type Bench, comparison, type MeasurementResult, targetOf } from './measurement.ts'
import { setInviteHook, startReceiver } from './receivers.ts'
import { count } from './report.ts'
import { alternate, disturbance, isNoisy, type Rounds, roundNotes, series } from './rounds.ts'
import { LatencyHistogram, median, ratios } from './statistics.ts'
import { startSystem } from './systems.ts'
import { bootstrapKey, keyOf, productKey } from './tokens.ts'

const WARMUP_MS = 200
const FIRST_WARMUP_MS = 3000
/** A slice has to hold some thousands of invites, or their p99 is that of a few. In ms. */
const SLICE_MS = 3000
/** Two seconds of them fill the fifty questions that a product may have open on a node [HOOK5]. */
const OTHERS = { callers: 100, perSecond: 25 }
const WAYS = ['quiet', 'answering', 'hanging'] as const
type Way = (typeof WAYS)[number]
const TITLES: Record<Way, string> = {
  quiet: 'nobody else invites',
  answering: `${OTHERS.perSecond} invites/s elsewhere, refused at once`,
  hanging: `${OTHERS.perSecond} invites/s elsewhere, never answered`,
}

export async function measureHook(bench: Bench): Promise<MeasurementResult> {
  const { placement, directory, generators } = bench
  const [generator] = generators
  const keys = { answering: keyOf('answering'), hanging: keyOf('hanging') }
  const receiver = await startReceiver(placement, directory)
  const settings = {
    RINGWIRE_WEBHOOK_ALLOW: '127.0.0.1',
    RINGWIRE_BOOTSTRAP_KEYS: [productKey, ...Object.values(keys)].map(bootstrapKey).join(';'),
  }
  const server = await startSystem('ringwire', placement.serverCore, directory, { settings })
  try {
    const target = targetOf(server)
    const jobs: Partial<Record<Way, number>> = {}
    for (const [pair, way] of WAYS.entries()) {
      const key = way === 'quiet' ? undefined : keys[way]
      if (key !== undefined) await setInviteHook(server.port, `${receiver.url}/invites/${way}`, key)
      const others = key && { key, ...OTHERS }
      jobs[way] = await generator.prepare({ kind: 'hook', target, pair, ...(others && { others }) })
      await generator.run(jobs[way]!, { window: 1, warmupMs: 0, measureMs: FIRST_WARMUP_MS })
    }
    const measureMs = Math.max(SLICE_MS, bench.seconds * 1000)
    const measure = (way: Way) => generator.run(jobs[way]!, { window: 1, warmupMs: WARMUP_MS, measureMs })
    const rounds = await alternate(bench, bench.rounds, WAYS, measure, othersShares)
    for (const job of Object.values(jobs)) await generator.release(job)
    return report(rounds)
  } finally {
    await server.stop()
    await receiver.stop()
  }
}

const percentileOf = (share: number) => (result: Result) => new LatencyHistogram(result.latencies).percentile(share)
const othersShares = (result: Result) => [result.load.othersShare]

function report(rounds: Rounds<Way, Result>): MeasurementResult {
  const row = (way: Way) => {
    const middle = (figure: (result: Result) => number) => median(series(rounds, way, figure))
    const us = (share: number) => `${middle(percentileOf(share))} µs`
    return [TITLES[way], count(middle((result) => result.count)), us(0.5), us(0.99)]
  }
  const p99 = (way: Way) => series(rounds, way, percentileOf(0.99))
  const against = (way: Way) => ratios(p99('hanging'), p99(way))
  const noisy = isNoisy(rounds, othersShares)
  const what = 'invite to ringing beside a backend that hangs, p99'
  return {
    name: 'hook',
    tables: [{ title: 'Hook: one after another', head: ['', 'in a round', 'p50', 'p99'], rows: WAYS.map(row) }],
    comparisons: [
      comparison(what, 'a backend that answers', against('answering'), { bound: 'at most', value: 1.1 }),
      comparison(what, 'nobody else', against('quiet'), null),
    ].map((each) => ({ ...each, noisy })),
    notes: [...roundNotes(rounds), disturbance(rounds, othersShares), 'Every invite elsewhere was refused.'],
    raw: rounds,
  }
}
