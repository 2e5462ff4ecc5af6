import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { type Migration, readMigrations } from '../../src/stores/sql/migration-files.ts'
import { openConnection } from '../../src/stores/sqlite/connection.ts'
import { migrate, migrationFiles } from '../../src/stores/sqlite/migrations.ts'
import { temporaryDataDir } from '../../src/stores/sqlite/open.fixture.ts'
import { openSqlite } from '../../src/stores/sqlite/open.ts'

let dir: ReturnType<typeof temporaryDataDir>
beforeEach(() => {
  dir = temporaryDataDir()
})
afterEach(() => dir.remove())

const first: Migration = { number: 1, name: '0001_a.sql', sql: 'CREATE TABLE a (x); INSERT INTO a VALUES (1);' }
const second: Migration = { number: 2, name: '0002_b.sql', sql: 'ALTER TABLE a ADD COLUMN y; CREATE TABLE b (z);' }

async function apply(...migrations: Migration[]): Promise<void> {
  const db = openConnection(dir.database)
  try {
    await migrate(db, 4711, migrations)
  } finally {
    db.close()
  }
}

function read(sql: string): unknown[] {
  const db = openConnection(dir.database)
  try {
    return db.query(sql).values()
  } finally {
    db.close()
  }
}

const recorded = () => read('SELECT number, name, applied_at, length(checksum) FROM schema_migrations')

describe('migrations', () => {
  test('are applied in order, once, and recorded with their checksum', async () => {
    await apply(first)
    expect(recorded()).toEqual([[1, '0001_a.sql', 4711, 64]])
    await apply(first, second)
    await apply(first, second)
    expect(recorded()).toEqual([
      [1, '0001_a.sql', 4711, 64],
      [2, '0002_b.sql', 4711, 64],
    ])
    expect(read('SELECT * FROM a')).toEqual([[1, null]])
  })

  test('one that fails leaves nothing of itself, and what came before', async () => {
    const broken = { ...second, sql: 'CREATE TABLE b (z); INSERT INTO nowhere VALUES (1);' }
    await expect(apply(first, broken)).rejects.toThrow('nowhere')
    expect(recorded().length).toBe(1)
    expect(read("SELECT name FROM sqlite_schema WHERE name = 'b'")).toEqual([])
    await apply(first, second)
    expect(recorded().length).toBe(2)
  })

  test('a database that a newer version broke is refused, and left alone; one that it added to is not', async () => {
    await apply(first, second)
    await apply(first)
    expect(recorded().length).toBe(2)
    await apply(first, second, { ...second, number: 3, name: '0003_breaking_b.sql', sql: 'DROP TABLE b' })
    await expect(apply(first)).rejects.toThrow('since 0003_breaking_b.sql it needs a newer version')
    expect(recorded().length).toBe(3)
  })

  test('an applied file that changed is refused', async () => {
    await apply(first)
    await expect(apply({ ...first, sql: `${first.sql} ` }, second)).rejects.toThrow('another 0001_a.sql')
    expect(recorded().length).toBe(1)
  })

  test('the real ones open a store; a newer database is refused by it', async () => {
    const options = { dataDir: dir.path, synchronous: 'NORMAL', exclusive: true } as const
    await (await openSqlite(options)).close()
    await (await openSqlite(options)).close()
    const known = readMigrations(migrationFiles)
    const future = { number: known.length + 1, name: '9998_future.sql', sql: 'CREATE TABLE future (x)' }
    await apply(...known, future)
    await (await openSqlite(options)).close()
    await apply(...known, future, {
      ...future,
      number: future.number + 1,
      name: '9999_breaking_it.sql',
      sql: 'SELECT 1',
    })
    await expect(openSqlite(options)).rejects.toThrow('newer than this version of Ringwire')
  })
})
