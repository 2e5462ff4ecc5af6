import type { Participant, Side } from '../../call/call.ts'
import { mostEntries } from '../../call/observed.ts'
import { type OnForgotten, refusedKeptMs, type TimelineStore } from '../../ports/timeline.ts'
import { type CallPosition, firstPosition, sidesOfCall } from '../sql/erasure.ts'
import {
  latest,
  type StoredEntry,
  type StoredRefusal,
  timelineColumns,
  timelineRowOf,
  timelineValues,
} from '../sql/timeline-rows.ts'
import type { Connections, SqlParameter } from './connections.ts'

/** So few that nothing else waits for long. */
const batchSize = 500
/** Of calls whose entries are looked for. */
const callsAtOnce = 100

export const entriesSql = `
  SELECT id, at::float8 AS at, side, role, user_id, entry FROM call_timeline
  WHERE product = $1 AND call_uuid = $2 ORDER BY at, id LIMIT $3::int`
/**
 * Nothing is written of a side that was erased [SRV2], of a member who is not the callee [GROUP1], nor of a call that is not
 * kept any more. A refused invite (`role`, `user_id`: its caller) is written if there is no such call, or one of the same
 * caller [UUID1]. The calls are locked in the order of every commit, and read as they are then: a transaction that blanks or
 * removes one waits, or this one waits for it. Two nodes that write of one call at once may pass its bound by what they write;
 * nobody reads more than that.
 */
export const addSql = `
  WITH given AS (
    SELECT row.*, EXISTS (
      SELECT FROM call_timeline AS t
      WHERE t.product = row.product AND t.call_uuid = row.call_uuid AND t.id = row.id) AS replaces
    FROM json_to_recordset($1::text::json) AS row (
      product text, call_uuid text, id text, at bigint, side text, role text, user_id text, entry text)
  ), kept AS (
    SELECT c.product, c.call_uuid, c.caller_role, c.caller_user_id, c.callee_role, c.callee_user_id
    FROM (SELECT DISTINCT product, call_uuid FROM given) AS named
    JOIN calls AS c ON c.call_uuid = named.call_uuid AND c.product = named.product
    ORDER BY c.call_uuid, c.product FOR KEY SHARE OF c
  ), written AS (
    SELECT given.*,
      row_number() OVER (PARTITION BY given.product, given.call_uuid, given.replaces ORDER BY given.at, given.id) AS number
    FROM given LEFT JOIN kept AS c ON c.call_uuid = given.call_uuid AND c.product = given.product
    WHERE CASE
      WHEN c.call_uuid IS NULL THEN given.role <> ''
      WHEN given.role <> '' THEN (given.role, given.user_id)
        IN ((c.caller_role, c.caller_user_id), (c.callee_role, c.callee_user_id))
      WHEN given.side = 'caller' THEN c.caller_user_id <> ''
      WHEN given.side = 'callee' THEN c.callee_user_id <> '' AND given.user_id IN ('', c.callee_user_id)
      ELSE true END
  )
  INSERT INTO call_timeline (${timelineColumns})
  SELECT ${timelineColumns.map((name) => (name === 'user_id' ? "CASE role WHEN '' THEN '' ELSE user_id END" : name))}
  FROM written
  WHERE replaces OR number + (
    SELECT count(*) FROM call_timeline AS t WHERE t.product = written.product AND t.call_uuid = written.call_uuid
  ) <= ${mostEntries}
  ORDER BY product COLLATE "C", call_uuid COLLATE "C", id COLLATE "C"
  ON CONFLICT (product, call_uuid, id) DO UPDATE SET entry = excluded.entry`
/** The next calls of a side after a position. */
export const callsOfSql = (side: Side) => `
  SELECT started_at::float8 AS started_at, call_uuid FROM calls
  WHERE ${side}_user_id = $1 AND ${side}_role = $2 AND product = $3 AND (started_at, call_uuid) > ($4::float8::bigint, $5)
  ORDER BY calls.started_at, call_uuid LIMIT ${callsAtOnce}`
export const forgetSideSql = `
  DELETE FROM call_timeline WHERE (product, call_uuid, id) IN (
    SELECT product, call_uuid, id FROM call_timeline
    WHERE product = $1 AND call_uuid = ANY ($2::text[]) AND side = $3 AND role = '' LIMIT $4::int)
  RETURNING 1`
export const forgetRefusedSql = `
  DELETE FROM call_timeline WHERE (product, call_uuid, id) IN (
    SELECT product, call_uuid, id FROM call_timeline
    WHERE role <> '' AND user_id = $1 AND role = $2 AND product = $3 LIMIT $4::int)
  RETURNING 1`
export const refusedSql = `
  SELECT call_uuid, id, at::float8 AS at, side, role, user_id, entry FROM call_timeline
  WHERE role <> '' AND user_id = $1 AND role = $2 AND product = $3 AND (at, id) < ($4::float8::bigint, $5)
  ORDER BY call_timeline.at DESC, id DESC LIMIT $6::int`
/**
 * A node's own clock may be wrong: what is young by the database's stays. No index is read up to the time of a clock that
 * moves on while the statement runs, as clock_timestamp() does.
 */
export const pruneRefusedSql = `
  DELETE FROM call_timeline WHERE (product, call_uuid, id) IN (
    SELECT product, call_uuid, id FROM call_timeline
    WHERE role <> ''
      AND at < least($1::float8, extract(epoch FROM statement_timestamp())::float8 * 1000 - $3::float8)::bigint
    ORDER BY at LIMIT $2::int FOR UPDATE SKIP LOCKED)
  RETURNING 1`

/** Entries in the database, beside the commits: none of them waits for one. Calls are kept for `retentionMs`; 0: for ever. */
export function createTimelineStore(connections: Connections, retentionMs: number): TimelineStore {
  const keptMs = Math.min(refusedKeptMs, retentionMs || refusedKeptMs)
  const run = (text: string, values: readonly SqlParameter[]) =>
    // Each of the writes leaves the same behind when it is done twice.
    connections.run(text, values, { repeatable: true })

  /** Asks again as long as there may be more; answers how many in all. */
  async function forget(sql: string, values: readonly SqlParameter[], onForgotten: OnForgotten): Promise<number> {
    let count = 0
    for (let last = batchSize; last === batchSize; count += last) {
      last = (await run(sql, [...values, batchSize])).length
      if (last > 0) await onForgotten(last)
    }
    return count
  }

  /** Along the calls, some at a time: those whose entries are gone are not looked at again. */
  async function forgetSide(side: Side, { product, role, userId }: Participant, onForgotten: OnForgotten) {
    let count = 0
    let after = firstPosition
    for (;;) {
      const page: CallPosition[] = await run(callsOfSql(side), [
        userId,
        role,
        product,
        after.started_at,
        after.call_uuid,
      ])
      const last = page.at(-1)
      if (last === undefined) return count
      const names = `{${page.map(({ call_uuid }) => call_uuid)}}`
      count += await forget(forgetSideSql, [product, names, side], onForgotten)
      after = last
    }
  }

  return {
    async add(rows) {
      if (rows.length > 0) await run(addSql, [JSON.stringify(rows.map(objectOf))])
    },
    async of(ref) {
      const rows: StoredEntry[] = await run(entriesSql, [ref.product, ref.callUuid, mostEntries])
      return rows.map((row) => timelineRowOf(ref, row))
    },
    async refusedOf({ product, role, userId }, limit, before = latest) {
      const values = [userId, role, product, before.at, before.id, limit]
      const rows: StoredRefusal[] = await run(refusedSql, values)
      return rows.map((row) => timelineRowOf({ product, callUuid: row.call_uuid }, row))
    },
    async forgetParticipant(participant, onForgotten = () => {}) {
      const { product, role, userId } = participant
      let count = await forget(forgetRefusedSql, [userId, role, product], onForgotten)
      for (const side of sidesOfCall) count += await forgetSide(side, participant, onForgotten)
      return count
    },
    pruneRefused: async (before) => (await run(pruneRefusedSql, [before, batchSize, keptMs])).length,
  }
}

function objectOf(row: Parameters<typeof timelineValues>[0]): Record<string, string | number | undefined> {
  const values = timelineValues(row)
  return Object.fromEntries(timelineColumns.map((column, index) => [column, values[index]]))
}
