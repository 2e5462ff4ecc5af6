import type { Database } from 'bun:sqlite'
import { mentionOf } from '../../call/erase.ts'
import type { Clock } from '../../ports/clock.ts'
import type { WebhookStore } from '../../ports/webhooks.ts'
import { eraseDeliveries } from '../sql/erasure.ts'
import { type DeliveryStatus, dropInSteps, ofStatuses } from '../sql/kept-deliveries.ts'
import {
  type DeliveryRow,
  deliveryValues,
  recordColumns,
  recordOf,
  type StuckRow,
  type Subscribers,
  stuckLookedAt,
  stuckOf,
} from '../sql/subscribers.ts'
import { attempt } from './connection.ts'
import { createDeliveryRows, type EraseWrites } from './erasure.ts'
import { inPages, rowsOfPage } from './pages.ts'
import type { RowStatement, RowWrites } from './row-writes.ts'
import { createClaims } from './webhook-claims.ts'
import { createEndpointStore } from './webhook-endpoints.ts'
import { createSpread, type Staged } from './webhook-spread.ts'
import { type HookWrites, insertDeliverySql } from './webhook-writes.ts'

/** Steps from endpoint to endpoint through the index of what is pending. */
const waitingSql = `
  WITH RECURSIVE waiting (endpoint_id) AS (
    SELECT min(endpoint_id) FROM webhook_deliveries WHERE status = 'pending' AND endpoint_id > ?1
    UNION ALL
    SELECT (SELECT min(endpoint_id) FROM webhook_deliveries WHERE status = 'pending' AND endpoint_id > waiting.endpoint_id)
    FROM waiting WHERE waiting.endpoint_id IS NOT NULL LIMIT ${rowsOfPage}
  )`
export const dueSql = `${waitingSql}
  SELECT endpoint_id, EXISTS (
    SELECT 1 FROM webhook_deliveries AS one
    WHERE one.endpoint_id = waiting.endpoint_id AND one.status = 'pending' AND one.due_at <= ?2
  ) AS is_due FROM waiting WHERE endpoint_id IS NOT NULL`
export const stuckSql = `${waitingSql}
  SELECT waiting.endpoint_id AS waiting, e.product, e.url, ${recordColumns.map((name) => `d.${name}`)}
  FROM waiting
  LEFT JOIN webhook_endpoints AS e ON e.id = waiting.endpoint_id AND e.enabled = 1
  LEFT JOIN webhook_deliveries AS d ON d.id = (
    SELECT id FROM (
      SELECT id, attempts FROM webhook_deliveries
      WHERE endpoint_id = e.id AND status = 'pending' ORDER BY id LIMIT ${stuckLookedAt}
    ) WHERE attempts > 0 LIMIT 1
  ) WHERE waiting.endpoint_id IS NOT NULL`
export const deliveriesSql = (status?: DeliveryStatus) => `
  ${ofStatuses(
    (one) => `
  SELECT ${recordColumns} FROM webhook_deliveries WHERE endpoint_id = ?1 AND status = '${one}' AND id < ?2`,
    status,
  )} ORDER BY id DESC LIMIT ?3`
const retrySql = `
  UPDATE webhook_deliveries SET status = 'pending', due_at = ? WHERE endpoint_id = ? AND id = ? AND status <> 'pending'`

/** Endpoints, and deliveries of one process: its memory knows which claim has which delivery. */
export function createWebhookStore(
  db: Database,
  writes: HookWrites & EraseWrites & RowWrites,
  subscribers: Subscribers,
  staged: Staged,
  clock: Pick<Clock, 'now'>,
): WebhookStore {
  const removals = db.query<{ endpoint_id: string }, []>('SELECT endpoint_id FROM webhook_removals')
  const waiting = db.query<{ endpoint_id: string; is_due: number }, [string, number]>(dueSql)
  const spread = createSpread(db, writes, staged)
  const endpoints = createEndpointStore(db, writes, subscribers, clock, spread.all)
  const writeRows = (...statements: RowStatement[]) => writes.rows({ type: 'rows', statements, isLight: false })

  /** Removes the rest of removed endpoints, at most `most` steps of each; answers how many deliveries went. */
  async function dropRemoved(most?: number): Promise<number> {
    let count = 0
    for (const { endpoint_id: endpointId } of await attempt(() => removals.all()))
      count += await dropInSteps(() => writes.hooks({ type: 'dropHooks', endpointId }), most)
    await writes.hooks({ type: 'forgetRemovals', now: clock.now() })
    return count
  }

  return {
    ...endpoints,
    ...createClaims(db, spread, clock),
    async add(deliveries) {
      await writeRows(...deliveries.map((one): RowStatement => [insertDeliverySql, ...deliveryValues(one)]))
    },
    async due() {
      const now = clock.now()
      const rows = await inPages(
        '',
        (after) => waiting.all(after, now),
        ({ endpoint_id }) => endpoint_id,
      )
      return rows.flatMap(({ endpoint_id, is_due }) => (is_due === 1 ? [endpoint_id] : []))
    },
    async putOff(endpointIds) {
      let count = 0
      // Each for itself: commits of calls wait for one of them, not for all.
      for (const endpointId of endpointIds)
        count += await writes.hooks({ type: 'putOff', endpointId, now: clock.now() })
      return count > 0
    },
    async deliveries({ endpointId, status, limit, before = '~' }) {
      // A list is read also while nothing can be written.
      await spread.all().catch(() => {})
      return attempt(() => {
        const listed = db.query<DeliveryRow, [string, string, number]>(deliveriesSql(status))
        return listed.all(endpointId, before, limit).map(recordOf)
      })
    },
    async stuck() {
      const rows = await inPages(
        '',
        (after) => db.query<StuckRow & { waiting: string }, [string]>(stuckSql).all(after),
        ({ waiting }) => waiting,
      )
      return rows.filter(({ id }) => id !== null).map(stuckOf)
    },
    retry: async (endpointId, id) => (await writeRows([retrySql, clock.now(), endpointId, id])) > 0,
    async erase(participant, onErased = () => {}) {
      await spread.all()
      await dropRemoved()
      const of = await endpoints.endpointsOf(participant.product)
      const rows = createDeliveryRows(db, writes, mentionOf(participant))
      return eraseDeliveries(
        rows,
        of.map(({ id }) => id),
        participant,
        onErased,
      )
    },
    async prune(deliveredBefore, failedBefore) {
      // Also what is for endpoints that are gone.
      await spread.all()
      const old = await writes.hooks({ type: 'pruneHooks', deliveredBefore, failedBefore })
      return old + (await dropRemoved(1))
    },
  }
}
