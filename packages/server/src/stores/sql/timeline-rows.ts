import type { CallRef, Side } from '../../call/call.ts'
import type { Detail, Seen, TimelineRow } from '../../call/observed.ts'
import type { RefusedAt } from '../../ports/timeline.ts'

/**
 * The columns of an entry, in order. `side`, `role` and `user_id` are blank where there is none; `entry` is JSON. An entry that
 * comes with a `user_id` and no `role` belongs to a member of a group: it is stored without the name, if that member is the callee.
 */
export const timelineColumns = ['product', 'call_uuid', 'id', 'at', 'side', 'role', 'user_id', 'entry'] as const

export interface StoredEntry {
  id: string
  at: number
  side: string
  role: string
  user_id: string
  entry: string
}

/** Of an invite that was refused, which is found by who asked. */
export type StoredRefusal = StoredEntry & { call_uuid: string }
/** Before the first page of those: later than every one. */
export const latest: RefusedAt = { at: Number.MAX_SAFE_INTEGER, id: '' }

interface EntryText {
  readonly what: Seen
  readonly session?: string | undefined
  readonly device?: string | undefined
  readonly detail: Detail
}

export function timelineValues(row: TimelineRow): (string | number)[] {
  const { product, callUuid, id, at, what, side, asker, sessionId, deviceId, member, detail } = row
  const entry: EntryText = { what, session: sessionId, device: deviceId, detail }
  const userId = asker?.userId ?? member ?? ''
  return [product, callUuid, id, at, side ?? '', asker?.role ?? '', userId, JSON.stringify(entry)]
}

export function timelineRowOf({ product, callUuid }: CallRef, stored: StoredEntry): TimelineRow {
  const { what, session, device, detail } = JSON.parse(stored.entry) as EntryText
  return {
    product,
    callUuid,
    id: stored.id,
    at: Number(stored.at),
    what,
    side: stored.side === '' ? null : (stored.side as Side),
    ...(stored.role !== '' && { asker: { role: stored.role, userId: stored.user_id } }),
    ...(session !== undefined && { sessionId: session }),
    ...(device !== undefined && { deviceId: device }),
    detail,
  }
}
