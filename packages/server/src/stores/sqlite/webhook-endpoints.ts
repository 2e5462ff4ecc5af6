import type { Database } from 'bun:sqlite'
import type { Clock } from '../../ports/clock.ts'
import type { EndpointStore, WebhookEndpoint } from '../../ports/webhooks.ts'
import { dropInSteps, dropSteps } from '../sql/kept-deliveries.ts'
import { createKnownEndpoints, type EndpointCounts } from '../sql/known-endpoints.ts'
import { type EndpointRow, endpointColumns, endpointOf, endpointValues, type Subscribers } from '../sql/subscribers.ts'
import { attempt, type SqlValue } from './connection.ts'
import { inPages, rowsOfPage } from './pages.ts'
import type { RowStatement, RowWrites } from './row-writes.ts'
import { type HookWrites, marks } from './webhook-writes.ts'

/** How often endpoints were changed and removed. */
const countsSql = 'SELECT changed, removed FROM webhook_revision'
export const changedSql = `
  SELECT ${endpointColumns}, revision FROM webhook_endpoints
  WHERE (revision, id) > (?, ?) ORDER BY revision, id LIMIT ${rowsOfPage}`

export function createEndpointStore(
  db: Database,
  writes: HookWrites & RowWrites,
  subscribers: Subscribers,
  clock: Pick<Clock, 'now'>,
  spreadAll: () => Promise<void>,
): EndpointStore {
  const ofProduct = db.query<EndpointRow, [string]>(
    `SELECT ${endpointColumns} FROM webhook_endpoints WHERE product = ? ORDER BY created_at, id`,
  )
  const one = db.query<EndpointRow & { revision: number }, [string, string]>(
    `SELECT ${endpointColumns}, revision FROM webhook_endpoints WHERE product = ? AND id = ?`,
  )
  const writeRows = (...statements: RowStatement[]) => writes.rows({ type: 'rows', statements, isLight: false })

  return {
    refresh: createRefresh(db, subscribers),
    endpointsOf: (product) => attempt(() => ofProduct.all(product).map(endpointOf)),
    async addEndpoint(endpoint) {
      const values = endpointValues(endpoint)
      const columns = values.map(([column]) => column)
      await writeRows([
        `INSERT INTO webhook_endpoints (${columns}) VALUES (${marks(columns.length)})`,
        ...values.map(([, value]) => sqlValueOf(value)),
      ])
    },
    async changeEndpoint(product, id, changes) {
      const values = endpointValues(changes)
      // A column that is set to itself: what is not given stays.
      const set = ['id = id', ...values.map(([column]) => `${column} = ?`)]
      const sql = `UPDATE webhook_endpoints SET ${set} WHERE product = ? AND id = ? AND revision = ?`
      const given = values.map(([, value]) => sqlValueOf(value))
      // Written only over what was read: then the answer is what this change has stored, even if others change the endpoint.
      for (;;) {
        const row = await attempt(() => one.get(product, id))
        if (row === null) return undefined
        if ((await writeRows([sql, ...given, product, id, row.revision])) > 0) return { ...endpointOf(row), ...changes }
      }
    },
    async removeEndpoint(product, id) {
      await spreadAll()
      const removed = await writeRows(
        ['DELETE FROM webhook_endpoints WHERE product = ? AND id = ?', product, id],
        ['INSERT INTO webhook_removals (endpoint_id, removed_at) SELECT ?, ? WHERE changes() > 0', id, clock.now()],
      )
      if (removed === 0) return false
      await dropInSteps(() => writes.hooks({ type: 'dropHooks', endpointId: id }), dropSteps)
      return true
    },
  }
}

/** Reads what changed since the last time. */
function createRefresh(db: Database, subscribers: Subscribers): EndpointStore['refresh'] {
  let refreshing: Promise<readonly WebhookEndpoint[]> = Promise.resolve([])
  const counts = db.query<EndpointCounts, []>(countsSql)
  const changed = db.query<EndpointRow & { revision: number }, [number, string]>(changedSql)
  const known = createKnownEndpoints(subscribers)

  async function read(): Promise<readonly WebhookEndpoint[]> {
    const now = await attempt(() => counts.get())
    if (now === null) throw new Error('webhook_revision is empty')
    const since = known.since(now)
    if (since === undefined) return known.list
    // An endpoint that changes while pages are read has a later revision: the next look reads it again.
    const rows = await inPages(
      { revision: since + 1, id: '' },
      ({ revision, id }) => changed.all(revision, id),
      ({ revision, id }) => ({ revision, id }),
    )
    return known.take(now, rows)
  }

  // One after another: an earlier one must not replace what a later one has read.
  return () => {
    refreshing = refreshing.then(read, read)
    return refreshing
  }
}

const sqlValueOf = (value: SqlValue | boolean): SqlValue => (typeof value === 'boolean' ? Number(value) : value)
