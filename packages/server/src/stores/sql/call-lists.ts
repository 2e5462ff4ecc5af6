import type { By } from '../../call/effects.ts'
import { type ListPage, type ListQuery, mostLookedAt, type Position, type SeenCall } from '../../ports/call-store.ts'
import { andThen, type MaybePromise } from '../../ports/maybe.ts'
import { type CallRow, callOf, type EventRow } from './rows.ts'

/*
 * Lists of calls for backends [SRV2]: what the SQL adapters share. Each reads along one index, in its order.
 */

/** A call's row with who brought it into its status. */
export type SeenRow = CallRow & Pick<EventRow, 'by_user_id' | 'by_role'>

/** The type of the event that brought a call into its status. */
export const eventOfStatus = "CASE calls.status WHEN 'ringing' THEN 'invited' ELSE calls.status END"

/** Which calls are read along: all of a product, those that are live, or those of a participant. */
export type Along = 'product' | 'live' | 'participant'

/** The part of an order that is read: older than `after`, and `floor` or newer. */
export interface Range {
  readonly along: Along
  readonly query: ListQuery
  readonly floor: Position
}

export interface ListReads {
  /** The last of the first `count` calls of the range, whatever their status. */
  edge(range: Range, count: number): MaybePromise<Position | undefined>
  /** The first `count` calls of the range with one of the statuses, in order. */
  rows(range: Range, count: number): MaybePromise<readonly SeenRow[]>
}

/**
 * A page looks for a rare status in a limited number of calls, and the next page looks on from there: no page takes for
 * ever.
 */
export function listPage(reads: ListReads, query: ListQuery): MaybePromise<ListPage> {
  const { limit, statuses, participant, since } = query
  const isLive = statuses?.every((status) => liveStatuses.includes(status)) ?? false
  const along: Along = participant === undefined ? (isLive ? 'live' : 'product') : 'participant'
  const all: Range = { along, query, floor: { startedAt: since, callUuid: '' } }
  const edge = statuses === undefined ? undefined : reads.edge(all, mostLookedAt)
  return andThen(edge, (found) =>
    andThen(reads.rows({ ...all, floor: found ?? all.floor }, limit + 1), (rows) => {
      const calls = rows.slice(0, limit).map(seenOf)
      const last = calls.at(-1)?.call
      const next = rows.length > limit && last !== undefined ? positionOf(last) : found
      return { calls, next }
    }),
  )
}

const liveStatuses: readonly string[] = ['ringing', 'accepted', 'connected']

export function seenOf(row: SeenRow): SeenCall {
  return { call: callOf(row), by: whoOf(row) }
}

function whoOf({ by_user_id: userId, by_role: role }: SeenRow): Pick<By, 'userId' | 'role'> | null {
  return userId === null || role === null ? null : { userId, role }
}

const positionOf = ({ startedAt, callUuid }: Position): Position => ({ startedAt, callUuid })
