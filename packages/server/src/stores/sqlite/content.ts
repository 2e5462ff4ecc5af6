import type { Database } from 'bun:sqlite'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { StoreError } from '../../ports/store-error.ts'
import {
  type Content,
  type ContentRow,
  keyColumns,
  leftColumns,
  type PlainTable,
  pageSize,
  plainTables,
  secretColumns,
} from '../sql/content.ts'
import { callColumns, eventColumns } from '../sql/rows.ts'
import { settingsColumns } from '../sql/settings-rows.ts'
import { endpointColumns } from '../sql/subscribers.ts'
import { timelineColumns } from '../sql/timeline-rows.ts'
import { fileFailure, openConnection, patiently, unavailable } from './connection.ts'
import { databaseFile, lockDataDir, prepareDataDir } from './data-dir.ts'
import { migrate } from './migrations.ts'
import { createSpreading } from './webhook-writes.ts'

/** The entries of all timelines, with the product and the UUID of their calls. */
const allEntriesSql = `
  SELECT coalesce(c.product, t.product) AS product, coalesce(c.call_uuid, t.call_uuid) AS call_uuid,
    ${timelineColumns.slice(2).map((column) => `t.${column}`)}
  FROM call_timeline AS t LEFT JOIN calls AS c ON c.id = t.call_id`

export interface SqliteContent extends Content {
  /** Deliveries that did not arrive, after an id, at most `pageSize`; none if there are no more. */
  deliveriesAfter(id: string): readonly ContentRow[]
  /** All rows, at most `pageSize` at a time. */
  pagesOf(table: PlainTable): Iterable<readonly ContentRow[]>
  close(): void
}

/**
 * The content of a data directory that nobody serves. Until `close` it cannot be served, and no command can write to it.
 * Rejects with a StoreError if there is no database, or somebody serves it.
 */
export async function openSqliteContent(dataDir: string, now: number): Promise<SqliteContent> {
  const path = join(dataDir, databaseFile)
  if (!existsSync(path)) throw new StoreError('unavailable', `There is no ${path}: nothing was stored there yet.`)
  const dir = usable(() => prepareDataDir(dataDir))
  const lock = usable(() => lockDataDir(dir))
  let db: Database | undefined
  try {
    const opened = await patiently(() => openConnection(dir.database))
    db = opened
    await migrate(opened, now)
    const spread = createSpreading(opened)
    await patiently(() =>
      opened
        .transaction(() => {
          while (spread());
        })
        .immediate(),
    )
    // The lock of writers: commands next to the service wait for it, and give up.
    await patiently(() => opened.run('BEGIN IMMEDIATE'))
    return { ...readContent(opened, dir.database), close }
  } catch (error) {
    close()
    throw fileFailure(error, dir.database)
  }

  function close(): void {
    if (db?.inTransaction) db.run('ROLLBACK')
    db?.close()
    lock.release()
  }
}

/** A refusal of the file system is not a bug. */
function usable<T>(open: () => T): T {
  try {
    return open()
  } catch (error) {
    throw unavailable(error)
  }
}

function readContent(db: Database, path: string): Omit<SqliteContent, 'close'> {
  const all = (text: string) => db.query<ContentRow, []>(text).all()
  const read = <T>(from: () => T): T => {
    try {
      return from()
    } catch (error) {
      throw fileFailure(error, path)
    }
  }
  const calls = db.query<ContentRow, [number, number]>(
    `SELECT id, ${callColumns} FROM calls WHERE id > ? ORDER BY id LIMIT ?`,
  )
  const events = db.query<ContentRow, [number, number]>(
    `SELECT call_id, ${eventColumns} FROM call_events WHERE call_id > ? AND call_id <= ? ORDER BY call_id, version`,
  )
  const left = db.query<ContentRow, [string, number]>(
    `SELECT ${leftColumns} FROM webhook_deliveries WHERE id > ? AND status <> 'delivered' ORDER BY id LIMIT ?`,
  )
  const secrets = secretColumns.map((column) =>
    column === 'secret_hash' ? `lower(hex(${column})) AS ${column}` : column,
  )
  return {
    counts() {
      const count = db.query<{ calls: number; events: number }, []>(
        'SELECT (SELECT count(*) FROM calls) AS calls, (SELECT count(*) FROM call_events) AS events',
      )
      return read(() => count.get()) ?? { calls: 0, events: 0 }
    },
    callsAfter(id) {
      const page = read(() => calls.all(id, pageSize))
      return { calls: page, events: read(() => events.all(id, Number(page.at(-1)?.id ?? id))) }
    },
    webhookEndpoints: () => read(() => all(`SELECT ${endpointColumns} FROM webhook_endpoints ORDER BY id`)),
    deliveriesAfter: (id) => read(() => left.all(id, pageSize)),
    *pagesOf(table) {
      const text = table === 'call_timeline' ? allEntriesSql : `SELECT ${plainTables[table]} FROM ${table}`
      const rows = db.query<ContentRow, []>(text).iterate()
      for (let page = read(() => take(rows)); page.length > 0; page = read(() => take(rows))) yield page
    },
    products: () =>
      read(() => ({
        keys: all(`SELECT ${keyColumns} FROM product_keys ORDER BY key_id`),
        secrets: all(`SELECT ${secrets} FROM product_key_secrets ORDER BY key_id, product_key_secrets.secret_hash`),
        settings: all(`SELECT ${settingsColumns} FROM product_settings ORDER BY product`),
      })),
  }
}

/** The next page of rows. */
function take(rows: Iterator<ContentRow>): ContentRow[] {
  const page: ContentRow[] = []
  while (page.length < pageSize) {
    const { done, value } = rows.next()
    if (done) break
    page.push(value)
  }
  return page
}
