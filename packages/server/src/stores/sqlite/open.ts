import type { Database } from 'bun:sqlite'
import { isExecutable, packageRoot } from '../../config/package-root.ts'
import type { Erasures } from '../../participants/erasures.port.ts'
import type { AuditStore } from '../../ports/audit.ts'
import type { CallStore } from '../../ports/call-store.ts'
import type { Clock } from '../../ports/clock.ts'
import type { Devices } from '../../ports/devices.ts'
import type { Groups } from '../../ports/groups.ts'
import type { OnlineStore } from '../../ports/online.ts'
import type { Outbox } from '../../ports/outbox.ts'
import type { ProductStore } from '../../ports/product-store.ts'
import { StoreError } from '../../ports/store-error.ts'
import type { TimelineStore } from '../../ports/timeline.ts'
import type { WebhookStore } from '../../ports/webhooks.ts'
import { createRetention, type Retention, type RetentionOptions, type RetentionSettings } from '../sql/retention.ts'
import { createSubscribers } from '../sql/subscribers.ts'
import { createAuditStore } from './audit.ts'
import { createCallLists } from './call-lists.ts'
import { createCallReads } from './call-reads.ts'
import { createCallStore, createReadOnlyCallStore } from './call-store.ts'
import { fileFailure, openConnection, openReader, patiently, type Synchronous, sqlFailure } from './connection.ts'
import { type DataDir, lockDataDir, prepareDataDir } from './data-dir.ts'
import { createDevices } from './devices.ts'
import { createCallRows, type EraseWrites } from './erasure.ts'
import { createErasures } from './erasures.ts'
import { type CommitCounts, GroupCommit } from './group-commit.ts'
import { createGroups } from './groups.ts'
import { createLiveCalls } from './live-calls.ts'
import { migrate } from './migrations.ts'
import { createOnlineStore, type OnlineWrites } from './online.ts'
import { createOutbox } from './outbox.ts'
import { createProductStore } from './product-store.ts'
import { mostPruned } from './retention.ts'
import { createRowWriter, type RowWrites } from './row-writes.ts'
import { createTimelineStore, type TimelineWrites } from './timeline.ts'
import type { Staged } from './webhook-spread.ts'
import { createHookWriter, type HookWrites } from './webhook-writes.ts'
import { createWebhookStore } from './webhooks.ts'

export interface SqliteOptions extends RetentionSettings {
  /** Made if it is missing, only for its owner. */
  readonly dataDir: string
  readonly synchronous: Synchronous
  /**
   * True for the process that serves: only it writes calls, and a second one is refused. False for the command line next
   * to it: it writes keys and settings, and only reads calls.
   */
  readonly exclusive: boolean
  readonly clock?: Pick<Clock, 'now'>
  /** The clock that the outbox measures by; the machine's by default. */
  readonly monotonic?: Clock['monotonic']
  /** After this a commit counts as `unknown`, and a transition no longer waits for a writer. */
  readonly commitLimitMs?: number
  /** Starts the writer thread; tests put their own in its place. */
  readonly startWorker?: () => Worker
}

export interface SqliteStores {
  readonly calls: CallStore
  /** The outbox of the process that serves; for a command it is empty. */
  readonly outbox: Outbox
  readonly products: ProductStore
  readonly devices: Devices
  readonly groups: Groups
  readonly webhooks: WebhookStore
  readonly timeline: TimelineStore
  readonly online: OnlineStore
  readonly erasures: Erasures
  readonly audit: AuditStore
  /** Commits of calls so far; zeros where calls are only read. */
  counts(): CommitCounts
  /** Removes the calls that ended before an instant. */
  readonly prune: Retention['prune']
  close(): Promise<void>
}

const commitLimitMs = 5000
/** A command that writes much leaves the lock free for this time after each transaction, in ms: longer than one takes. */
const turnMs = 50
const noOutbox: Outbox = {
  rowOf: () => undefined,
  leftOf: () => [],
  remove() {},
  claim: () => [],
  release() {},
  oldest: () => undefined,
}
/** Deliveries are attempted, and timelines are written, by the process that serves. */
function writesBeside(db: Database): HookWrites & TimelineWrites & EraseWrites & OnlineWrites & RowWrites {
  const write = createHookWriter(db)
  const writeRows = createRowWriter(db)
  return {
    hooks: async (errand) => {
      // A command reads or removes all of it.
      if ((errand.type === 'settle' && errand.attempted.length === 0) || errand.type === 'dropHooks') {
        try {
          const written = write(errand)
          // The writer of the service has its turn.
          if (written > 0) await Bun.sleep(turnMs)
          return written
        } catch (error) {
          throw sqlFailure(error)
        }
      }
      throw new StoreError('unavailable', 'Webhooks are delivered by the serving process alone.')
    },
    timeline: () =>
      Promise.reject(new StoreError('unavailable', 'Timelines are written by the serving process alone.')),
    erase: () => Promise.reject(new StoreError('unavailable', 'The serving process alone erases.')),
    online: () => Promise.reject(new StoreError('unavailable', 'The serving process alone knows who is connected.')),
    async rows(errand) {
      try {
        return writeRows(errand)
      } catch (error) {
        throw sqlFailure(error)
      }
    },
  }
}
const noCommits: CommitCounts = { commits: 0, transitions: 0, writersStarted: 0 }

/** Opens the stores in the data directory and brings its schema up to date. */
export async function openSqlite(options: SqliteOptions): Promise<SqliteStores> {
  const dir = prepareDataDir(options.dataDir)
  const lock = options.exclusive ? lockDataDir(dir) : undefined
  try {
    await migrateDatabase(dir, options.clock ?? { now: Date.now })
    const beside = openBeside(dir)
    const { calls, outbox, counts, remove, subscribers, staged, writes, reader } = await openCalls(
      dir,
      options,
      beside,
    ).catch((error) => {
      beside.close()
      throw error
    })
    const products = createProductStore(beside, writes)
    const devices = createDevices(reader, writes)
    const groups = createGroups(reader, writes)
    const audit = createAuditStore(reader, writes)
    const clock = options.clock ?? { now: Date.now }
    const webhooks = createWebhookStore(beside, writes, subscribers, staged, clock)
    const timeline = createTimelineStore(reader, writes)
    const online = createOnlineStore(reader, writes, subscribers)
    const erasures = createErasures(reader, writes, clock.now)
    const retention = createRetention({ ...options, clock, remove, most: mostPruned })
    retention.start()
    const close = async () => {
      retention.stop()
      await calls.close()
      beside.close()
      lock?.release()
    }
    return {
      calls,
      outbox,
      products,
      devices,
      groups,
      webhooks,
      timeline,
      online,
      erasures,
      audit,
      counts,
      prune: retention.prune,
      close,
    }
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

async function openCalls(dir: DataDir, options: SqliteOptions, beside: Database) {
  const db = openReader(dir.database)
  const reads = createCallReads(db)
  const lists = createCallLists(db)
  const subscribers = createSubscribers()
  if (!options.exclusive) {
    return {
      calls: createReadOnlyCallStore(reads, lists, async () => db.close()),
      outbox: noOutbox,
      counts: () => noCommits,
      remove: async () => 0,
      subscribers,
      staged: { isAny: true },
      writes: writesBeside(beside),
      reader: db,
    }
  }
  const live = createLiveCalls()
  const staged: Staged = { isAny: true }
  const commits = new GroupCommit({
    startWorker: options.startWorker ?? startWorker,
    open: { type: 'open', path: dir.database, synchronous: options.synchronous },
    limitMs: options.commitLimitMs ?? commitLimitMs,
    onOpened: async () => live.replaceAll(await reads.live()),
  })
  const outbox = createOutbox(db, commits, options.monotonic)
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
  const remove: RetentionOptions['remove'] = async (before, most, past) => {
    const count = await commits.prune(before, most, past)
    if (count > 0) live.dropOver(before)
    return count
  }
  const erasable = createCallRows(db, commits)
  const calls = createCallStore({ reads, lists, live, commits, erasable, outbox, subscribers, staged, close })
  return { calls, outbox, counts: () => commits.counts, remove, subscribers, staged, writes: commits, reader: db }
}

function startWorker(): Worker {
  return new Worker(new URL(`src/stores/sqlite/write-worker.${isExecutable ? 'js' : 'ts'}`, packageRoot))
}

/** Reads keys and settings, and writes them at a start and for a command. */
function openBeside(dir: DataDir): Database {
  const db = openConnection(dir.database)
  // A key that was shown or disabled stays so, also after a loss of power.
  db.run('PRAGMA synchronous = FULL')
  return db
}
