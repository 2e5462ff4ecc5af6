import type { Database } from 'bun:sqlite'
import { packageRoot } from '../../config/package-root.ts'
import { type Applied, checkApplied, checksumOf, type Migration, readMigrations } from '../sql/migration-files.ts'
import { patiently } from './connection.ts'

export const migrationFiles = new URL('sql/sqlite/', packageRoot)

/**
 * Brings the schema up to date: each file in one transaction, recorded with its checksum. Forward only. Safe when
 * several processes start at once: each looks again once it has the write lock.
 */
export async function migrate(db: Database, now: number, migrations = readMigrations(migrationFiles)): Promise<void> {
  await patiently(() => db.run('PRAGMA journal_mode = WAL'))
  await patiently(() => applyPending(db, now, migrations))
}

function applyPending(db: Database, now: number, migrations: readonly Migration[]): void {
  if (isRecorded(db) && checkApplied(appliedTo(db), migrations) === migrations.length) return
  for (let done = -1; done < migrations.length; ) {
    db.run('BEGIN IMMEDIATE')
    try {
      db.run(
        `CREATE TABLE IF NOT EXISTS schema_migrations (
           number INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, applied_at INTEGER NOT NULL
         ) STRICT`,
      )
      done = checkApplied(appliedTo(db), migrations)
      const next = migrations[done]
      if (next !== undefined) {
        db.run(next.sql)
        db.query('INSERT INTO schema_migrations (number, name, checksum, applied_at) VALUES (?, ?, ?, ?)').run(
          next.number,
          next.name,
          checksumOf(next),
          now,
        )
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

function appliedTo(db: Database): Applied[] {
  return db.query<Applied, []>('SELECT number, name, checksum FROM schema_migrations ORDER BY number').all()
}
