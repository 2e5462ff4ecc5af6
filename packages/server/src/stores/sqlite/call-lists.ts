import type { Database } from 'bun:sqlite'
import type { CallRef } from '../../call/call.ts'
import type { ListPage, ListQuery, Position, SeenCall } from '../../ports/call-store.ts'
import { eventOfStatus, listPage, type Range, type SeenRow, seenOf } from '../sql/call-lists.ts'
import { missedColumns, missedFrom } from './call-reads.ts'
import type { SqlValue } from './connection.ts'
import { callColumns } from './rows.ts'

const columns = callColumns.map((column) => `calls.${column}`).join(', ')
const withBy = (from: string) => `
  SELECT ${columns}, by_user_id, by_role FROM ${from}
  LEFT JOIN call_events ON call_events.call_id = calls.id AND call_events.type = ${eventOfStatus}`

export const seenSql = `${withBy('calls')} WHERE calls.call_uuid = ? AND calls.product = ?`

/** `g` comes after every digit of a uuid. */
export const beginningSql =
  "SELECT call_uuid FROM calls INDEXED BY calls_by_uuid WHERE call_uuid >= ?1 AND call_uuid < ?1 || 'g' AND product = ?2 ORDER BY call_uuid LIMIT ?3"

const rangeOf = (table: string) =>
  `(${table}started_at, ${table}call_uuid) < (?, ?) AND (${table}started_at, ${table}call_uuid) >= (?, ?)`
const range = rangeOf('')
const order = 'ORDER BY started_at DESC, call_uuid DESC'
const half = (what: readonly string[], side: 'caller' | 'callee') =>
  `SELECT ${what.join(', ')} FROM calls WHERE ${side}_user_id = ? AND ${side}_role = ? AND product = ? AND ${range}`
const missed = (what: readonly string[]) => `SELECT ${missedColumns(what)} FROM ${missedFrom} AND ${rangeOf('m.')}`

/** Where each list finds its calls. */
const sources: Readonly<Record<Range['along'], (what: readonly string[]) => string>> = {
  product: (what) => `SELECT ${what.join(', ')} FROM calls WHERE product = ? AND ${range}`,
  live: (what) =>
    `SELECT ${what.join(', ')} FROM calls INDEXED BY live_calls_by_start WHERE product = ? AND ended_at IS NULL AND ${range}`,
  participant: (what) => `${half(what, 'caller')} UNION ALL ${half(what, 'callee')} UNION ALL ${missed(what)}`,
}

export const edgeSql = (along: Range['along']) =>
  `${sources[along](['started_at', 'call_uuid'])} ${order} LIMIT 1 OFFSET ?`
export const listSql = (along: Range['along']) => `
  ${withBy(`(SELECT * FROM (${sources[along](['id', ...callColumns])}) WHERE ? = '' OR instr(' ' || ? || ' ', ' ' || status || ' ') > 0 ${order} LIMIT ?) AS calls`)}
  ORDER BY calls.started_at DESC, calls.call_uuid DESC`

const newest: Position = { startedAt: Number.POSITIVE_INFINITY, callUuid: '' }

export interface CallLists {
  seen(ref: CallRef): SeenCall | undefined
  beginning(product: string, start: string, limit: number): readonly string[]
  list(query: ListQuery): ListPage
}

export function createCallLists(db: Database): CallLists {
  const seen = db.query<SeenRow, [string, string]>(seenSql)
  const beginning = db.query<{ call_uuid: string }, [string, string, number]>(beginningSql)
  const statements = (sqlOf: (along: Range['along']) => string) => ({
    product: sqlOf('product'),
    live: sqlOf('live'),
    participant: sqlOf('participant'),
  })
  const edges = statements(edgeSql)
  const lists = statements(listSql)

  function valuesOf({ along, query, floor }: Range): SqlValue[] {
    const { product, participant, after = newest } = query
    const bounds = [after.startedAt, after.callUuid, floor.startedAt, floor.callUuid]
    if (along !== 'participant' || participant === undefined) return [product, ...bounds]
    const half = [participant.userId, participant.role, product, ...bounds]
    return [...half, ...half, ...half]
  }

  return {
    seen(ref) {
      const row = seen.get(ref.callUuid, ref.product)
      return row === null ? undefined : seenOf(row)
    },
    beginning: (product, start, limit) => beginning.all(start, product, limit).map(({ call_uuid }) => call_uuid),
    list: (query) =>
      // Here every answer is there at once.
      listPage(
        {
          edge(range, count) {
            const sql = edges[range.along]
            const row = db
              .query<{ started_at: number; call_uuid: string }, SqlValue[]>(sql)
              .get(...valuesOf(range), count - 1)
            return row === null ? undefined : { startedAt: row.started_at, callUuid: row.call_uuid }
          },
          rows(range, count) {
            const statuses = range.query.statuses?.join(' ') ?? ''
            return db.query<SeenRow, SqlValue[]>(lists[range.along]).all(...valuesOf(range), statuses, statuses, count)
          },
        },
        query,
      ) as ListPage,
  }
}
