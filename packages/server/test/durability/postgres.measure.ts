/**
 * How many transitions PostgreSQL takes, with several numbers of batches in flight: a server of its own on this machine,
 * with fsync, and whole lives of calls as the service drives them.
 *
 *   bun packages/server/test/durability/postgres.measure.ts
 */

import { callLife } from '../../src/call/decide.fixture.ts'
import { openPostgres } from '../../src/stores/postgres/open.ts'
import { Postgres } from '../support/postgres.ts'

const warmUpMs = 500
const measuredMs = 4000

const server = await Postgres.start()
try {
  console.log('| batches in flight | calls at once | transitions/s | per commit | CPU per transition | ms, 50 / 99 % |')
  console.log('|---|---|---|---|---|---|')
  for (const writers of [1, 2, 4]) for (const callers of [1, 10, 200]) await measure(writers, callers)
} finally {
  await server.dispose()
}

async function measure(writers: number, callers: number): Promise<void> {
  const stores = await openPostgres({ url: await server.database(), writers })
  let stopped = false
  let times: number[] = []
  const running = Array.from({ length: callers }, async () => {
    while (!stopped) {
      for (const step of callLife()) {
        const startedAt = performance.now()
        await step(stores.calls)
        times.push(performance.now() - startedAt)
      }
    }
  })
  await Bun.sleep(warmUpMs)
  times = []
  const { commits } = stores.counts()
  const cpu = process.cpuUsage()
  const startedAt = performance.now()
  await Bun.sleep(measuredMs)
  const seconds = (performance.now() - startedAt) / 1000
  const { user, system } = process.cpuUsage(cpu)
  const count = times.length
  const perCommit = count / (stores.counts().commits - commits)
  const sorted = times.toSorted((a, b) => a - b)
  const at = (share: number) => (sorted[Math.floor(share * sorted.length)] ?? 0).toFixed(2)
  stopped = true
  await Promise.all(running)
  await stores.close()
  const figures = [
    writers,
    callers,
    Math.round(count / seconds).toLocaleString('en'),
    perCommit.toFixed(1),
    `${((user + system) / count).toFixed(0)} µs`,
    `${at(0.5)} / ${at(0.99)}`,
  ]
  console.log(`| ${figures.join(' | ')} |`)
}
