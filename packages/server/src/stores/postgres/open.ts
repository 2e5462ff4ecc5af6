import type { Erasures } from '../../participants/erasures.port.ts'
import type { AuditStore } from '../../ports/audit.ts'
import type { CallStore } from '../../ports/call-store.ts'
import type { Clock } from '../../ports/clock.ts'
import type { Devices } from '../../ports/devices.ts'
import type { Groups } from '../../ports/groups.ts'
import { connectionName } from '../../ports/node-name.ts'
import type { OnlineStore } from '../../ports/online.ts'
import type { Outbox } from '../../ports/outbox.ts'
import type { ProductStore } from '../../ports/product-store.ts'
import type { TimelineStore } from '../../ports/timeline.ts'
import type { WebhookStore } from '../../ports/webhooks.ts'
import { createRetention, type Retention, type RetentionSettings } from '../sql/retention.ts'
import { createStepRows } from '../sql/step-rows.ts'
import { createSubscribers } from '../sql/subscribers.ts'
import { createAuditStore } from './audit.ts'
import { createCallLists } from './call-lists.ts'
import { createCallReads, dueRingsSql, liveVersionsSql, situationSql } from './call-reads.ts'
import { createCallStore } from './call-store.ts'
import { Connections } from './connections.ts'
import { createDevices } from './devices.ts'
import { createCallRows } from './erasure.ts'
import { createErasures } from './erasures.ts'
import { startFailure } from './failures.ts'
import { createGlances } from './glances.ts'
import { type CommitCounts, createGroupCommit } from './group-commit.ts'
import { createGroups } from './groups.ts'
import { migrate } from './migrations.ts'
import { createOnlineStore } from './online.ts'
import { createOutbox, oldestSql, waitingSql } from './outbox.ts'
import { policiesSql } from './policies.ts'
import { requireSessions } from './pooling.ts'
import { createProductStore, revocationsSql, settingsSql } from './product-store.ts'
import { createRemoval } from './retention.ts'
import { createTimelineStore } from './timeline.ts'
import { countsSql } from './webhook-endpoints.ts'
import { createWebhookStore, dueSql } from './webhooks.ts'
import { createWriters } from './writers.ts'

export interface PostgresOptions extends RetentionSettings {
  /** DATABASE_URL: postgres://user:password@host:port/database?sslmode=… */
  readonly url: string
  /** Of the process that serves: connections carry it. */
  readonly nodeId?: string
  readonly clock?: Pick<Clock, 'now'>
  /** The clock that the outbox measures by; the machine's by default. */
  readonly monotonic?: Clock['monotonic']
  /** No request to the store takes longer. */
  readonly limitMs?: number
  /** Connections for reads. */
  readonly readers?: number
  /** Batches that may be in flight at once. */
  readonly writers?: number
}

export interface PostgresStores {
  readonly calls: CallStore
  readonly outbox: Outbox
  readonly products: ProductStore
  readonly devices: Devices
  readonly groups: Groups
  readonly webhooks: WebhookStore
  readonly timeline: TimelineStore
  readonly online: OnlineStore
  readonly erasures: Erasures
  readonly audit: AuditStore
  /** Commits of calls so far. */
  counts(): CommitCounts
  /** Removes the calls that ended before an instant. */
  readonly prune: Retention['prune']
  close(): Promise<void>
}

const defaultLimitMs = 5000
/** The most calls that one step removes. It locks them for some tens of milliseconds. */
const mostPruned = 500

/**
 * Every statement finds its rows through an index. A plan that was made while a table was small would be kept until its
 * next ANALYZE, however much the table has grown by then. A small table that is read whole counts as dear then: it is not
 * compiled for that, and no workers are started, which would take hundreds of times as long as to read it.
 */
export const plannerSettings = {
  enable_seqscan: 'off',
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
  jit: 'off',
  max_parallel_workers_per_gather: '0',
} as const

/** What a node that serves asks for at each look, whether or not anything goes on. */
export const lookedFor = [
  ...[policiesSql, revocationsSql, countsSql, dueSql],
  ...[waitingSql, oldestSql, dueRingsSql, liveVersionsSql],
] as const

/** What an invite asks for at once. */
export const neededByInvite = [situationSql, settingsSql] as const

/** Opens the stores in a PostgreSQL database and brings its schema up to date. */
export async function openPostgres(options: PostgresOptions): Promise<PostgresStores> {
  const { url, nodeId, limitMs = defaultLimitMs, clock = { now: Date.now }, retentionMs = 0 } = options
  try {
    await requireSessions(url)
    await migrate(url, clock.now())
  } catch (error) {
    throw startFailure(error, url)
  }
  const session = {
    application_name: connectionName(nodeId),
    // A statement for which nobody waits any more does not go on for long in the server either.
    statement_timeout: String(limitMs),
    default_transaction_isolation: 'read committed',
    ...plannerSettings,
  }
  const readers = new Connections({ url, limitMs, session }, options.readers ?? 4)
  const writers = new Connections({ url, limitMs, session }, options.writers ?? 2)
  const look = createGlances(readers, [lookedFor, neededByInvite])
  const commits = createGroupCommit(createWriters(writers))
  const stepRows = createStepRows()
  const subscribers = createSubscribers()
  // Beside the commits: none of them waits for it.
  const tryWrite = async () => void (await readers.run('SELECT try_write()', [], { repeatable: true }))
  const close = once(async () => {
    retention.stop()
    await Promise.all([readers.close(), writers.close()])
  })
  const retention = createRetention({
    ...options,
    clock,
    remove: createRemoval(readers, retentionMs),
    most: mostPruned,
  })
  retention.start()
  return {
    calls: createCallStore({
      reads: createCallReads(readers, look),
      lists: createCallLists(readers),
      commits,
      erasable: createCallRows(readers),
      stepRows,
      subscribers,
      tryWrite,
      limitMs,
      close,
    }),
    // Beside the commits, too.
    outbox: createOutbox(readers, look, stepRows, options.monotonic),
    products: createProductStore(readers, look, close),
    devices: createDevices(readers),
    groups: createGroups(readers),
    webhooks: createWebhookStore(readers, look, subscribers),
    timeline: createTimelineStore(readers, retentionMs),
    online: createOnlineStore(readers, subscribers),
    erasures: createErasures(readers),
    audit: createAuditStore(readers),
    counts: () => commits.counts,
    prune: retention.prune,
    close,
  }
}

function once(close: () => Promise<void>): () => Promise<void> {
  let closing: Promise<void> | undefined
  return () => {
    closing ??= close()
    return closing
  }
}
