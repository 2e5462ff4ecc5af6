/**
 * How long operations take beside a million calls in PostgreSQL: a server of its own on this machine, with fsync.
 *
 *   bun packages/server/test/durability/million.measure.ts
 */
import { openPostgres } from '../../src/adapters/postgres/open.ts'
import { busy, days, few, fillPostgres, million, product } from '../support/million.ts'
import { Postgres } from '../support/postgres.ts'

const dayMs = 86_400_000
const server = await Postgres.start({ max_wal_size: '2GB' })
try {
  const url = await server.database()
  await (await openPostgres({ url })).close()
  await fillPostgres(url)
  const { calls, timeline, webhooks, prune, close } = await openPostgres({ url })
  const page = { limit: 100, after: undefined }
  console.log('| what | took |')
  console.log('|---|---|')
  for (const [who, participant] of Object.entries({ few, busy })) {
    await measure(`a page of the history of ${who}`, () => calls.history({ ...page, participant }))
    await measure(`a page of the list of ${who}, of a rare status`, () =>
      calls.list({ ...page, product, participant, statuses: ['missed'], since: 0 }),
    )
    await measure(`erasing ${who}: timelines`, () => timeline.forgetParticipant(participant))
    await measure(`erasing ${who}: calls`, () => calls.erase(participant))
    await measure(`erasing ${who}: ${million.deliveries} kept webhooks`, () => webhooks.erase(participant))
  }
  await measure('retention of half of the calls', () => prune(Date.now() - (days / 2) * dayMs))
  await close()
} finally {
  await server.dispose()
}

async function measure(what: string, work: () => unknown): Promise<void> {
  const began = performance.now()
  const result = await work()
  const count = typeof result === 'number' ? ` (${result.toLocaleString('en')})` : ''
  console.log(`| ${what}${count} | ${Math.round(performance.now() - began).toLocaleString('en')} ms |`)
}
