import type { Database } from 'bun:sqlite'
import type { CallRef, LiveCall, Participant } from '../../call/call.ts'
import { isLive, ringsAt, sideOf } from '../../call/call.ts'
import type { Step } from '../../call/effects.ts'
import { type Ended, type HistoryPage, type HistoryQuery, mostLastCalls, pageSize } from '../../ports/call-store.ts'
import { macrotask } from '../../ports/macrotask.ts'
import { callOf, type EventRow, eventOf } from '../sql/rows.ts'
import { attempt, type SqlValue } from './connection.ts'
import { inPages, rowsOfPage } from './pages.ts'
import { callColumns, type StoredCall, type StoredRow } from './rows.ts'

/** A place in the order of ends. */
export interface EndedAt {
  readonly endedAt: number
  readonly id: number
}

/** Every read of calls: each one finds its rows through an index. */
export interface CallReads {
  load(ref: CallRef): StoredCall | undefined
  live(): Promise<StoredCall<LiveCall>[]>
  liveOf(participant: Participant): Promise<LiveCall[]>
  lastAnswered(participants: readonly Participant[]): Promise<(number | null)[]>
  /** A page of those that ended later, or in the same millisecond and are stored later; `next` comes after it. */
  overPage(after: EndedAt): { readonly ended: readonly Ended[]; readonly next: EndedAt | undefined }
  stepsAfter(ref: CallRef, version: number): Step[]
  history(query: HistoryQuery): HistoryPage
}

const columns = callColumns.map((column) => `calls.${column}`).join(', ')

export const loadSql = `SELECT ${columns} FROM calls WHERE call_uuid = ? AND product = ?`
export const liveSql = `SELECT ${columns} FROM calls WHERE ended_at IS NULL AND calls.id > ? ORDER BY calls.id LIMIT ${rowsOfPage}`
/** In the order of their ends, and of their keys where several ended in the same millisecond. */
export const overPageSql = `
  SELECT calls.id AS id, ${columns}, type, at, by_user_id, by_role, by_session_id, notices
  FROM calls JOIN call_events ON call_events.call_id = calls.id AND call_events.version = calls.version
  WHERE (ended_at, calls.id) > (?, ?) ORDER BY ended_at, calls.id LIMIT ${pageSize}`

export const stepsAfterSql = `
  SELECT version, type, at, by_user_id, by_role, by_session_id, notices
  FROM call_events WHERE call_id = ? AND version > ? ORDER BY version`

const historyHalf = (side: 'caller' | 'callee') => `
  SELECT ${columns} FROM calls
  WHERE ${side}_user_id = ? AND ${side}_role = ? AND product = ? AND (started_at, call_uuid) < (?, ?)`

/** When the last call ended that somebody answered. */
export const lastAnsweredSql = `
  SELECT max(ended_at) AS ended_at FROM (
    SELECT accepted_at, ended_at FROM calls WHERE callee_user_id = ? AND callee_role = ? AND product = ?
    ORDER BY started_at DESC, call_uuid DESC LIMIT ${mostLastCalls}
  ) WHERE accepted_at IS NOT NULL`
/** The number of participants whose last calls are read in one turn of the event loop. */
const askedInOneTurn = 10

/**
 * Columns of calls that rang at a member of a group and were not answered, from `call_members`, whose index has them in their order.
 * Those that ring in turn come when they are over: then it is known at whom they rang [GROUP1].
 */
export const missedColumns = (names: readonly string[]) =>
  names.map((name) => (inOrder.includes(name) ? `m.${name} AS ${name}` : `calls.${name}`)).join(', ')
const inOrder = ['started_at', 'call_uuid']
export const missedFrom = `
  call_members AS m INDEXED BY members_rung CROSS JOIN calls ON calls.call_uuid = m.call_uuid AND calls.product = m.product
  WHERE m.user_id = ? AND m.role = ? AND m.product = ? AND m.rang = 1 AND calls.accepted_at IS NULL
    AND (calls.ended_at IS NOT NULL OR calls.extra NOT LIKE '%"turns":%')`

/** Both directions and missed calls to groups, each in the order of its index, merged [HIST1]. */
export const historySql = `
  ${historyHalf('caller')} UNION ALL ${historyHalf('callee')} UNION ALL
  SELECT ${missedColumns(callColumns)} FROM ${missedFrom} AND (m.started_at, m.call_uuid) < (?, ?)
  ORDER BY started_at DESC, call_uuid DESC LIMIT ?`

/** Before the first page: later than every call. */
const start = { startedAt: Number.POSITIVE_INFINITY, callUuid: '' }

export function createCallReads(db: Database): CallReads {
  const load = db.query<StoredRow, [string, string]>(loadSql)
  const live = db.query<StoredRow, [number]>(liveSql)
  const overPage = db.query<StoredRow & EventRow, [number, number]>(overPageSql)
  const stepsAfter = db.query<EventRow & { version: number }, [number, number]>(stepsAfterSql)
  const history = db.query<StoredRow, SqlValue[]>(historySql)
  const lastAnswered = db.query<{ ended_at: number | null }, [string, string, string]>(lastAnsweredSql)

  async function readLive(): Promise<StoredCall<LiveCall>[]> {
    const rows = await inPages(
      0,
      (after) => live.all(after),
      ({ id }) => id,
    )
    return rows.flatMap((row) => {
      const call = callOf(row)
      return isLive(call) ? [{ id: row.id, call }] : []
    })
  }

  return {
    load(ref) {
      const row = load.get(ref.callUuid, ref.product)
      return row === null ? undefined : { id: row.id, call: callOf(row) }
    },
    live: readLive,
    liveOf: async (participant) =>
      (await readLive())
        .map(({ call }) => call)
        .filter((call) => sideOf(call, participant) !== undefined || ringsAt(call, participant)),
    async lastAnswered(participants) {
      const found: (number | null)[] = []
      for (const [n, { product, role, userId }] of participants.entries()) {
        if (n > 0 && n % askedInOneTurn === 0) await macrotask()
        found.push(await attempt(() => lastAnswered.get(userId, role, product)?.ended_at ?? null))
      }
      return found
    },
    overPage({ endedAt, id }) {
      const rows = overPage.all(endedAt, id)
      const ended = rows.flatMap((row) => {
        const call = callOf(row)
        return isLive(call) ? [] : [{ call, step: { call, event: eventOf(row) } }]
      })
      const last = rows.length < pageSize ? undefined : rows.at(-1)
      return { ended, next: last && { endedAt: last.ended_at ?? endedAt, id: last.id } }
    },
    stepsAfter(ref, version) {
      const row = load.get(ref.callUuid, ref.product)
      if (row === null) return []
      const call = callOf(row)
      return stepsAfter
        .all(row.id, version)
        .map((event) => ({ call: { ...call, version: event.version }, event: eventOf(event) }))
    },
    history({ participant, limit, after = start }) {
      const { product, role, userId } = participant
      const half = [userId, role, product, after.startedAt, after.callUuid]
      const rows = history.all(...half, ...half, ...half, limit + 1)
      return { calls: rows.slice(0, limit).map(callOf), more: rows.length > limit }
    },
  }
}
