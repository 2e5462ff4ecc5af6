import { Database } from 'bun:sqlite'
import { accessSync, closeSync, constants, mkdirSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { StoreError } from '../../ports/store-error.ts'
import { fileFailure, isBusy } from './connection.ts'

export const databaseFile = 'ringwire.db'

export interface DataDir {
  readonly database: string
  readonly lock: string
}

/** Makes the directory and its files, for their owner alone; SQLite gives its other files the mode of the database. */
export function prepareDataDir(path: string): DataDir {
  mkdirSync(path, { recursive: true, mode: 0o700 })
  requireWritable(path)
  const dir = { database: join(path, databaseFile), lock: join(path, 'serve.lock') }
  createFile(dir.database)
  createFile(dir.lock)
  return dir
}

/**
 * Only where there is none: closing a file drops every POSIX lock that this process has on it, also those of a
 * connection that is open.
 */
function createFile(path: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    requireWritable(path)
  }
}

/** Throws with the path. SQLite opens a file that it may only read, and says so at the first write. */
function requireWritable(path: string): void {
  accessSync(path, constants.R_OK | constants.W_OK)
}

/**
 * Says that this process alone serves the directory. The lock is SQLite's own on a file of its own: the kernel frees
 * it with the process, however that ends.
 */
export function lockDataDir(dir: DataDir): { release(): void } {
  const db = new Database(dir.lock, { readwrite: true, create: true })
  try {
    db.run('PRAGMA busy_timeout = 0')
    db.run('PRAGMA journal_mode = MEMORY')
    db.run('BEGIN EXCLUSIVE')
  } catch (error) {
    db.close()
    if (!isBusy(error)) throw fileFailure(error, dir.lock)
    throw new StoreError('unavailable', `Another process serves this data directory: it holds ${dir.lock}.`)
  }
  return { release: () => db.close() }
}
