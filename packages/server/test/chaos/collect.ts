import type { CallRecord, HistoryResponse } from '@ringwire/protocol/rest'
import type { Call } from '../../src/call/call.ts'
import type { Notice } from '../../src/call/effects.ts'
import { effectsOf } from '../../src/stores/sql/rows.ts'
import type { CallRow, EventRow, History, StoreKind, Trace } from './recording.ts'

/** Asks the database of a run, past the service. The SQL must work in PostgreSQL and in SQLite alike. */
// biome-ignore lint/suspicious/noExplicitAny: rows of any statement.
export type Query = (statement: string) => Promise<any[]>

/** Calls that are not over yet. */
export async function liveCallCount(query: Query): Promise<number> {
  const rows = await query('SELECT CAST(count(*) AS integer) AS count FROM calls WHERE ended_at IS NULL')
  return rows[0]?.count ?? 0
}

const instants = (...columns: string[]) => columns.map((column) => `CAST(${column} AS double precision) AS ${column}`)

export async function readCalls(query: Query): Promise<CallRow[]> {
  const times = instants('started_at', 'ring_expires_at', 'accepted_at', 'connected_at', 'ended_at')
  const rows = await query(
    `SELECT call_uuid, caller_user_id AS caller, callee_user_id AS callee, version, status, ${times}, end_reason, extra
     FROM calls ORDER BY id`,
  )
  return rows.map(({ extra, ...row }) => ({
    ...row,
    ...linksOf(typeof extra === 'string' ? JSON.parse(extra) : extra),
  }))
}

/** What few calls have, as it is stored beside the columns. */
function linksOf(extra: Pick<Call, 'group' | 'transferred' | 'transferredTo'> | null): Partial<CallRow> {
  const { group, transferred, transferredTo } = extra ?? {}
  return {
    ...(group !== undefined && { members: group.members, group: group.name }),
    ...(transferred !== undefined && { transferred_from: transferred.from, transferred_by: transferred.by.userId }),
    ...(transferredTo !== undefined && { transferred_to: transferredTo }),
  }
}

/**
 * From the end on a call to a group that somebody answered does not name all at whom it rang: they are those who heard it, or who
 * had a turn [GROUP1]. A member whose session was lost while it rang may only hear, in its next session, that another one answered
 * [WS4]. `groups`: the members of each group.
 */
export function withMembers(
  calls: readonly CallRow[],
  events: readonly EventRow[],
  traces: readonly Trace[],
  groups: ReadonlyMap<string, readonly string[]>,
): CallRow[] {
  const turns = Map.groupBy(
    events.filter(({ type }) => type === 'turn'),
    ({ call_uuid }) => call_uuid,
  )
  const hears = ({ entries, user }: Trace, { call_uuid, group = '' }: CallRow) => {
    const isMember = groups.get(group)?.includes(user) === true
    return entries.some(({ kind, ...entry }) => {
      if (kind !== 'in' || !('frame' in entry) || entry.frame.data?.call_uuid !== call_uuid) return false
      return entry.frame.event === 'call.ringing' || (isMember && entry.frame.event === 'call.cancelled')
    })
  }
  return calls.map((row) => {
    const inTurn = turns.get(row.call_uuid)?.flatMap(({ member }) => member ?? [])
    if (inTurn !== undefined) return { ...row, members: [...new Set(inTurn)] }
    if (row.members === undefined || row.accepted_at === null || row.ended_at === null) return row
    // The caller may be a member, too, and hears of its own cancel.
    const rung = traces.filter((trace) => trace.user !== row.caller && hears(trace, row)).map(({ user }) => user)
    return { ...row, members: [...new Set(rung)] }
  })
}

export async function readEvents(query: Query): Promise<EventRow[]> {
  const rows = await query(
    `SELECT call_uuid, e.version, e.type, CAST(e.at AS double precision) AS at, e.by_user_id AS by_user,
       e.by_session_id AS by_session, CASE WHEN e.type IN ('turn', 'passed') THEN e.notices END AS notices
     FROM call_events e JOIN calls ON id = call_id ORDER BY call_id, e.version`,
  )
  return rows.map(({ notices, ...row }) => ({ ...row, ...memberOf(row.type, effectsOf(notices).notices) }))
}

/** The member whose turn begins, or is over. */
export function memberOf(type: string, notices: readonly Notice[]): Pick<EventRow, 'member'> {
  const to = notices[0]?.to
  const isOfTurn = type === 'turn' || type === 'passed'
  return isOfTurn && to !== undefined && 'member' in to && to.member !== undefined ? { member: to.member } : {}
}

/** Webhooks that are on their way; in SQLite also steps of which none are made yet. */
export async function pendingHookCount(query: Query, store: StoreKind): Promise<number> {
  const tables = ["webhook_deliveries WHERE status = 'pending'", ...(store === 'sqlite' ? ['webhook_steps'] : [])]
  let sum = 0
  for (const table of tables) {
    const [row] = await query(`SELECT CAST(count(*) AS integer) AS count FROM ${table}`)
    sum += row?.count ?? 0
  }
  return sum
}

const patienceMs = 30_000

/** All pages of what one person reads. */
export async function readHistory(nodeUrl: string, user: string, token: string): Promise<History> {
  const records: CallRecord[] = []
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const query = new URLSearchParams({ limit: '100', ...(cursor === undefined ? {} : { cursor }) })
    const response = await fetch(`${nodeUrl}/v1/calls/history?${query}`, {
      headers: { Authorization: `Bearer ${token}` },
      signal: AbortSignal.timeout(patienceMs),
    })
    if (response.status !== 200) throw new Error(`history of ${user}: ${response.status} ${await response.text()}`)
    const page = (await response.json()) as HistoryResponse
    records.push(...page.data)
    cursor = page.next_cursor ?? null
  }
  return { user, records }
}
