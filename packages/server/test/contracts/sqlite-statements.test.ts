import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { openConnection } from '../../src/stores/sqlite/connection.ts'
import { temporaryDataDir } from '../../src/stores/sqlite/open.fixture.ts'
import { openSqlite } from '../../src/stores/sqlite/open.ts'
import { writtenIn } from '../support/executed-plans.ts'
import { few } from '../support/million.ts'
import { recordedStatements, recordStatements } from '../support/prepared-statements.ts'
import { useStores } from './store-walk.ts'

/*
 * The plan of each statement that the store prepares in SQLite, on both of its threads. SQLite plans without looking at
 * the rows, so the plans are those of a large store.
 */

/** Tables that do not grow with use, and tables whose rows are removed as soon as they are handled. */
const small = [
  ...['product_keys', 'product_key_secrets', 'product_settings', 'webhook_removals'],
  ...['webhook_revision', 'schema_migrations', 'sqlite_schema', 'outbox', 'webhook_steps'],
]

/** Steps that read a whole table or index. The result of a part of the same statement is not one. */
function scansOf(plan: readonly string[]): string[] {
  const parts = plan.flatMap((step) => /^(?:CO-ROUTINE|MATERIALIZE) (\S+)/.exec(step)?.[1] ?? [])
  const may = new Set([...small, ...parts, 'CONSTANT', 'json_each'])
  return plan.filter((step) => {
    const name = /^SCAN (\S+)/.exec(step)?.[1]
    return step.includes('AUTOMATIC') || (name !== undefined && !may.has(name) && !name.startsWith('('))
  })
}

const dir = temporaryDataDir()
const statements = join(dir.path, 'statements')
let stop = () => {}
beforeAll(async () => {
  stop = recordStatements(statements)
  const stores = await openSqlite({
    ...{ dataDir: dir.path, synchronous: 'NORMAL', exclusive: true, commitLimitMs: 60_000 },
    startWorker: () =>
      new Worker(new URL('./recorded-writer.ts', import.meta.url), { env: { ...Bun.env, STATEMENTS: statements } }),
  })
  try {
    await useStores(stores, few)
  } finally {
    await stores.close()
    stop()
  }
})
afterAll(() => {
  stop()
  dir.remove()
})

test('each statement finds its rows through an index', () => {
  const prepared = recordedStatements(statements)
  expect(prepared.length).toBeGreaterThan(60)
  const db = openConnection(dir.database)
  const scans = prepared
    .filter((text) => /^\s*(WITH|SELECT|INSERT|UPDATE|DELETE)\b/.test(text))
    .flatMap((text) => {
      const plan = db.query<{ detail: string }, []>(`EXPLAIN QUERY PLAN ${text}`).all()
      const scanned = scansOf(plan.map(({ detail }) => detail))
      return scanned.length === 0 ? [] : [{ text, scanned }]
    })
  db.close()
  expect(scans).toEqual([])
  const written = writtenIn(new URL('../../src/stores/sqlite', import.meta.url).pathname, [
    ...['backup.ts', 'check.ts', 'content.ts', 'migrations.ts'],
  ])
  const unseen = written.filter((one) => !prepared.some(one.matches))
  expect(unseen.map(({ file, text }) => `${file.split('/').at(-1)}: ${text.slice(0, 120)}`)).toEqual([])
})
