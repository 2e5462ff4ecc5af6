import type { SQL } from 'bun'
import { packageRoot } from '../../config/package-root.ts'
import { connectionName } from '../../ports/node-name.ts'
import { checkApplied, checksumOf, type Migration, readMigrations } from '../sql/migration-files.ts'
import { connectSession, openClient } from './connections.ts'
import { unavailable } from './failures.ts'

export const migrationFiles = new URL('sql/postgres/', packageRoot)

/** Which of the locks that any program may take; a number without a meaning. */
const lockKey = 7_164_927_201

/** Another node may be at the same migration: it is waited for this long. A migration itself takes as long as it takes. */
const patienceMs = 60_000
const session = { application_name: connectionName(), lock_timeout: String(patienceMs), statement_timeout: '0' }

/**
 * A transaction that waits for a table makes everybody else wait behind it, so a migration waits in short turns: a backup
 * that reads for an hour does not stop the nodes that are running.
 */
const turnMs = 1000
const pauseMs = 500

/**
 * Brings the schema up to date: each file in one transaction, recorded with its checksum. Forward only. Safe when several
 * nodes start at once: one of them does it, the others wait and then look again. A role that may not change the schema
 * is enough where there is nothing to do.
 */
export async function migrate(url: string, now: number, migrations = readMigrations(migrationFiles)): Promise<void> {
  const sql = openClient(url, session.application_name, () => {})
  try {
    await connectSession(sql, session)
    if ((await isRecorded(sql)) && checkApplied(await appliedTo(sql), migrations) === migrations.length) return
    await applyPending(sql, now, migrations)
  } catch (error) {
    throw isNotAllowed(error) ? notAllowed(error) : error
  } finally {
    // The end of the session gives the lock back.
    await sql.close({ timeout: 0 })
  }
}

async function applyPending(sql: SQL, now: number, migrations: readonly Migration[]): Promise<void> {
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
}

/**
 * One message to the server, which makes it one transaction. It begins with the record: where the lock was lost with a
 * connection, and another node was faster, that clashes and nothing happens.
 */
async function apply(sql: SQL, migration: Migration, now: number): Promise<void> {
  const { number, name } = migration
  const values = `${number}, '${name}', '${checksumOf(migration)}', ${Math.round(now)}`
  const record = `INSERT INTO schema_migrations (number, name, checksum, applied_at) VALUES (${values});`
  const begin = `BEGIN;\nSET LOCAL lock_timeout = ${turnMs};`
  for (const deadline = performance.now() + patienceMs; ; await Bun.sleep(pauseMs)) {
    try {
      await sql.unsafe(`${begin}\n${record}\n${migration.sql}\n;COMMIT`).simple()
      return
    } catch (error) {
      if (!isLockTimeout(error) || performance.now() > deadline) throw error
      await sql.unsafe('ROLLBACK')
    }
  }
}

function isNotAllowed(error: unknown): error is Error {
  return error instanceof Bun.SQL.PostgresError && error.errno === '42501'
}

function notAllowed(error: Error): Error {
  return unavailable(
    `PostgreSQL: ${error.message} (42501). The schema is not that of this version, and this role may not change it: ` +
      'run a command of this version, as ringwire keys list, with the role that owns the tables.',
    error,
  )
}

function isLockTimeout(error: unknown): boolean {
  return error instanceof Bun.SQL.PostgresError && error.errno === '55P03'
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
  if (row.encoding !== 'UTF8') {
    throw unavailable(`The encoding of the database is ${row.encoding}; Ringwire needs UTF8.`)
  }
}
