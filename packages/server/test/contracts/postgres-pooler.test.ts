import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import { Service } from '@ringwire/testkit/service'
import { callLife } from '../../src/call/decide.fixture.ts'
import { connectSession, openClient } from '../../src/stores/postgres/connections.ts'
import { openPostgres, plannerSettings } from '../../src/stores/postgres/open.ts'
import { type PgBouncer, startPgBouncer } from '../support/pgbouncer.ts'
import { type Databases, openDatabases } from '../support/postgres.ts'
import { openRedisDatabases } from '../support/redis.ts'
import { signingKeyEnv } from '../support/session-tokens.ts'

let server: Databases
let pooler: PgBouncer | undefined
beforeAll(async () => {
  server = await openDatabases()
})
afterEach(() => pooler?.stop())
afterAll(() => server.dispose())

/** The address of a new database through a pooler with these settings. */
async function through(...settings: string[]): Promise<string> {
  const direct = await server.database()
  pooler = await startPgBouncer(direct, settings)
  return pooler.url(new URL(direct).pathname.slice(1))
}

const ways = {
  'as it comes': ['pool_mode = session'],
  'that is told to ignore startup parameters': [
    'pool_mode = session',
    'ignore_startup_parameters = statement_timeout,default_transaction_isolation,enable_seqscan',
  ],
}
for (const [name, settings] of Object.entries(ways)) {
  test(`[PG1] a PgBouncer in session mode ${name}: the stores work, and their sessions are set`, async () => {
    const url = await through(...settings)
    const stores = await openPostgres({ url, nodeId: 'one', clock: { now: () => 1_000_000 } })
    for (const step of callLife()) await step(stores.calls)
    await stores.calls.tryWrite()
    await stores.close()
    const sql = openClient(url, 'ringwire', () => {})
    await connectSession(sql, { statement_timeout: '4321', ...plannerSettings })
    const [row] = await sql.unsafe(
      "SELECT current_setting('statement_timeout') AS limit, current_setting('enable_seqscan') AS scan",
    )
    expect(row).toEqual({ limit: '4321ms', scan: 'off' })
    await sql.close({ timeout: 0 })
  }, 120_000)
}

test('[PG1] a node serves through a PgBouncer in session mode', async () => {
  const redis = await openRedisDatabases()
  const env = { DATABASE_URL: await through('pool_mode = session'), REDIS_URL: await redis.database() }
  const service = new Service({ ...env, ...signingKeyEnv })
  try {
    await service.start()
    expect((await fetch(`${service.url}/readyz`, { keepalive: false })).status).toBe(200)
    const ann = await service.connect({ user_id: 'ann' })
    await ann.close()
    expect(await service.terminate()).toBe(0)
  } finally {
    await service.dispose()
    await redis.stop()
  }
}, 120_000)

for (const mode of ['transaction', 'statement']) {
  test(`[PG1] a PgBouncer in ${mode} mode stops the start, and the message says why`, async () => {
    const url = await through(`pool_mode = ${mode}`, 'ignore_startup_parameters = extra_float_digits')
    const failed = await openPostgres({ url }).then(
      async (stores) => stores.close(),
      (error) => String(error),
    )
    expect(failed).toContain('pool_mode = session')
    // Nothing was made before.
    const [{ tables }] = await server.query(
      "SELECT count(*)::int AS tables FROM pg_tables WHERE schemaname = 'public'",
      server.url(new URL(url).pathname.slice(1)),
    )
    expect(tables).toBe(0)
  }, 120_000)
}
