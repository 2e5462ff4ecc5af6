import type { Side } from '../../call/call.ts'
import {
  blankPlace,
  type CallRows,
  type DeliveryRows,
  type ErasableCall,
  type ErasableEvent,
  erasedAtOnce,
  type LookedThrough,
  lookedThrough,
  memberLists,
  type Part,
} from '../sql/erasure.ts'
import { ofStatuses } from '../sql/kept-deliveries.ts'
import type { Connections } from './connections.ts'

/** The columns of a live call are not written here: then it has to have forgotten the member itself. */
const ofMemberSql = `
  SELECT calls.id::float8 AS id, m.started_at::float8 AS started_at, m.call_uuid FROM call_members AS m
  JOIN calls ON calls.call_uuid = m.call_uuid AND calls.product = m.product
  WHERE m.user_id = $1 AND m.role = $2 AND m.product = $3 AND (m.started_at, m.call_uuid) > ($4::float8::bigint, $5)
    AND (calls.ended_at IS NOT NULL OR m.user_id NOT IN (
      ${memberLists
        .map((name) => `SELECT json_array_elements_text(calls.extra::json #> '{group,${name}}')`)
        .join(' UNION ALL ')}))
  ORDER BY m.started_at, m.call_uuid LIMIT ${erasedAtOnce}`
/** The row by which a call is found goes last. */
export const blankMemberSql = `
  WITH blanked AS (
    UPDATE calls SET extra = jsonb_set(jsonb_set(jsonb_set(extra::jsonb,
        '{group,members}', (extra::jsonb #> '{group,members}') - $2::text),
        '{group,declined}', (extra::jsonb #> '{group,declined}') - $2::text),
        '{group,left}', coalesce((extra::jsonb #> '{group,left}') - $2::text, '[]'), false)::text
    WHERE id = ANY ($1::text::bigint[]) AND ended_at IS NOT NULL
  )
  DELETE FROM call_members AS m USING calls AS c
  WHERE c.id = ANY ($1::text::bigint[]) AND m.product = c.product AND m.role = c.callee_role AND m.user_id = $2
    AND m.started_at = c.started_at AND m.call_uuid = c.call_uuid RETURNING 1`
const transferrer = {
  userId: "extra::json #>> '{transferred,by,userId}'",
  role: "extra::json #>> '{transferred,by,role}'",
}
export const blankTransferrerSql = `
  UPDATE calls SET metadata = NULL, extra = jsonb_set(jsonb_set(extra::jsonb,
      '{transferred,by,userId}', '""'), '{transferred,by,displayName}', 'null')::text
  WHERE id = ANY ($1::text::bigint[]) AND ${transferrer.userId} = $2 AND ended_at IS NOT NULL RETURNING 1`
const namesOf = (part: Side | 'transferrer') =>
  part === 'transferrer' ? transferrer : { userId: `${part}_user_id`, role: `${part}_role` }
export function callsSql(part: Part): string {
  if (part === 'member') return ofMemberSql
  const { userId, role } = namesOf(part)
  return `
  SELECT id::float8 AS id, started_at::float8 AS started_at, call_uuid FROM calls
  WHERE ${userId} = $1 AND ${role} = $2 AND product = $3 AND (started_at, call_uuid) > ($4::float8::bigint, $5)
    AND ended_at IS NOT NULL ORDER BY calls.started_at, call_uuid LIMIT ${erasedAtOnce}`
}
export const eventsSql = `
  SELECT call_id::float8 AS call_id, version, by_user_id, by_role, notices FROM call_events
  WHERE call_id = ANY ($1::text::bigint[])`
export const blankEventsSql = `
  UPDATE call_events AS e SET
    notices = given.notices,
    by_user_id = CASE given.author WHEN 1 THEN '' ELSE e.by_user_id END,
    by_session_id = CASE given.author WHEN 1 THEN '' ELSE e.by_session_id END
  FROM json_to_recordset($1::text::json) AS given (
    call_id bigint, version integer, author integer, was text, notices text
  )
  WHERE e.call_id = given.call_id AND e.version = given.version AND e.notices IS NOT DISTINCT FROM given.was
  RETURNING 1`
const places: Readonly<Record<Side, string>> = {
  caller: `caller_place = '${blankPlace}'`,
  callee: 'callee_place = NULL',
}
/** Waits for every writer to the timelines of the calls: then the next statement sees what they added. */
export const lockCallsSql = (ids: readonly number[]) => `
  SELECT 1 FROM calls WHERE id = ANY ('{${ids}}'::bigint[]) ORDER BY call_uuid, product FOR UPDATE`
/** A call that is over and has a name on the side has that of the page which it was found in: no name becomes another. */
export const blankCallsSql = (side: Side, ids: readonly number[]) => `
  WITH blanked AS (
    UPDATE calls SET ${side}_user_id = '', ${side}_name = NULL, metadata = NULL, ${places[side]}
    WHERE id = ANY ('{${ids}}'::bigint[]) AND ${side}_user_id <> '' AND ended_at IS NOT NULL
    RETURNING product, call_uuid
  ), seen AS (
    DELETE FROM call_timeline AS t USING blanked
    WHERE t.product = blanked.product AND t.call_uuid = blanked.call_uuid AND t.side = '${side}' AND t.role = ''
  ) SELECT 1 FROM blanked`

export const deliveriesSql = `
  SELECT id, CASE WHEN strpos(body, $3) > 0 THEN body END AS body
  FROM (${ofStatuses(
    (status) => `(
    SELECT id, body FROM webhook_deliveries
    WHERE (endpoint_id, status, id) > ($1, '${status}', $2) AND (endpoint_id, status) <= ($1, '${status}')
    ORDER BY endpoint_id, status, webhook_deliveries.id LIMIT ${lookedThrough})`,
  )}) AS kept ORDER BY id LIMIT ${lookedThrough}`
export const blankDeliveriesSql = `
  UPDATE webhook_deliveries AS d SET body = given.body, response = NULL
  FROM json_to_recordset($1::text::json) AS given (id text, was text, body text)
  WHERE d.id = given.id AND d.body = given.was RETURNING 1`

/** Each statement leaves the same behind when it is done twice, but then answers less: it is begun again. */
const repeatable = { repeatable: true }

export function createCallRows(connections: Connections): CallRows {
  return {
    async page(side, { product, role, userId }, after) {
      const values = [userId, role, product, after.started_at, after.call_uuid]
      const calls: ErasableCall[] = await connections.run(callsSql(side), values, repeatable)
      if (calls.length === 0) return { calls, events: [] }
      const events: ErasableEvent[] = await connections.run(eventsSql, [`{${calls.map(({ id }) => id)}}`], repeatable)
      return { calls, events }
    },
    async write(side, { userId }, ids, events) {
      const changed =
        events.length === 0 ? [] : await connections.run(blankEventsSql, [JSON.stringify(events)], repeatable)
      if (changed.length < events.length) return 0
      if (side === 'member') return (await connections.run(blankMemberSql, [`{${ids}}`, userId], repeatable)).length
      if (side === 'transferrer')
        return (await connections.run(blankTransferrerSql, [`{${ids}}`, userId], repeatable)).length
      // Without parameters, both are one transaction.
      const both = `${lockCallsSql(ids)};${blankCallsSql(side, ids)}`
      const [, blanked]: unknown[][] = await connections.run(both, [], repeatable)
      return blanked?.length ?? 0
    },
  }
}

export function createDeliveryRows(connections: Connections, mention: string): DeliveryRows {
  return {
    page: (endpointId, after): Promise<LookedThrough[]> =>
      connections.run(deliveriesSql, [endpointId, after, mention], repeatable),
    write: async (rows) => (await connections.run(blankDeliveriesSql, [JSON.stringify(rows)], repeatable)).length,
  }
}
