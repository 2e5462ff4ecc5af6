import type { Database } from 'bun:sqlite'
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { patiently } from './connection.ts'

export interface Migration {
  readonly number: number
  readonly name: string
  readonly sql: string
}

const directory = new URL('../../../sql/sqlite/', import.meta.url)

/** The numbered files of packages/server/sql/sqlite, in order. */
export function readMigrations(from: URL = directory): Migration[] {
  const names = readdirSync(fileURLToPath(from)).filter((name) => name.endsWith('.sql'))
  return names.sort().map((name, index) => {
    const number = Number(/^(\d{4})_[a-z0-9_]+\.sql$/.exec(name)?.[1])
    if (number !== index + 1) throw new Error(`Migration ${name}: the files are numbered 0001_, 0002_ and so on.`)
    return { number, name, sql: readFileSync(new URL(name, from), 'utf8') }
  })
}

/**
 * Brings the schema up to date: each file in one transaction, recorded with its checksum. Forward only. Safe when
 * several processes start at once: each looks again once it has the write lock.
 */
export async function migrate(db: Database, now: number, migrations = readMigrations()): Promise<void> {
  await patiently(() => db.run('PRAGMA journal_mode = WAL'))
  await patiently(() => applyPending(db, now, migrations))
}

interface Applied {
  number: number
  name: string
  checksum: string
}

function applyPending(db: Database, now: number, migrations: readonly Migration[]): void {
  if (isRecorded(db) && checkApplied(db, migrations) === migrations.length) return
  for (let done = -1; done < migrations.length; ) {
    db.run('BEGIN IMMEDIATE')
    try {
      db.run(
        `CREATE TABLE IF NOT EXISTS schema_migrations (
           number INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, applied_at INTEGER NOT NULL
         ) STRICT`,
      )
      done = checkApplied(db, migrations)
      const next = migrations[done]
      if (next !== undefined) {
        db.run(next.sql)
        db.query('INSERT INTO schema_migrations VALUES (?, ?, ?, ?)').run(next.number, next.name, checksumOf(next), now)
        done++
      }
      db.run('COMMIT')
    } catch (error) {
      db.run('ROLLBACK')
      throw error
    }
  }
}

function isRecorded(db: Database): boolean {
  return db.query("SELECT 1 FROM sqlite_schema WHERE name = 'schema_migrations'").get() !== null
}

/** How many are applied; refuses a database that this code does not know. */
function checkApplied(db: Database, migrations: readonly Migration[]): number {
  const applied = db.query<Applied, []>('SELECT number, name, checksum FROM schema_migrations ORDER BY number').all()
  for (const [index, row] of applied.entries()) {
    const known = migrations[index]
    if (known === undefined) {
      throw new Error(
        `The database is newer than this version of Ringwire: it has schema ${applied.length} (${row.name}), ` +
          `this version knows ${migrations.length}.`,
      )
    }
    if (known.number !== row.number || checksumOf(known) !== row.checksum) {
      throw new Error(`The database was made by another ${known.name}: a migration never changes once it is applied.`)
    }
  }
  return applied.length
}

function checksumOf(migration: Migration): string {
  return createHash('sha256').update(migration.sql).digest('hex')
}
