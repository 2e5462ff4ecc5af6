import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { soon } from '@ringwire/testkit/patience'
import { SQL } from 'bun'
import { StoreError } from '../../src/ports/store-error.ts'
import { migrate, migrationFiles } from '../../src/stores/postgres/migrations.ts'
import { openPostgres } from '../../src/stores/postgres/open.ts'
import { type Migration, readMigrations } from '../../src/stores/sql/migration-files.ts'
import { type Databases, openDatabases } from '../support/postgres.ts'

const first: Migration = { number: 1, name: '0001_a.sql', sql: 'CREATE TABLE a (x integer); INSERT INTO a VALUES (1);' }
const second: Migration = { number: 2, name: '0002_b.sql', sql: 'CREATE TABLE b (x integer); UPDATE a SET x = x + 1;' }
const third: Migration = { number: 3, name: '0003_c.sql', sql: 'ALTER TABLE a ADD COLUMN y text;' }
const broken: Migration = {
  number: 2,
  name: '0002_b.sql',
  sql: 'CREATE TABLE b (x integer); UPDATE nowhere SET x = 1;',
}

describe('migrations', () => {
  let server: Databases
  let url: string
  beforeAll(async () => {
    server = await openDatabases()
  })
  beforeEach(async () => {
    url = await server.database()
  })
  afterAll(() => server.dispose())

  const numbers = async () =>
    (await server.query('SELECT number FROM schema_migrations ORDER BY number', url)).map(({ number }) => number)
  const tables = async () =>
    (
      await server.query(
        "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace",
        url,
      )
    ).map(({ relname }) => relname)
  const failure = (action: Promise<unknown>) => action.then(() => undefined, String)

  test('run once each, in order, and only forward', async () => {
    await migrate(url, 1, [first])
    await migrate(url, 2, [first, second])
    await migrate(url, 3, [first, second])
    expect(await numbers()).toEqual([1, 2])
    expect((await server.query('SELECT x FROM a', url))[0]?.x).toBe(2)
  })

  test('one that fails leaves nothing behind, and the next start goes on', async () => {
    expect(await failure(migrate(url, 1, [first, broken]))).toContain('nowhere')
    expect(await numbers()).toEqual([1])
    expect(await tables()).not.toContain('b')
    await migrate(url, 2, [first, second])
    expect(await numbers()).toEqual([1, 2])
  })

  test('one whose table is read for long waits for it in short turns', async () => {
    await migrate(url, 1, [first, second])
    const backup = new SQL({ url, max: 1 })
    await backup.unsafe('BEGIN')
    await backup.unsafe('SELECT * FROM a')
    let isDone = false
    const migrating = migrate(url, 1, [first, second, third]).finally(() => {
      isDone = true
    })
    let longest = 0
    // Others read and write meanwhile; each of them waits behind the migration for a turn at the most.
    for (const until = performance.now() + 4000; performance.now() < until; ) {
      const began = performance.now()
      await server.query('UPDATE a SET x = x + 1', url)
      longest = Math.max(longest, performance.now() - began)
    }
    expect(isDone).toBe(false)
    expect(longest).toBeGreaterThan(300)
    expect(longest).toBeLessThan(soon(2_500))
    await backup.unsafe('COMMIT')
    await migrating
    await backup.close()
    expect(await numbers()).toEqual([1, 2, 3])
  })

  test('are safe when several nodes start at once', async () => {
    await Promise.all(Array.from({ length: 12 }, () => migrate(url, 1, [first, second])))
    expect(await numbers()).toEqual([1, 2])
    expect((await server.query('SELECT x FROM a', url))[0]?.x).toBe(2)
    const fresh = await server.database()
    const stores = await Promise.all(
      Array.from({ length: 6 }, () => openPostgres({ url: fresh, readers: 1, writers: 1 })),
    )
    await Promise.all(stores.map((store) => store.calls.tryWrite()))
    await Promise.all(stores.map((store) => store.close()))
  })

  test('a database that a newer version broke is refused, and one whose migration was another', async () => {
    await migrate(url, 1, [first, second])
    expect(await failure(migrate(url, 1, [{ ...first, sql: 'SELECT 1' }, second]))).toContain('another 0001_a.sql')
    await migrate(url, 1, [first])
    await migrate(url, 1, [first, second, { ...third, name: '0003_breaking_a.sql' }])
    const refusal = 'since 0003_breaking_a.sql it needs a newer version'
    for (const known of [[first], [first, second]]) expect(await failure(migrate(url, 1, known))).toContain(refusal)
    expect(await numbers()).toEqual([1, 2, 3])
  })

  test('the real ones open a store; a newer database is refused by it', async () => {
    const known = readMigrations(migrationFiles)
    await (await openPostgres({ url })).close()
    const later = { number: known.length + 1, name: '0098_later.sql', sql: 'SELECT 1;' }
    await migrate(url, 2, [...known, later])
    await (await openPostgres({ url })).close()
    await migrate(url, 2, [...known, later, { ...later, number: later.number + 1, name: '0099_breaking_it.sql' }])
    expect(await failure(openPostgres({ url }))).toContain('newer than this version')
  })

  test('timelines compare their product as calls do, also where an operator has built the indexes or failed to', async () => {
    const known = readMigrations(migrationFiles)
    const before = known.slice(0, 19)
    const byCall = 'INDEX CONCURRENTLY call_timeline_by_call ON call_timeline (product COLLATE "C", call_uuid, id)'
    const byAsker = "INDEX CONCURRENTLY call_timeline_by_asker ON call_timeline (user_id, role) WHERE role <> ''"
    const names = ['call_timeline_by_call', 'call_timeline_by_asker']
    const prepare = {
      nothing: async () => {},
      'the indexes': async (sql: SQL) => {
        await sql.unsafe(`CREATE UNIQUE ${byCall}`)
        await sql.unsafe(`CREATE ${byAsker}`)
      },
      'indexes that were given up': async (sql: SQL) => {
        await sql.unsafe(`CREATE ${byCall}`)
        await sql.unsafe(`CREATE ${byAsker}`)
        for (const name of names)
          await sql.unsafe(`UPDATE pg_index SET indisvalid = false WHERE indexrelid = '${name}'::regclass`)
      },
    }
    const filesOf = async (sql: SQL) =>
      (
        await sql.unsafe(`SELECT pg_relation_filenode(indexrelid)::int AS file FROM pg_index
          WHERE indrelid = 'call_timeline'::regclass ORDER BY file`)
      ).map(({ file }: { file: number }) => file)
    for (const [what, prepared] of Object.entries(prepare)) {
      const database = await server.database()
      await migrate(database, 1, before)
      const sql = new SQL({ url: database, max: 1 })
      await sql.unsafe("INSERT INTO call_timeline VALUES ('shop', 'u', 'a', 1, 'caller', '', '', '{}')")
      await prepared(sql)
      const files = await filesOf(sql)
      await migrate(database, 1, known.slice(0, 20))
      const built = (await filesOf(sql)).filter((file: number) => !files.includes(file))
      expect([what, built.length]).toEqual([what, what === 'the indexes' ? 0 : 2])
      const unlike = await sql.unsafe(`
        SELECT c.attname FROM pg_attribute c JOIN pg_attribute t USING (attname)
        WHERE c.attrelid = 'calls'::regclass AND t.attrelid = 'call_timeline'::regclass
          AND attname IN ('product', 'call_uuid') AND c.attcollation <> t.attcollation`)
      const keys = await sql.unsafe(`
        SELECT indexrelid::regclass::text AS name, indisvalid AS is_valid FROM pg_index
        WHERE indrelid = 'call_timeline'::regclass AND indisunique`)
      const rows = await sql.unsafe('SELECT id FROM call_timeline')
      expect([what, unlike.length, [...keys], rows.length]).toEqual([
        ...[what, 0, [{ name: 'call_timeline_pkey', is_valid: true }], 1],
      ])
      await sql.close()
    }
  })

  test('a database that is not UTF8 is refused', async () => {
    await server.query("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0 LOCALE 'C'")
    expect(await failure(openPostgres({ url: server.url('latin') }))).toContain('needs UTF8')
  })

  test('a server that is not there is one StoreError without the password', async () => {
    const nowhere = 'postgres://user:the-password@127.0.0.1:1/db'
    const error = await openPostgres({ url: nowhere }).catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(StoreError)
    expect(String(error)).not.toContain('the-password')
    expect(await failure(openPostgres({ url: `${server.url('missing')}` }))).toContain('"missing" does not exist')
  })
})
