import { afterAll, beforeAll, expect, test } from 'bun:test'
import { SQL } from 'bun'
import { Connections } from '../../src/stores/postgres/connections.ts'
import { createGlances } from '../../src/stores/postgres/glances.ts'
import { openPostgres } from '../../src/stores/postgres/open.ts'
import { countsSql } from '../../src/stores/postgres/webhook-endpoints.ts'
import { createWebhookStore, dueSql } from '../../src/stores/postgres/webhooks.ts'
import { createSubscribers } from '../../src/stores/sql/subscribers.ts'
import { type Databases, openDatabases } from '../support/postgres.ts'
import { openHarness } from './postgres-harness.ts'
import { endpoint, registerWebhooksContract } from './webhooks.ts'

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

/** Holds the answers to reads of endpoints until a test lets them go on. */
class SlowConnections extends Connections {
  onRead: () => Promise<void> = async () => {}

  override async run(...[text, values, options]: Parameters<Connections['run']>) {
    const rows = await super.run(text, values, options)
    if (text.includes('WHERE w.revision >')) await this.onRead()
    return rows
  }
}

test('[HOOK3] two refreshes at once, and an endpoint removed between them: all others stay known', async () => {
  const url = await server.database()
  const other = await openPostgres({ url })
  const connections = new SlowConnections({ url, limitMs: 5_000, session: {} }, 2)
  const webhooks = createWebhookStore(
    connections,
    createGlances(connections, [[countsSql, dueSql]]),
    createSubscribers(),
  )
  const [first, second, gone] = [endpoint(), endpoint(), endpoint()]
  for (const one of [first, second, gone]) await webhooks.addEndpoint(one)
  await webhooks.refresh()

  const [isRead, goOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  connections.onRead = async () => {
    connections.onRead = async () => {}
    isRead.resolve()
    await goOn.promise
  }
  await other.webhooks.changeEndpoint(first.product, first.id, { description: 'changed' })
  const early = webhooks.refresh()
  await isRead.promise
  await other.webhooks.removeEndpoint(gone.product, gone.id)
  const late = webhooks.refresh()
  // It may wait for the first one.
  await Promise.race([late, Bun.sleep(500)])
  goOn.resolve()
  const ids = (await Promise.all([early, late])).map((known) => known.map(({ id }) => id))
  for (const known of ids) expect(known).toEqual(expect.arrayContaining([first.id, second.id]))
  expect(ids[1]).not.toContain(gone.id)
  await Promise.all([connections.close(), other.close()])
})
