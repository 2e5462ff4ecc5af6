import { afterAll, beforeAll } from 'bun:test'
import { SQL } from 'bun'
import { openPostgres } from '../../src/adapters/postgres/open.ts'
import { type Databases, openDatabases } from '../support/postgres.ts'
import { openHarness } from './postgres-harness.ts'
import { registerWebhooksContract } from './webhooks.ts'

let server: Databases
beforeAll(async () => {
  server = await openDatabases()
})
afterAll(() => server.dispose())

registerWebhooksContract('PostgreSQL', async () => {
  const harness = await openHarness(server)
  const other = await openPostgres({ url: harness.url })
  const sql = new SQL({ url: harness.url, max: 1 })
  return {
    store: harness.store,
    forge: harness.forge,
    webhooks: () => harness.stores().webhooks,
    other: () => other.webhooks,
    async pass(ms) {
      await sql.unsafe(
        `UPDATE webhook_deliveries
         SET due_at = due_at - $1::float8 * interval '1 ms', claimed_until = claimed_until - $1::float8 * interval '1 ms'`,
        [ms],
      )
    },
    reopen: harness.reopen,
    child: () => ['postgres', harness.url],
    async close() {
      await sql.close()
      await other.close()
      await harness.close()
    },
  }
})
