import { Database, SQLiteError } from 'bun:sqlite'
import type { MaybePromise } from '../../ports/maybe.ts'
import { StoreError } from '../../ports/store-error.ts'

export type SqlValue = string | number | null

/**
 * FULL: a commit survives the loss of power. NORMAL: it survives the end of the process, but the last ones before a
 * loss of power may be gone; the file stays whole in both.
 */
export type Synchronous = 'FULL' | 'NORMAL'

/** How long a statement waits for another process that is writing, in milliseconds. */
export const busyLimitMs = 2000

/** Pages of a writing connection's cache, in KiB: the hot end of every index fits. */
const writerCacheKib = 32 * 1024

export function openConnection(path: string): Database {
  try {
    const db = new Database(path, { readwrite: true, create: true })
    db.run(`PRAGMA busy_timeout = ${busyLimitMs}`)
    return db
  } catch (error) {
    throw isBusy(error) ? error : fileFailure(error, path)
  }
}

/** The connection of the writer thread. */
export function openWriter(path: string, synchronous: Synchronous): Database {
  const db = openConnection(path)
  db.run(`PRAGMA synchronous = ${synchronous}`)
  db.run(`PRAGMA cache_size = -${writerCacheKib}`)
  // A burst may make the log large; after the next checkpoint it is cut back to this.
  db.run('PRAGMA journal_size_limit = 67108864')
  return db
}

/** A connection that only reads: in WAL mode it never waits for the writer. */
export function openReader(path: string): Database {
  const db = openConnection(path)
  db.run('PRAGMA query_only = ON')
  return db
}

/** Waits, in short turns, while another process holds the file: two that start at once both get through. */
export async function patiently<T>(action: () => T, limitMs = 10_000): Promise<T> {
  const deadline = performance.now() + limitMs
  for (;;) {
    try {
      return action()
    } catch (error) {
      if (!isBusy(error) || performance.now() > deadline) throw error
      await Bun.sleep(5)
    }
  }
}

export function isBusy(error: unknown): boolean {
  return error instanceof SQLiteError && (error.code ?? '').startsWith('SQLITE_BUSY')
}

/** Row by row problems, that other rows of the batch must not suffer from. */
export function isRowProblem(error: unknown): boolean {
  return error instanceof SQLiteError && /^SQLITE_(CONSTRAINT|MISMATCH|TOOBIG)/.test(error.code ?? '')
}

/** A commit that failed like this left no whole transaction in the log. After an I/O error nobody knows. */
export function isNothingWritten(error: unknown): boolean {
  return isBusy(error) || (error instanceof SQLiteError && error.code === 'SQLITE_FULL')
}

export function unknownOutcome(error: unknown): StoreError {
  return new StoreError('unknown', messageOf(error), { cause: error })
}

/**
 * A read, or a write before its commit, that failed: nothing was written. SQLite's messages name files and columns,
 * never values.
 */
export function unavailable(error: unknown): StoreError {
  if (error instanceof StoreError) return error
  return new StoreError('unavailable', messageOf(error), { cause: error })
}

/** As the port promises: the database's errors are StoreErrors, everything else is a bug and stays what it is. */
export function sqlFailure(error: unknown): unknown {
  return error instanceof SQLiteError ? unavailable(error) : error
}

/** The answer of an action; rejects with a `StoreError` if the database failed. */
export function attempt<T>(action: () => T): MaybePromise<T> {
  try {
    return action()
  } catch (error) {
    return Promise.reject(sqlFailure(error))
  }
}

/** As `sqlFailure`, for a file that is opened or read as a whole: SQLite does not say which one it is. */
export function fileFailure(error: unknown, path: string): unknown {
  if (!(error instanceof SQLiteError)) return error
  return new StoreError('unavailable', `${path}: ${error.message}`, { cause: error })
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
