import { mentionOf } from '../../call/erase.ts'
import { claimMs, deliveryIdAt, type WebhookStore } from '../../ports/webhooks.ts'
import { eraseDeliveries } from '../sql/erasure.ts'
import { type DeliveryStatus, dropInSteps, ofStatuses, oldestLookedAt, removalKeptMs } from '../sql/kept-deliveries.ts'
import {
  type ClaimedRow,
  claimedColumns,
  claimedOf,
  type DeliveryRow,
  deliveryColumns,
  deliveryValues,
  recordColumns,
  recordOf,
  type StuckRow,
  type Subscribers,
  stuckLookedAt,
  stuckOf,
} from '../sql/subscribers.ts'
import type { Connections, Row, SqlParameter } from './connections.ts'
import { createDeliveryRows } from './erasure.ts'
import type { Look } from './glances.ts'
import { createEndpointStore, dropSome, selected } from './webhook-endpoints.ts'

const pruneSize = 500
/** So many of those that are due first at an endpoint are looked at for what waits behind another. */
const putOffSize = 200
/** The deliveries that a claim looks at beside those that it takes. `putOff` moves the ones that wait behind another. */
const claimLookedAt = putOffSize

/** Steps from endpoint to endpoint through the index of what is pending. */
const waitingSql = `
  WITH RECURSIVE waiting AS (
    (SELECT endpoint_id FROM webhook_deliveries WHERE status = 'pending' ORDER BY endpoint_id LIMIT 1)
    UNION ALL
    SELECT (
      SELECT d.endpoint_id FROM webhook_deliveries d WHERE d.status = 'pending' AND d.endpoint_id > waiting.endpoint_id
      ORDER BY d.endpoint_id LIMIT 1
    ) FROM waiting WHERE waiting.endpoint_id IS NOT NULL
  )`
export const dueSql = `${waitingSql}
  SELECT endpoint_id FROM waiting WHERE EXISTS (
    SELECT FROM webhook_deliveries d
    WHERE d.endpoint_id = waiting.endpoint_id AND d.status = 'pending' AND d.due_at <= statement_timestamp()
  )`
/** The order names all columns of the index, as in `listedSql`. */
export const stuckSql = `${waitingSql}
  SELECT ${selected(recordColumns, 'd')}, e.product, e.url
  FROM waiting JOIN webhook_endpoints e ON e.id = waiting.endpoint_id AND e.enabled
  CROSS JOIN LATERAL (
    SELECT * FROM (
      SELECT * FROM webhook_deliveries one
      WHERE (one.endpoint_id, one.status, one.id) > (waiting.endpoint_id, 'pending', '')
        AND (one.endpoint_id, one.status) <= (waiting.endpoint_id, 'pending')
      ORDER BY one.endpoint_id, one.status, one.id LIMIT ${stuckLookedAt}
    ) oldest WHERE attempts > 0 ORDER BY id LIMIT 1
  ) d`
const rowsType = 'id text, endpoint_id text, subject text, version integer, type text, body text, created_at bigint'
export const addSql = `
  INSERT INTO webhook_deliveries (${deliveryColumns})
  SELECT ${deliveryColumns} FROM json_to_recordset($1::text::json) AS h (${rowsType}) ON CONFLICT (id) DO NOTHING`
/** An index is only read up to a time that stands still while the statement runs, which clock_timestamp() does not. */
export const claimSql = `
  WITH due AS MATERIALIZED (
    SELECT d.id FROM json_to_recordset($1::text::json) AS wanted (endpoint_id text, count integer), LATERAL (
      SELECT one.id FROM (
        SELECT id, due_at FROM webhook_deliveries
        WHERE endpoint_id = wanted.endpoint_id AND status = 'pending' AND due_at <= statement_timestamp()
          AND (claimed_until IS NULL OR claimed_until <= clock_timestamp())
        ORDER BY due_at LIMIT wanted.count + ${claimLookedAt}
      ) looked JOIN webhook_deliveries one ON one.id = looked.id
      WHERE one.status = 'pending' AND (one.claimed_until IS NULL OR one.claimed_until <= clock_timestamp())
        AND NOT EXISTS (
          SELECT FROM webhook_deliveries older
          WHERE older.endpoint_id = one.endpoint_id AND older.subject = one.subject AND older.status = 'pending'
            AND older.version < one.version
        )
      ORDER BY looked.due_at LIMIT wanted.count FOR UPDATE OF one SKIP LOCKED
    ) d
  )
  UPDATE webhook_deliveries u SET claimed_until = clock_timestamp() + $2::float8 * interval '1 ms'
  FROM due WHERE u.id = due.id RETURNING ${selected(claimedColumns, 'u')}`
/** Deliveries that wait behind a failed one are due again with it. */
export const settleSql = `
  WITH settled AS (
    UPDATE webhook_deliveries d SET
      status = CASE s.outcome WHEN 'released' THEN 'pending' ELSE s.outcome END,
      attempts = d.attempts + CASE s.outcome WHEN 'released' THEN 0 ELSE 1 END,
      due_at = CASE WHEN s.outcome IN ('released', 'pending') THEN clock_timestamp() + s.after_ms * interval '1 ms' END,
      claimed_until = NULL,
      ended_at = CASE WHEN s.outcome = 'released' THEN d.ended_at WHEN s.outcome <> 'pending' THEN s.at END,
      response_status = CASE s.outcome WHEN 'released' THEN d.response_status ELSE s.response_status END,
      response = CASE s.outcome WHEN 'released' THEN d.response ELSE s.response END
    FROM json_to_recordset($1::text::json) AS s (
      id text, outcome text, after_ms float8, at bigint, response_status integer, response text
    )
    WHERE d.id = s.id AND d.status = 'pending'
    RETURNING d.endpoint_id, d.subject, d.version, d.due_at, s.outcome
  )
  UPDATE webhook_deliveries later SET due_at = settled.due_at FROM settled
  WHERE settled.outcome = 'pending' AND later.endpoint_id = settled.endpoint_id AND later.subject = settled.subject
    AND later.status = 'pending' AND later.version > settled.version AND later.due_at < settled.due_at`
export const putOffSql = `
  WITH late AS MATERIALIZED (
    SELECT one.id, head.due_at AS behind
    FROM json_array_elements_text($1::text::json) AS wanted (endpoint_id), LATERAL (
      SELECT d.id, d.endpoint_id, d.subject, d.version FROM webhook_deliveries d
      WHERE d.endpoint_id = wanted.endpoint_id AND d.status = 'pending' AND d.due_at <= statement_timestamp()
      ORDER BY d.due_at LIMIT ${putOffSize}
    ) one, LATERAL (
      SELECT older.due_at, older.attempts FROM webhook_deliveries older
      WHERE older.endpoint_id = one.endpoint_id AND older.subject = one.subject AND older.status = 'pending'
        AND older.version < one.version
      ORDER BY older.version LIMIT 1
    ) head
    WHERE head.attempts > 0 AND head.due_at > clock_timestamp()
  ), free AS MATERIALIZED (
    SELECT d.id, late.behind FROM late JOIN webhook_deliveries d ON d.id = late.id
    WHERE d.status = 'pending' AND d.due_at <= clock_timestamp() FOR UPDATE OF d SKIP LOCKED
  )
  UPDATE webhook_deliveries u SET due_at = free.behind FROM free WHERE u.id = free.id RETURNING 1`
/** The order names all columns of the index. By the id only, PostgreSQL would read the table's key and pass over other endpoints. */
const listedSql = (status: DeliveryStatus) => `
  (SELECT ${selected(recordColumns, 'd')} FROM webhook_deliveries d
   WHERE (d.endpoint_id, d.status, d.id) < ($1, '${status}', $2) AND (d.endpoint_id, d.status) >= ($1, '${status}')
   ORDER BY d.endpoint_id DESC, d.status DESC, d.id DESC LIMIT $3::int)`
export const deliveriesSql = (status?: DeliveryStatus) =>
  `SELECT * FROM (${ofStatuses(listedSql, status)}) AS listed ORDER BY id DESC LIMIT $3::int`
const retrySql = `
  UPDATE webhook_deliveries SET status = 'pending', due_at = clock_timestamp()
  WHERE endpoint_id = $1 AND id = $2 AND status <> 'pending' RETURNING id`
const removalsSql = 'SELECT endpoint_id FROM webhook_removals'
export const forgetRemovalsSql = `
  DELETE FROM webhook_removals r WHERE removed_at < clock_timestamp() - ${removalKeptMs} * interval '1 ms'
    AND NOT EXISTS (SELECT FROM webhook_deliveries d WHERE d.endpoint_id = r.endpoint_id)`
/**
 * A pending delivery that has ended before has one more attempt, which a backend asked for. A pending delivery that is older
 * than every failed one is found by its id.
 */
export const pruneSql = `
  DELETE FROM webhook_deliveries WHERE id IN (
    (SELECT id FROM webhook_deliveries WHERE status = 'delivered' AND ended_at < $1::float8::bigint LIMIT ${pruneSize})
    UNION ALL
    (SELECT id FROM webhook_deliveries WHERE status = 'failed' AND ended_at < $2::float8::bigint LIMIT ${pruneSize})
    UNION ALL
    (SELECT d.id FROM (SELECT * FROM webhook_deliveries WHERE id < $3 ORDER BY id LIMIT ${oldestLookedAt}) d
     WHERE d.status = 'pending' AND CASE WHEN d.ended_at IS NULL THEN d.created_at < $2::float8::bigint
       ELSE d.due_at < to_timestamp($2::float8 / 1000) END LIMIT ${pruneSize})
  ) RETURNING 1`

/** Endpoints and deliveries of several processes. A claim is a time in the row, which others leave alone. */
export function createWebhookStore(connections: Connections, look: Look, subscribers: Subscribers): WebhookStore {
  const run = (text: string, values: readonly SqlParameter[]): Promise<Row[]> =>
    connections.run(text, values, { repeatable: true })
  const endpoints = createEndpointStore(connections, look, subscribers)

  /** Removes the rest of removed endpoints, at most `most` steps of each; answers how many deliveries went. */
  async function dropRemoved(most?: number): Promise<number> {
    let count = 0
    for (const { endpoint_id } of await run(removalsSql, []))
      count += await dropInSteps(() => dropSome(connections, endpoint_id), most)
    await run(forgetRemovalsSql, [])
    return count
  }

  return {
    ...endpoints,
    async add(deliveries) {
      await run(addSql, [JSON.stringify(deliveries.map(rowOf))])
    },
    due: async () => (await look(dueSql, [])).map(({ endpoint_id }) => endpoint_id as string),
    async claim(wanted) {
      if (wanted.size === 0) return { claimed: [], isMore: false }
      const asked = Array.from(wanted, ([endpoint_id, count]) => ({ endpoint_id, count }))
      // Sent again after a lost connection it may claim more than it answers: that is free again after the lease.
      const rows = (await run(claimSql, [JSON.stringify(asked), claimMs])) as ClaimedRow[]
      return { claimed: rows.map(claimedOf), isMore: false }
    },
    async settle(attempted) {
      const rows = attempted.map(({ id, outcome, afterMs, at, responseStatus, response }) => ({
        id,
        outcome,
        after_ms: afterMs,
        at,
        response_status: responseStatus,
        response,
      }))
      await run(settleSql, [JSON.stringify(rows)])
    },
    async putOff(endpointIds) {
      if (endpointIds.length === 0) return false
      return (await run(putOffSql, [JSON.stringify(endpointIds)])).length > 0
    },
    async deliveries({ endpointId, status, limit, before = '~' }) {
      return ((await run(deliveriesSql(status), [endpointId, before, limit])) as DeliveryRow[]).map(recordOf)
    },
    stuck: async () => ((await run(stuckSql, [])) as StuckRow[]).map(stuckOf),
    retry: async (endpointId, id) => (await run(retrySql, [endpointId, id])).length > 0,
    async erase(participant, onErased = () => {}) {
      await dropRemoved()
      const of = await endpoints.endpointsOf(participant.product)
      const rows = createDeliveryRows(connections, mentionOf(participant))
      return eraseDeliveries(
        rows,
        of.map(({ id }) => id),
        participant,
        onErased,
      )
    },
    async prune(deliveredBefore, failedBefore) {
      const old = await run(pruneSql, [deliveredBefore, failedBefore, deliveryIdAt(failedBefore)])
      return old.length + (await dropRemoved(1))
    },
  }
}

function rowOf(delivery: Parameters<typeof deliveryValues>[0]): Record<string, unknown> {
  const values = deliveryValues(delivery)
  return Object.fromEntries(deliveryColumns.map((column, index) => [column, values[index]]))
}
