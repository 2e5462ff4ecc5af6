import type { CallRecord, HistoryResponse } from '@ringwire/protocol/rest'
import type { Postgres } from '../support/postgres.ts'
import type { CallRow, EventRow, History } from './recording.ts'

/** Calls that are not over yet. */
export async function liveCallCount(postgres: Postgres, url: string): Promise<number> {
  const rows = await postgres.query('SELECT count(*)::int AS count FROM calls WHERE ended_at IS NULL', url)
  return rows[0]?.count ?? 0
}

export async function readCalls(postgres: Postgres, url: string): Promise<CallRow[]> {
  return (await postgres.query(
    `SELECT call_uuid, caller_user_id AS caller, callee_user_id AS callee, version, status,
       started_at::float8, ring_expires_at::float8, accepted_at::float8, connected_at::float8, ended_at::float8, end_reason
     FROM calls ORDER BY id`,
    url,
  )) as CallRow[]
}

export async function readEvents(postgres: Postgres, url: string): Promise<EventRow[]> {
  return (await postgres.query(
    `SELECT call_uuid, e.version, e.type, e.at::float8, e.by_user_id AS by_user
     FROM call_events e JOIN calls ON id = call_id ORDER BY call_id, e.version`,
    url,
  )) as EventRow[]
}

/** Webhooks that are on their way. */
export async function pendingHookCount(postgres: Postgres, url: string): Promise<number> {
  const rows = await postgres.query(
    "SELECT count(*)::int AS count FROM webhook_deliveries WHERE status = 'pending'",
    url,
  )
  return rows[0]?.count ?? 0
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
