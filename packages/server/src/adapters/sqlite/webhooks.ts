import type { Database } from 'bun:sqlite'
import type { Clock } from '../../ports/clock.ts'
import { type Attempted, type Claimed, claimMs, type WebhookStore } from '../../ports/webhooks.ts'
import {
  type ClaimedRow,
  claimedColumns,
  claimedOf,
  type DeliveryRow,
  deliveryColumns,
  deliveryValues,
  type EndpointRow,
  endpointColumns,
  endpointOf,
  endpointValues,
  recordColumns,
  recordOf,
  type Subscribers,
} from '../sql/subscribers.ts'
import { type SqlValue, sqlFailure } from './connection.ts'

/** What the writer thread does for webhooks, beside the batches. */
export type HookErrand =
  | { readonly type: 'settle'; readonly attempted: readonly SettledRow[] }
  | { readonly type: 'pruneHooks'; readonly deliveredBefore: number; readonly failedBefore: number }

/** Why it is asked for: `outcome` with the time of the next attempt. */
type SettledRow = Omit<Attempted, 'afterMs'> & { readonly dueAt: number }

export interface HookWrites {
  hooks(errand: HookErrand): Promise<number>
}

const pruneSize = 500
const marks = (count: number) => `?${', ?'.repeat(count - 1)}`

export const insertDeliverySql = `
  INSERT INTO webhook_deliveries (${deliveryColumns}) VALUES (${marks(deliveryColumns.length)})`
export const claimSql = `
  SELECT ${claimedColumns} FROM webhook_deliveries AS one
  WHERE endpoint_id = ? AND status = 'pending' AND due_at <= ? AND NOT EXISTS (
    SELECT 1 FROM webhook_deliveries AS older
    WHERE older.endpoint_id = one.endpoint_id AND older.subject = one.subject AND older.status = 'pending'
      AND older.version < one.version
  ) ORDER BY due_at LIMIT ?`
export const deliveriesSql = `
  SELECT ${recordColumns} FROM webhook_deliveries WHERE endpoint_id = ? AND id < ? AND (? = '' OR status = ?)
  ORDER BY id DESC LIMIT ?`
export const pruneSql = `
  DELETE FROM webhook_deliveries WHERE id IN (
    SELECT id FROM webhook_deliveries WHERE status = ? AND status <> 'pending' AND ended_at < ? LIMIT ?
  )`

/** Endpoints, and deliveries of one process: who is at which one is in its memory. */
export function createWebhookStore(
  db: Database,
  writes: HookWrites,
  subscribers: Subscribers,
  clock: Pick<Clock, 'now'>,
): WebhookStore {
  /** Until when a delivery is left to whoever claimed it. */
  const claimed = new Map<string, { readonly endpointId: string; readonly until: number }>()
  const all = db.query<EndpointRow, []>(`SELECT ${endpointColumns} FROM webhook_endpoints ORDER BY created_at, id`)
  const ofProduct = db.query<EndpointRow, [string]>(
    `SELECT ${endpointColumns} FROM webhook_endpoints WHERE product = ? ORDER BY created_at, id`,
  )
  const removeEndpoint = db.query<unknown, [string, string]>(
    'DELETE FROM webhook_endpoints WHERE product = ? AND id = ?',
  )
  const removeDeliveries = db.query<unknown, [string]>('DELETE FROM webhook_deliveries WHERE endpoint_id = ?')
  const insert = db.query<unknown, SqlValue[]>(insertDeliverySql)
  const due = db.query<ClaimedRow, [string, number, number]>(claimSql)
  const listed = db.query<DeliveryRow, [string, string, string, string, number]>(deliveriesSql)
  const retry = db.query<unknown, [string, string]>(
    `UPDATE webhook_deliveries SET status = 'pending', due_at = 0, ended_at = NULL
     WHERE endpoint_id = ? AND id = ? AND status <> 'pending'`,
  )

  function takeDue(endpointId: string, count: number, now: number): Claimed[] {
    const busy = new Set([...claimed].flatMap(([id, one]) => (one.endpointId === endpointId ? [id] : [])))
    const found = due.all(endpointId, now, count + busy.size).filter(({ id }) => !busy.has(id))
    return found.slice(0, count).map(claimedOf)
  }

  function attempt<T>(action: () => T): T | Promise<T> {
    try {
      return action()
    } catch (error) {
      return Promise.reject(sqlFailure(error))
    }
  }

  return {
    refresh: () =>
      attempt(() => {
        const endpoints = all.all().map(endpointOf)
        subscribers.replace(endpoints)
        return endpoints
      }),
    endpointsOf: (product) => attempt(() => ofProduct.all(product).map(endpointOf)),
    addEndpoint: (endpoint) =>
      attempt(() => {
        const values = endpointValues(endpoint)
        const columns = values.map(([column]) => column)
        db.query<unknown, SqlValue[]>(
          `INSERT INTO webhook_endpoints (${columns}) VALUES (${marks(columns.length)})`,
        ).run(...values.map(([, value]) => sqlValueOf(value)))
      }),
    changeEndpoint: (product, id, changes) =>
      attempt(() => {
        const values = endpointValues(changes)
        // A column that is set to itself: what is not given stays.
        const set = ['id = id', ...values.map(([column]) => `${column} = ?`)]
        const row = db
          .query<EndpointRow, SqlValue[]>(
            `UPDATE webhook_endpoints SET ${set} WHERE product = ? AND id = ? RETURNING ${endpointColumns}`,
          )
          .get(...values.map(([, value]) => sqlValueOf(value)), product, id)
        return row === null ? undefined : endpointOf(row)
      }),
    removeEndpoint: (product, id) =>
      attempt(() => {
        const remove = db.transaction(() => {
          if (removeEndpoint.run(product, id).changes === 0) return false
          removeDeliveries.run(id)
          return true
        })
        return remove.immediate()
      }),
    add: (deliveries) =>
      attempt(() => {
        const add = db.transaction(() => {
          for (const delivery of deliveries) insert.run(...deliveryValues(delivery))
        })
        add.immediate()
      }),
    claim: (wanted) =>
      attempt(() => {
        const now = clock.now()
        for (const [id, { until }] of claimed) if (until <= now) claimed.delete(id)
        const taken = [...wanted].flatMap(([endpointId, count]) => takeDue(endpointId, count, now))
        for (const { id, endpointId } of taken) claimed.set(id, { endpointId, until: now + claimMs })
        return taken
      }),
    async settle(attempted) {
      const now = clock.now()
      await writes.hooks({
        type: 'settle',
        attempted: attempted.map(({ afterMs, ...one }) => ({ ...one, dueAt: now + afterMs })),
      })
      for (const { id } of attempted) claimed.delete(id)
    },
    deliveries: ({ endpointId, status = '', limit, before = '~' }) =>
      attempt(() => listed.all(endpointId, before, status, status, limit).map(recordOf)),
    retry: (endpointId, id) => attempt(() => retry.run(endpointId, id).changes > 0),
    prune: (deliveredBefore, failedBefore) => writes.hooks({ type: 'pruneHooks', deliveredBefore, failedBefore }),
  }
}

const sqlValueOf = (value: SqlValue | boolean): SqlValue => (typeof value === 'boolean' ? Number(value) : value)

/** Of the writer thread: each errand is one transaction; answers how many rows it wrote. */
export function createHookWriter(db: Database): (errand: HookErrand) => number {
  const settle = db.query<unknown, SqlValue[]>(
    `UPDATE webhook_deliveries
     SET status = ?, due_at = ?, ended_at = ?, attempts = attempts + 1, response_status = ?, response = ?
     WHERE id = ? AND status = 'pending'`,
  )
  const release = db.query<unknown, [number, string]>('UPDATE webhook_deliveries SET due_at = ? WHERE id = ?')
  const prune = db.query<unknown, [string, number, number]>(pruneSql)
  const pruneLeft = db.query<unknown, [number, number]>(
    `DELETE FROM webhook_deliveries WHERE id IN (
       SELECT id FROM webhook_deliveries WHERE status = 'pending'
         AND (created_at < ? OR endpoint_id NOT IN (SELECT id FROM webhook_endpoints)) LIMIT ?
     )`,
  )

  function settleOne({ id, outcome, dueAt, at, responseStatus, response }: SettledRow): number {
    if (outcome === 'released') return release.run(dueAt, id).changes
    const isOver = outcome !== 'pending'
    return settle.run(outcome, isOver ? null : dueAt, isOver ? at : null, responseStatus, response, id).changes
  }

  const run = db.transaction((errand: HookErrand) => {
    if (errand.type === 'settle') return errand.attempted.reduce((count, one) => count + settleOne(one), 0)
    return (
      prune.run('delivered', errand.deliveredBefore, pruneSize).changes +
      prune.run('failed', errand.failedBefore, pruneSize).changes +
      pruneLeft.run(errand.failedBefore, pruneSize).changes
    )
  })
  return (errand) => run.immediate(errand)
}
