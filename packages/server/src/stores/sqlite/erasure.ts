import type { Database } from 'bun:sqlite'
import type { Side } from '../../call/call.ts'
import {
  type BlankedDelivery,
  type BlankedEvent,
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
import type { SqlValue } from './connection.ts'
import { type CountErrand, createCountWriter } from './erasures.ts'

/** The work of the writer thread for an erasure. */
export type EraseErrand =
  | {
      readonly type: 'eraseCalls'
      readonly side: Part
      readonly userId: string
      readonly ids: readonly number[]
      readonly events: readonly BlankedEvent[]
    }
  | { readonly type: 'eraseHooks'; readonly rows: readonly BlankedDelivery[] }
  | CountErrand

export interface EraseWrites {
  erase(errand: EraseErrand): Promise<number>
}

/** The columns of a live call are not written here: then it has to have forgotten the member itself. */
const ofMemberSql = `
  SELECT calls.id, calls.started_at, calls.call_uuid FROM call_members AS m
  JOIN calls ON calls.call_uuid = m.call_uuid AND calls.product = m.product
  WHERE m.user_id = ? AND m.role = ? AND m.product = ? AND (m.started_at, m.call_uuid) > (?, ?)
    AND (calls.ended_at IS NOT NULL OR m.user_id NOT IN (
      ${memberLists.map((name) => `SELECT value FROM json_each(calls.extra, '$.group.${name}')`).join(' UNION ALL ')}))
  ORDER BY m.started_at, m.call_uuid LIMIT ${erasedAtOnce}`
const transferrer = { userId: "extra ->> '$.transferred.by.userId'", role: "extra ->> '$.transferred.by.role'" }
const namesOf = (part: Side | 'transferrer') =>
  part === 'transferrer' ? transferrer : { userId: `${part}_user_id`, role: `${part}_role` }
export function callsSql(part: Part): string {
  if (part === 'member') return ofMemberSql
  const { userId, role } = namesOf(part)
  return `
  SELECT id, started_at, call_uuid FROM calls
  WHERE ${userId} = ? AND ${role} = ? AND product = ? AND (started_at, call_uuid) > (?, ?)
    AND ended_at IS NOT NULL ORDER BY started_at, call_uuid LIMIT ${erasedAtOnce}`
}
const eventsSql = (count: number) => `
  SELECT call_id, version, by_user_id, by_role, notices FROM call_events
  WHERE call_id IN (?${', ?'.repeat(count - 1)})`
export const deliveriesSql = `
  ${ofStatuses(
    (status) => `
  SELECT id, CASE WHEN instr(body, ?1) > 0 THEN body END AS body FROM webhook_deliveries
  WHERE endpoint_id = ?2 AND status = '${status}' AND id > ?3`,
  )} ORDER BY id LIMIT ${lookedThrough}`

/** The sightings on one side of a call. */
export const entriesSql = (side: Side) => `DELETE FROM call_timeline WHERE call_id = ? AND side = '${side}'`

export function createCallRows(reader: Database, writes: EraseWrites): CallRows {
  return {
    page(side, { product, role, userId }, after) {
      const page = reader.query<ErasableCall, SqlValue[]>(callsSql(side))
      const calls = page.all(userId, role, product, after.started_at, after.call_uuid)
      if (calls.length === 0) return { calls, events: [] }
      const events = reader.query<ErasableEvent, number[]>(eventsSql(calls.length))
      return { calls, events: events.all(...calls.map(({ id }) => id)) }
    },
    write: (side, { userId }, ids, events) => writes.erase({ type: 'eraseCalls', side, userId, ids, events }),
  }
}

export function createDeliveryRows(reader: Database, writes: EraseWrites, mention: string): DeliveryRows {
  const page = reader.query<LookedThrough, string[]>(deliveriesSql)
  return {
    page: (endpointId, after) => page.all(mention, endpointId, after),
    write: (rows) => writes.erase({ type: 'eraseHooks', rows }),
  }
}

/** Of the writer thread: each errand is one transaction. */
export function createEraseWriter(db: Database): (errand: EraseErrand) => number {
  const event = db.query<unknown, (string | number | null)[]>(`
    UPDATE call_events SET
      notices = ?1,
      by_user_id = CASE ?2 WHEN 1 THEN '' ELSE by_user_id END,
      by_session_id = CASE ?2 WHEN 1 THEN '' ELSE by_session_id END
    WHERE call_id = ?3 AND version = ?4 AND notices IS ?5`)
  const blankCall = (side: Side, place: string) =>
    db.query<unknown, [number, string]>(`
      UPDATE calls SET ${side}_user_id = '', ${side}_name = NULL, metadata = NULL, ${place}
      WHERE id = ? AND ${side}_user_id = ? AND ended_at IS NOT NULL`)
  const blankTransferrer = db.query<unknown, [number, string]>(`
      UPDATE calls SET metadata = NULL,
        extra = json_set(extra, '$.transferred.by.userId', '', '$.transferred.by.displayName', NULL)
      WHERE id = ?1 AND ${transferrer.userId} = ?2 AND ended_at IS NOT NULL`)
  const calls = {
    caller: blankCall('caller', `caller_place = '${blankPlace}'`),
    callee: blankCall('callee', 'callee_place = NULL'),
  }
  const entries = {
    caller: db.query<unknown, [number]>(entriesSql('caller')),
    callee: db.query<unknown, [number]>(entriesSql('callee')),
  }
  // The result of a subquery is a text for SQLite, until json() says what it is.
  const list = (name: string) => `'$.group.${name}', json((
        SELECT json_group_array(value) FROM json_each(extra, '$.group.${name}') WHERE value <> ?2))`
  const blankMember = db.query<unknown, [number, string]>(`
      UPDATE calls SET extra = json_replace(extra, ${memberLists.map(list).join(', ')})
      WHERE id = ?1 AND ended_at IS NOT NULL`)
  const dropMember = db.query<unknown, [number, string]>(`
      DELETE FROM call_members WHERE user_id = ?2 AND (product, role, started_at, call_uuid) IN (
        SELECT product, callee_role, started_at, call_uuid FROM calls WHERE id = ?1)`)
  const delivery = db.query<unknown, string[]>(
    'UPDATE webhook_deliveries SET body = ?, response = NULL WHERE id = ? AND body = ?',
  )
  const count = createCountWriter(db)
  const sum = <T>(items: readonly T[], changes: (item: T) => number) =>
    items.reduce((count, item) => count + changes(item), 0)

  const run = db.transaction((errand: EraseErrand) => {
    if (errand.type === 'eraseHooks') {
      return sum(errand.rows, ({ id, was, body }) => delivery.run(body, id, was).changes)
    }
    if (errand.type !== 'eraseCalls') return count(errand)
    const { side, userId, ids, events } = errand
    const changed = sum(
      events,
      ({ call_id, version, author, was, notices }) => event.run(notices, author, call_id, version, was).changes,
    )
    if (changed < events.length) return 0
    if (side === 'member') {
      return sum(ids, (id) => {
        blankMember.run(id, userId)
        return dropMember.run(id, userId).changes
      })
    }
    if (side === 'transferrer') return sum(ids, (id) => blankTransferrer.run(id, userId).changes)
    return sum(ids, (id) => {
      const { changes } = calls[side].run(id, userId)
      if (changes > 0) entries[side].run(id)
      return changes
    })
  })
  return (errand) => run.immediate(errand)
}
