import type { CallRef } from '../../call/call.ts'
import type { ListPage, ListQuery, SeenCall } from '../../ports/call-store.ts'
import { eventOfStatus, listPage, type Range, type SeenRow, seenOf } from '../sql/call-lists.ts'
import { columns, missedSql, names } from './call-reads.ts'
import type { Connections, SqlParameter } from './connections.ts'

const withBy = (from: string) => `
  SELECT ${columns}, by_user_id, by_role FROM ${from}
  LEFT JOIN call_events ON call_events.call_id = calls.id AND call_events.type = ${eventOfStatus}`

export const seenSql = `${withBy('calls')} WHERE calls.call_uuid = $1 AND calls.product = $2`

/** `g` comes after every digit of a uuid. */
export const beginningSql = `
  SELECT call_uuid FROM calls WHERE call_uuid >= $1 AND call_uuid < $1 || 'g' AND product = $2
  ORDER BY call_uuid LIMIT $3::int`

const rangeOf = (table: string) => `
  (${table}started_at, ${table}call_uuid) < ($2::text::bigint, $3)
  AND (${table}started_at, ${table}call_uuid) >= ($4::text::bigint, $5)`
const range = rangeOf('')
const order = 'ORDER BY started_at DESC, call_uuid DESC'
const wanted = `($7::text = '' OR status = ANY (string_to_array($7::text, ' ')))`
const half = (side: 'caller' | 'callee', condition: string) => `
  (SELECT ${names} FROM calls
   WHERE ${side}_user_id = $8 AND ${side}_role = $9 AND product = $1 AND ${range} AND ${condition} ${order} LIMIT $6::int)`

const missed = (condition: string) => `
  (${missedSql} AND m.user_id = $8 AND m.role = $9 AND m.product = $1 AND ${rangeOf('m.')} AND ${condition}
   ORDER BY m.started_at DESC, m.call_uuid DESC LIMIT $6::int)`

/** Where each list finds its calls: `$6` of them, in order. */
const sources: Readonly<Record<Range['along'], (condition: string) => string>> = {
  product: (condition) => `SELECT * FROM calls WHERE product = $1 AND ${range} AND ${condition} ${order} LIMIT $6::int`,
  live: (condition) =>
    `SELECT * FROM calls WHERE product = $1 AND ended_at IS NULL AND ${range} AND ${condition} ${order} LIMIT $6::int`,
  participant: (condition) => `
    SELECT * FROM (
      ${half('caller', condition)} UNION ALL ${half('callee', condition)} UNION ALL ${missed(condition)}
    ) AS sides ${order} LIMIT $6::int`,
}

/** The last of this many calls, if there are as many. */
export const edgeSql = (along: Range['along']) => `
  SELECT started_at::float8 AS started_at, call_uuid FROM (${sources[along]("$7::text = ''")}) AS looked
  ${order} LIMIT 1 OFFSET $6::int - 1`
export const listSql = (along: Range['along']) => `
  ${withBy(`(${sources[along](wanted)}) AS calls`)} ORDER BY calls.started_at DESC, calls.call_uuid DESC`

const newest = '9223372036854775807'

export interface CallLists {
  seen(ref: CallRef): Promise<SeenCall | undefined>
  beginning(product: string, start: string, limit: number): Promise<readonly string[]>
  list(query: ListQuery): Promise<ListPage>
}

export function createCallLists(connections: Connections): CallLists {
  const read = (text: string, values: readonly SqlParameter[]) => connections.run(text, values, { repeatable: true })

  function valuesOf({ along, query, floor }: Range, count: number, statuses: string): SqlParameter[] {
    const { product, participant, after } = query
    const values = [
      product,
      String(after?.startedAt ?? newest),
      after?.callUuid ?? '',
      String(floor.startedAt),
      floor.callUuid,
      count,
      statuses,
    ]
    return along === 'participant' ? [...values, participant?.userId ?? '', participant?.role ?? ''] : values
  }

  return {
    async seen(ref) {
      const [row] = await read(seenSql, [ref.callUuid, ref.product])
      return row === undefined ? undefined : seenOf(row as SeenRow)
    },
    async beginning(product, start, limit) {
      return (await read(beginningSql, [start, product, limit])).map(({ call_uuid }) => call_uuid as string)
    },
    async list(query) {
      return listPage(
        {
          async edge(range, count) {
            const [row] = await read(edgeSql(range.along), valuesOf(range, count, ''))
            return row === undefined ? undefined : { startedAt: row.started_at, callUuid: row.call_uuid }
          },
          async rows(range, count) {
            const statuses = range.query.statuses?.join(' ') ?? ''
            return (await read(listSql(range.along), valuesOf(range, count, statuses))) as SeenRow[]
          },
        },
        query,
      )
    },
  }
}
