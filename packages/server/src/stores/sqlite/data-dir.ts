import { Database } from 'bun:sqlite'
import { accessSync, closeSync, constants, mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { isRunning } from '../../ports/running.ts'
import { StoreError } from '../../ports/store-error.ts'
import { fileFailure, isBusy } from './connection.ts'

export const databaseFile = 'ringwire.db'

export interface DataDir {
  readonly database: string
  readonly lock: string
}

/** Makes the directory and its files, only for their owner; SQLite gives its other files the mode of the database. */
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
 * Makes sure that only one process serves the directory. The lock is SQLite's own on a file of its own: the kernel frees
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
    throw new StoreError('unavailable', inUse(dir))
  }
  writePid(dir)
  return {
    release() {
      rmSync(pidFile(dir), { force: true })
      db.close()
    },
  }
}

/** Beside the lock: SQLite's locks are lost when another descriptor of the same file is closed. */
const pidFile = (dir: DataDir) => join(dirname(dir.lock), 'serve.pid')

/** Only for the message below: where it cannot be written, the message has no number. */
function writePid(dir: DataDir): void {
  try {
    rmSync(pidFile(dir), { force: true })
    writeFileSync(pidFile(dir), `${process.pid}\n`, { mode: 0o600 })
  } catch {
    // The disk may be full. The lock is held without it.
  }
}

function inUse(dir: DataDir): string {
  const path = dirname(resolve(dir.lock))
  const near = relative(process.cwd(), path)
  const shown = near === '' ? '.' : near.startsWith('..') ? path : near
  const pid = readPid(dir)
  const which = pid === undefined ? '' : ` (pid ${pid})`
  // Two services on one machine need two ports as well.
  return `Another ringwire process${which} uses ${shown}/. Stop it, or set RINGWIRE_DATA_DIR to another folder and RINGWIRE_PORT to another port.`
}

/** The process that holds the lock; undefined where its number is not known, or no longer true. */
function readPid(dir: DataDir): number | undefined {
  try {
    const pid = Number(/^[1-9]\d{0,9}(?=\n$)/.exec(readFileSync(pidFile(dir), 'utf8'))?.[0])
    return isRunning(pid) ? pid : undefined
  } catch {
    return undefined
  }
}
