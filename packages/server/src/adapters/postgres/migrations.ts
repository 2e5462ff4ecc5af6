import { accessSync, constants } from 'node:fs'
import type { SQL } from 'bun'
import { checkApplied, checksumOf, type Migration, readMigrations } from '../sql/migration-files.ts'
import { openClient } from './connections.ts'
import { unavailable } from './failures.ts'

export const migrationFiles = new URL('../../../sql/postgres/', import.meta.url)

/** Which of the locks that any program may take; a number without a meaning. */
const lockKey = 7_164_927_201

/** Another node may be at the same migration: it is waited for this long. A migration itself takes as long as it takes. */
const session = { application_name: 'ringwire', lock_timeout: '60000', statement_timeout: '0' }

/**
 * Brings the schema up to date: each file in one transaction, recorded with its checksum. Forward only. Safe when several
 * nodes start at once: one of them does it, the others wait and then look again.
 */
export async function migrate(url: string, now: number, migrations = readMigrations(migrationFiles)): Promise<void> {
  checkRootCertificate(url)
  const sql = openClient(url, session, () => {})
  try {
    if ((await isRecorded(sql)) && checkApplied(await appliedTo(sql), migrations) === migrations.length) return
    await sql.unsafe(`SELECT pg_advisory_lock(${lockKey})`)
    await checkEncoding(sql)
    await sql.unsafe(
      `CREATE TABLE IF NOT EXISTS schema_migrations (
         number integer PRIMARY KEY, name text NOT NULL, checksum text NOT NULL, applied_at bigint NOT NULL
       )`,
    )
    for (const migration of migrations.slice(checkApplied(await appliedTo(sql), migrations))) {
      await apply(sql, migration, now)
    }
  } finally {
    // The end of the session gives the lock back.
    await sql.close({ timeout: 0 })
  }
}

/**
 * One message to the server, which makes it one transaction. It begins with the record: where the lock was lost with a
 * connection, and another node was faster, that clashes and nothing happens.
 */
async function apply(sql: SQL, migration: Migration, now: number): Promise<void> {
  const { number, name } = migration
  const record = `INSERT INTO schema_migrations VALUES (${number}, '${name}', '${checksumOf(migration)}', ${Math.round(now)});`
  await sql.unsafe(`BEGIN;\n${record}\n${migration.sql}\n;COMMIT`).simple()
}

/** The client would say only that some path cannot be used. */
function checkRootCertificate(url: string): void {
  const file = new URL(url).searchParams.get('sslrootcert')
  try {
    if (file !== null) accessSync(file, constants.R_OK)
  } catch {
    throw unavailable(`sslrootcert names no readable file: ${file}`)
  }
}

async function isRecorded(sql: SQL): Promise<boolean> {
  const [row] = await sql.unsafe("SELECT to_regclass('schema_migrations') IS NOT NULL AS recorded")
  return row.recorded
}

async function appliedTo(sql: SQL) {
  return await sql.unsafe('SELECT number, name, checksum FROM schema_migrations ORDER BY number')
}

async function checkEncoding(sql: SQL): Promise<void> {
  const [row] = await sql.unsafe("SELECT current_setting('server_encoding') AS encoding")
  if (row.encoding !== 'UTF8') throw new Error(`The encoding of the database is ${row.encoding}; Ringwire needs UTF8.`)
}
