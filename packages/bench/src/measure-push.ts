// From a call to the request at a push service, for callees who are not connected.
import { makeVapidKey } from '../../server/src/config/push-keys.ts'
import type { Result } from './jobs/job.ts'
import { type Bench, comparison, type MeasurementResult, targetOf } from './measurement.ts'
import { startReceiver } from './receivers.ts'
import { count } from './report.ts'
import { alternate, disturbance, roundNotes, series } from './rounds.ts'
import { median, percentile } from './statistics.ts'
import { startSystem } from './systems.ts'

const PAIRS = 10
const PACE = 20
const WARMUP_MS = 3000
const MEASURE_MS = 5000
const P50_MS = 50

export async function measurePush(bench: Bench): Promise<MeasurementResult> {
  const { placement, directory, generators } = bench
  const [generator] = generators
  const receiver = await startReceiver(placement, directory)
  const settings = {
    RINGWIRE_VAPID_PRIVATE_KEY: makeVapidKey().privateKey,
    RINGWIRE_VAPID_SUBJECT: 'mailto:calls@example.com',
    RINGWIRE_VAPID_URL: receiver.url,
  }
  const server = await startSystem('ringwire', placement.serverCore, directory, { settings })
  try {
    const job = {
      kind: 'wake',
      target: targetOf(server),
      pairs: PAIRS,
      perSecond: PACE,
      receiver: receiver.url,
    } as const
    const id = await generator.prepare(job)
    const run = (measureMs: number) => generator.run(id, { window: 0, warmupMs: 0, measureMs })
    await run(WARMUP_MS)
    const othersShares = ({ load }: Result) => [load.othersShare]
    const rounds = await alternate(bench, bench.rounds, ['push'], () => run(MEASURE_MS), othersShares)
    await generator.release(id)
    const of = (share: number) => series(rounds, 'push', ({ samples = [] }) => percentile(samples, share) / 1000)
    const ms = (share: number) => median(of(share)).toFixed(1)
    return {
      name: 'push',
      tables: [
        {
          title: `Push: ${PACE} calls a second to people who are not connected, on one node`,
          head: ['', 'pushes', 'p50, ms', 'p99, ms'],
          rows: [
            [
              'call.invite to the push request',
              count(median(series(rounds, 'push', (r) => r.count))),
              ms(0.5),
              ms(0.99),
            ],
          ],
        },
      ],
      comparisons: [
        comparison('push, ms from invite to request, p50', 'the target itself', of(0.5), {
          bound: 'at most',
          value: P50_MS,
        }),
      ],
      notes: [...roundNotes(rounds), disturbance(rounds, othersShares)],
      raw: rounds,
    }
  } finally {
    await server.stop()
    await receiver.stop()
  }
}
