import type { Database } from 'bun:sqlite'
import { isExecutable, packageRoot } from '../../config/package-root.ts'
import type { CallStore } from '../../ports/call-store.ts'
import type { Clock } from '../../ports/clock.ts'
import type { ProductStore } from '../../ports/product-store.ts'
import { createRetention, type Retention, type RetentionSettings } from '../sql/retention.ts'
import { createCallReads } from './call-reads.ts'
import { createCallStore, createReadOnlyCallStore } from './call-store.ts'
import { fileFailure, openConnection, openReader, patiently, type Synchronous } from './connection.ts'
import { type DataDir, lockDataDir, prepareDataDir } from './data-dir.ts'
import { type CommitCounts, GroupCommit } from './group-commit.ts'
import { createLiveCalls } from './live-calls.ts'
import { migrate } from './migrations.ts'
import { createProductStore } from './product-store.ts'

export interface SqliteOptions extends RetentionSettings {
  /** Made where it is missing, for its owner alone. */
  readonly dataDir: string
  readonly synchronous: Synchronous
  /**
   * True for the process that serves: it alone writes calls, and a second one is refused. False beside it, for the
   * command line: keys and settings are written, calls only read.
   */
  readonly exclusive: boolean
  readonly clock?: Pick<Clock, 'now'>
  /** After this a commit counts as `unknown`, and a transition no longer waits for a writer. */
  readonly commitLimitMs?: number
  /** Starts the writer thread; tests put their own in its place. */
  readonly startWorker?: () => Worker
}

export interface SqliteStores {
  readonly calls: CallStore
  readonly products: ProductStore
  /** Commits of calls so far; zeros where calls are only read. */
  counts(): CommitCounts
  /** Removes the calls that ended before an instant. */
  readonly prune: Retention['prune']
  close(): Promise<void>
}

const commitLimitMs = 5000
const noCommits: CommitCounts = { commits: 0, transitions: 0, writersStarted: 0 }

/** Opens the stores in the data directory and brings its schema up to date. */
export async function openSqlite(options: SqliteOptions): Promise<SqliteStores> {
  const dir = prepareDataDir(options.dataDir)
  const lock = options.exclusive ? lockDataDir(dir) : undefined
  try {
    await migrateDatabase(dir, options.clock ?? { now: Date.now })
    const products = openProducts(dir)
    const { calls, counts, remove } = await openCalls(dir, options).catch(async (error) => {
      await products.close()
      throw error
    })
    const retention = createRetention({ ...options, clock: options.clock ?? { now: Date.now }, remove })
    retention.start()
    const close = async () => {
      retention.stop()
      await calls.close()
      await products.close()
      lock?.release()
    }
    return { calls, products, counts, prune: retention.prune, close }
  } catch (error) {
    lock?.release()
    throw error
  }
}

async function migrateDatabase(dir: DataDir, clock: Pick<Clock, 'now'>): Promise<void> {
  let db: Database | undefined
  try {
    db = await patiently(() => openConnection(dir.database))
    await migrate(db, clock.now())
  } catch (error) {
    throw fileFailure(error, dir.database)
  } finally {
    db?.close()
  }
}

async function openCalls(dir: DataDir, options: SqliteOptions) {
  const db = openReader(dir.database)
  const reads = createCallReads(db)
  if (!options.exclusive) {
    return {
      calls: createReadOnlyCallStore(reads, async () => db.close()),
      counts: () => noCommits,
      remove: async () => 0,
    }
  }
  const live = createLiveCalls()
  const commits = new GroupCommit({
    startWorker: options.startWorker ?? startWorker,
    open: { type: 'open', path: dir.database, synchronous: options.synchronous },
    limitMs: options.commitLimitMs ?? commitLimitMs,
    onOpened: () => live.replaceAll(reads.live()),
  })
  const close = async () => {
    await commits.close()
    db.close()
  }
  try {
    await commits.start()
  } catch (error) {
    await close()
    throw error
  }
  const remove = async (before: number) => {
    const count = await commits.prune(before)
    if (count > 0) live.dropOver(before)
    return count
  }
  return { calls: createCallStore({ reads, live, commits, close }), counts: () => commits.counts, remove }
}

function startWorker(): Worker {
  return new Worker(new URL(`src/adapters/sqlite/write-worker.${isExecutable ? 'js' : 'ts'}`, packageRoot))
}

function openProducts(dir: DataDir): ProductStore {
  const db = openConnection(dir.database)
  // A key that was shown or disabled stays so, also after a loss of power.
  db.run('PRAGMA synchronous = FULL')
  return createProductStore(db)
}
