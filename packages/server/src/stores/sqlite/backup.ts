import { Database } from 'bun:sqlite'
import {
  closeSync,
  copyFileSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmdirSync,
  rmSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { StoreError } from '../../ports/store-error.ts'
import { fileFailure, patiently } from './connection.ts'
import { databaseFile } from './data-dir.ts'

export interface BackupOptions {
  readonly dataDir: string
  /** A directory that is not there yet, or is empty. */
  readonly target: string
  /** Names of other files of the data directory that belong to it, where they are there. */
  readonly files: readonly string[]
}

export interface BackedUp {
  readonly calls: number
  readonly bytes: number
}

/**
 * Copies a data directory, also while it is served: the database as it is at one moment, with everything that was
 * answered before, and nobody waits for it. It makes a data directory, which appears under its name whole, or not at all.
 */
export async function backUpSqlite({ dataDir, target, files }: BackupOptions): Promise<BackedUp> {
  const source = join(dataDir, databaseFile)
  if (!existsSync(source)) throw new StoreError('unavailable', `There is no ${source}: nothing was stored there yet.`)
  if (existsSync(target) && readdirSync(target).length > 0) {
    throw new StoreError('unavailable', `${target} is not empty: a backup takes a directory of its own.`)
  }
  const draft = `${target}.partial`
  rmSync(draft, { recursive: true, force: true })
  mkdirSync(draft, { recursive: true, mode: 0o700 })
  try {
    const copy = join(draft, databaseFile)
    // Empty, and only for its owner: SQLite keeps the rights of an existing file.
    closeSync(openSync(copy, 'wx', 0o600))
    await patiently(() => copyDatabase(source, copy))
    const backedUp = check(copy)
    for (const name of files) if (existsSync(join(dataDir, name))) copyFileSync(join(dataDir, name), join(draft, name))
    for (const name of readdirSync(draft)) flush(join(draft, name))
    flush(draft)
    if (existsSync(target)) rmdirSync(target)
    renameSync(draft, target)
    flush(dirname(target))
    return backedUp
  } catch (error) {
    rmSync(draft, { recursive: true, force: true })
    throw fileFailure(error, source)
  }
}

/** A read of one moment: writers go on meanwhile. */
function copyDatabase(source: string, copy: string): void {
  const db = new Database(source, { readwrite: true })
  try {
    db.query('VACUUM INTO ?').run(copy)
  } finally {
    db.close()
  }
}

function check(copy: string): BackedUp {
  const db = new Database(copy, { readonly: true })
  try {
    const found = db.query<{ quick_check: string }, []>('PRAGMA quick_check').all()
    if (found[0]?.quick_check !== 'ok')
      throw new StoreError('unavailable', `The copy is damaged: ${found[0]?.quick_check}`)
    const calls = db.query<{ count: number }, []>('SELECT count(*) AS count FROM calls').get()?.count ?? 0
    return { calls, bytes: Bun.file(copy).size }
  } finally {
    db.close()
  }
}

/** On the disk, before anybody hears that it is there. */
function flush(path: string): void {
  const file = openSync(path, 'r')
  try {
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}
