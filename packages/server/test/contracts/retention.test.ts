import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { SQL } from 'bun'
import { type Backend, openBackend } from '../../src/backend.ts'
import { type Environment, loadConfig } from '../../src/config/config.ts'
import { createLogger } from '../../src/observability/logger.ts'
import { createMetrics } from '../../src/observability/metrics.ts'
import { temporaryDataDir } from '../../src/stores/sqlite/open.fixture.ts'
import { type Databases, openDatabases } from '../support/postgres.ts'

/** What the service opens, with RINGWIRE_RETENTION_DAYS. */
let server: Databases
const dir = temporaryDataDir()
beforeAll(async () => {
  server = await openDatabases()
})
afterAll(async () => {
  dir.remove()
  await server.dispose()
})

const dayMs = 86_400_000
const removedText = 'calls that were old enough are removed'

/** Opens the service's stores; `removed` resolves with what the log says of the first calls that were removed. */
async function open(env: Environment): Promise<{ backend: Backend; removed: Promise<number> }> {
  const loaded = loadConfig({ RINGWIRE_DATA_DIR: dir.path, ...env })
  if (!loaded.ok) throw new Error(loaded.problems.join())
  const { promise: removed, resolve } = Promise.withResolvers<number>()
  const write = (line: string) => {
    const { message, count } = JSON.parse(line)
    if (message === removedText) resolve(count)
  }
  const backend = await openBackend({
    config: loaded.config,
    logger: createLogger({ level: 'info', destination: { write } }),
    meter: createMetrics({ node: 'n', version: '1', stores: ['database'] }),
    retentionDelayMs: 1,
    sockets: () => 0,
    onDeath() {},
    onCall() {},
    onTold() {},
  })
  return { backend, removed }
}

/** Calls that ended the given numbers of days ago, as both stores keep them. */
const insertSql = (days: readonly number[]) =>
  days
    .map(
      (day, n) => `INSERT INTO calls (
        product, call_uuid, caller_role, caller_user_id, callee_role, callee_user_id, context_type, context_id, call_type,
        started_at, ring_timeout_ms, version, status, ring_expires_at, caller_place, ended_at, end_reason
      ) VALUES ('shop', '00000000-0000-4000-8000-00000000000${n}', 'r', 'a', 'r', 'b', 't', 'c', 'audio', 0, 1, 1, 'ended',
        1, '{}', ${Date.now() - day * dayMs}, 'x')`,
    )
    .join(';')
const ages = [91, 89, 31, 29]

/** Every length of retention in turn on one store: how many calls it removes. */
async function removedFrom(env: Environment, fill: () => Promise<unknown>): Promise<number[]> {
  await (await open({ ...env, RINGWIRE_RETENTION_DAYS: 'off' })).backend.close()
  await fill()
  const keeping = await open({ ...env, RINGWIRE_RETENTION_DAYS: 'off' })
  // By now a removal would have begun, and this waits behind it.
  await Bun.sleep(5)
  await keeping.backend.stores.calls.tryWrite()
  await keeping.backend.close()
  const counts: number[] = []
  for (const days of ['', '30']) {
    const { backend, removed } = await open({ ...env, RINGWIRE_RETENTION_DAYS: days })
    counts.push(await removed)
    await backend.close()
  }
  return counts
}

test('the service keeps calls in SQLite for 90 days, for as many as the setting says, or for ever', async () => {
  const fill = async () => {
    const db = new Database(dir.database, { readwrite: true })
    db.run(insertSql(ages))
    db.close()
  }
  expect(await removedFrom({}, fill)).toEqual([1, 2])
})

test('the service keeps calls in PostgreSQL for 90 days, for as many as the setting says, or for ever', async () => {
  const DATABASE_URL = await server.database()
  const fill = async () => {
    const sql = new SQL({ url: DATABASE_URL, max: 1 })
    await sql.unsafe(insertSql(ages))
    await sql.close()
  }
  expect(await removedFrom({ DATABASE_URL }, fill)).toEqual([1, 2])
})
