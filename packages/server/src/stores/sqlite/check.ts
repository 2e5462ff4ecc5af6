import { Database } from 'bun:sqlite'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { CheckedStore } from '../../ports/store-check.ts'
import { type Applied, checkApplied, readMigrations } from '../sql/migration-files.ts'
import { databaseFile } from './data-dir.ts'
import { migrationFiles } from './migrations.ts'

/** Looks at the database of a data directory, also beside a running service, and changes nothing. */
export function checkSqlite(dataDir: string): CheckedStore {
  const path = join(dataDir, databaseFile)
  if (!existsSync(path)) return { problems: [], warnings: [] }
  try {
    const db = new Database(path, { readonly: true })
    try {
      const isRecorded = db.query("SELECT 1 FROM sqlite_master WHERE name = 'schema_migrations'").get() !== null
      const sql = 'SELECT number, name, checksum FROM schema_migrations ORDER BY number'
      if (isRecorded) checkApplied(db.query<Applied, []>(sql).all(), readMigrations(migrationFiles))
      return { problems: [], warnings: [] }
    } finally {
      db.close()
    }
  } catch (error) {
    return { problems: [`${path}: ${error instanceof Error ? error.message : String(error)}`], warnings: [] }
  }
}
