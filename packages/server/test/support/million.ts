import { Database } from 'bun:sqlite'
import { SQL } from 'bun'
import type { Participant } from '../../src/call/call.ts'

/*
 * A store as a service has it after a year: calls with their events and timelines, and what else grows. SQL makes the rows,
 * in the schema of the store, so that a million calls take seconds.
 */

export interface Size {
  readonly calls: number
  /** Of `busy` on one side or the other; its neighbours in the store are of other people. */
  readonly ofBusy: number
  /** Of the endpoint `hooked`. */
  readonly deliveries: number
  /** Only the calls themselves: what a page of the history reads. */
  readonly isOnlyCalls?: boolean
}

export const million: Size = { calls: 1_000_000, ofBusy: 100_000, deliveries: 300_000 }

export const product = 'shop'
const person = (userId: string): Participant => ({ product, role: 'customer', userId })
/** Has a tenth of the calls. */
export const busy = person('busy')
/** Have ten calls each. */
export const few = person('few')
export const endpointId = 'we_hooked'
const dayMs = 86_400_000
/** The number of days within which the calls ended. */
export const days = 90
/** The number of live calls. */
export const liveCount = 200

/** Names a call by its number, from 1. */
export const uuidOf = (n: number) => {
  const hex = n.toString(16)
  return `${hex.padStart(8, '0')}-0000-4000-8000-${hex.padStart(12, '0')}`
}

/** The number of groups, and of the members of each. */
const groups = 300
const membersOfGroup = 500

/** What `fillSqlite` is given for a crowded store. It takes some seconds. */
export const crowd: Size = { calls: 200_000, ofBusy: 100_000, deliveries: 50_000 }
/** One of the live calls of a crowded store. */
export const liveUuid = uuidOf(crowd.calls - 1_000)

/** What both stores say differently. */
interface Dialect {
  readonly uuid: string
  readonly numbers: (count: number) => string
  readonly boolean: (isTrue: boolean) => string
  /** A delivery is due at an instant. */
  readonly instant: (ms: string) => string
}

const postgres: Dialect = {
  uuid: "lpad(to_hex(n), 8, '0') || '-0000-4000-8000-' || lpad(to_hex(n), 12, '0')",
  numbers: (count) => `generate_series(1::bigint, ${count}) AS numbers (n)`,
  boolean: String,
  instant: (ms) => `to_timestamp((${ms})::float8 / 1000)`,
}
const sqlite: Dialect = {
  uuid: "printf('%08x-0000-4000-8000-%012x', n, n)",
  numbers: (count) =>
    `(WITH RECURSIVE up (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM up WHERE n < ${count}) SELECT n FROM up)`,
  boolean: (isTrue) => (isTrue ? '1' : '0'),
  instant: (ms) => ms,
}

/** Statements that fill an empty store; `now` is in ms since the epoch. */
function statements(dialect: Dialect, { calls, ofBusy, deliveries, isOnlyCalls }: Size, now: number): string[] {
  const { uuid, numbers, boolean, instant } = dialect
  const every = Math.round(calls / ofBusy)
  const firstLive = calls - liveCount
  const endedAt = `${now} - ${days * dayMs} + n * ${Math.floor((days * dayMs) / calls)}`
  const callee = `CASE WHEN n % ${2 * every} = 0 THEN 'busy' ELSE 'callee-' || (n % 5000) END`
  const caller = `CASE WHEN n % ${2 * every} = ${every} THEN 'busy' WHEN n % ${calls / 10} = 1 THEN 'few'
    ELSE 'caller-' || (n % 50000) END`
  const isLive = `n > ${firstLive}`
  const left = { state: 'vacant', sessionId: 's', deviceId: null, node: '', settled: true, since: 0 }
  const place = JSON.stringify({ ...left, can: ['transfer'] })
  const notices = JSON.stringify([{ to: 'peer', event: 'call.ended', data: { reason: 'hangup' } }])
  const entry = JSON.stringify({ what: 'rung', session: 's', detail: {} })
  const body = JSON.stringify({ type: 'call.ended', data: { caller: { user_id: 'someone' }, filler: 'x'.repeat(600) } })
  const isSqlite = dialect === sqlite
  const timelineOf = (id: string, side: string) =>
    isSqlite
      ? `INSERT INTO call_timeline (call_id, product, call_uuid, id, at, side, role, user_id, entry)
         SELECT n, '', '', '${id}', ${endedAt}, '${side}', '', '', '${entry}' FROM ${numbers(calls)}`
      : `INSERT INTO call_timeline (product, call_uuid, id, at, side, role, user_id, entry)
         SELECT '${product}', ${uuid}, '${id}', ${endedAt}, '${side}', '', '', '${entry}' FROM ${numbers(calls)}`
  const callRows = `INSERT INTO calls (
       product, call_uuid, caller_role, caller_user_id, caller_name, callee_role, callee_user_id, context_type,
       context_id, call_type, started_at, ring_timeout_ms, version, status, ring_expires_at, caller_place, callee_place,
       accepted_at, ended_at, end_reason
     )
     SELECT '${product}', ${uuid}, 'customer', ${caller}, 'Somebody', 'customer', ${callee}, 'order', 'o-' || n, 'audio',
       ${endedAt} - 60000, 45000, 2, CASE WHEN ${isLive} THEN 'accepted' ELSE 'ended' END, ${endedAt} - 15000,
       '${place}', '${place}', ${endedAt} - 50000, CASE WHEN ${isLive} THEN NULL ELSE ${endedAt} END,
       CASE WHEN ${isLive} THEN NULL ELSE 'hangup' END
     FROM ${numbers(calls)} ORDER BY n`
  if (isOnlyCalls === true) return [callRows]
  return [
    callRows,
    ...[1, 2].map(
      (version) => `INSERT INTO call_events (call_id, version, type, at, by_user_id, by_role, by_session_id, notices)
       SELECT n, ${version}, '${version === 1 ? 'invited' : 'ended'}', ${endedAt}, 'someone', 'customer', 's', '${notices}'
       FROM ${numbers(calls)}`,
    ),
    ...['caller', 'callee', ''].map((side, n) => timelineOf(`a-${n}`, side)),
    `INSERT INTO call_timeline (${isSqlite ? 'call_id, ' : ''}product, call_uuid, id, at, side, role, user_id, entry)
     SELECT ${isSqlite ? '0, ' : ''}'${product}', 'f' || substr(${uuid}, 2), 'r', ${endedAt}, 'caller', 'customer',
       CASE WHEN n % 2 = 0 THEN 'busy' ELSE 'asker-' || n END, '${entry}' FROM ${numbers(calls / 50)}`,
    `INSERT INTO webhook_endpoints (id, product, url, enabled, secret, created_at)
     SELECT CASE n WHEN 1 THEN '${endpointId}' ELSE 'we_' || n END, CASE n WHEN 1 THEN '${product}' ELSE 'p-' || n END,
       'https://hooks.example/', ${boolean(false)}, 'whsec_', 0 FROM ${numbers(1_000)}`,
    // A hundredth failed, and as many wait.
    `INSERT INTO webhook_deliveries (
       id, endpoint_id, subject, version, type, body, created_at, status, attempts, due_at, ended_at
     )
     SELECT 'msg_' || ${uuid}, CASE WHEN n <= ${deliveries} THEN '${endpointId}' ELSE 'we_2' END, ${uuid}, 2, 'call.ended', '${body}', ${now} - n,
       CASE n % 100 WHEN 1 THEN 'failed' WHEN 2 THEN 'pending' ELSE 'delivered' END, 1,
       CASE n % 100 WHEN 2 THEN ${instant(`${now} + ${dayMs}`)} END, CASE n % 100 WHEN 2 THEN NULL ELSE ${now} - n END
     FROM ${numbers(2 * deliveries)}`,
    `INSERT INTO devices (product, role, user_id, device_id, address, address_hash, registered_at)
     SELECT '${product}', 'customer', 'caller-' || n, 'phone', '{"platform":"fcm","token":"' || n || '"}', 'h' || n, ${now} - n
     FROM ${numbers(calls / 20)}`,
    `INSERT INTO revocations (participant, not_before, changed_at) SELECT 'p' || n, ${now} - n, ${now} - n
     FROM ${numbers(calls / 20)}`,
    `INSERT INTO online (product, role, user_id, node) SELECT '${product}', 'customer', 'caller-' || n, 'node-' || n % 3
     FROM ${numbers(calls / 50)}`,
    `INSERT INTO call_groups (product, role, name, strategy, member_ring_ms, ring_ms)
     SELECT '${product}', 'customer', 'group-' || (n % ${groups}), 'all', 15000, 45000 FROM ${numbers(groups)}`,
    // \`busy\` is a member of every group.
    `INSERT INTO call_group_members (product, role, group_name, turn, user_id)
     SELECT '${product}', 'customer', 'group-' || (n % ${groups}), n,
       CASE WHEN n <= ${groups} THEN 'busy' ELSE 'member-' || (n % 5000) END
     FROM ${numbers(groups * membersOfGroup)}`,
    ...missedCalls(dialect, { calls, ofBusy, deliveries }, now),
  ]
}

/** Calls to a group of 500 that nobody answered; `busy` is one of its members. */
function missedCalls({ uuid, numbers }: Dialect, { calls }: Size, now: number): string[] {
  const count = Math.round(calls / membersOfGroup)
  const startedAt = `${now} - ${days * dayMs} + n * ${Math.floor((days * dayMs) / count)}`
  const members = Array.from({ length: membersOfGroup }, (_, n) => (n === 0 ? 'busy' : `member-${n}`))
  const extra = JSON.stringify({ group: { name: 'group-0', members, declined: [] } })
  const place = JSON.stringify({ state: 'vacant', sessionId: 's', deviceId: null, node: '', settled: true, since: 0 })
  const callUuid = `'d' || substr(${uuid}, 2)`
  return [
    `INSERT INTO calls (
       product, call_uuid, caller_role, caller_user_id, caller_name, callee_role, callee_user_id, context_type,
       context_id, call_type, started_at, ring_timeout_ms, version, status, ring_expires_at, caller_place, ended_at,
       end_reason, extra
     )
     SELECT '${product}', ${callUuid}, 'customer', 'caller-' || n % 50000, 'Somebody', 'customer', '', 'order', 'o-' || n,
       'audio', ${startedAt}, 45000, 2, 'missed', ${startedAt} + 45000, '${place}', ${startedAt} + 45000, 'no_answer', '${extra}'
     FROM ${numbers(count)}`,
    // Triggers do the same where they are.
    `INSERT INTO call_members (product, role, user_id, started_at, call_uuid)
     SELECT '${product}', 'customer', CASE m WHEN 1 THEN 'busy' ELSE 'member-' || (m - 1) END, ${startedAt}, ${callUuid}
     FROM (SELECT n AS m FROM ${numbers(membersOfGroup)}) AS members, ${numbers(count)} WHERE true ON CONFLICT DO NOTHING`,
  ]
}

/** Fills the database of a PostgreSQL store that is up to date. */
export async function fillPostgres(url: string, size: Size = million, now = Date.now()): Promise<void> {
  const sql = new SQL({ url, max: 1 })
  try {
    // The keys that rows refer to are there: nobody needs to look for each.
    await sql.unsafe('SET session_replication_role = replica')
    await sql.unsafe('SET synchronous_commit = off')
    for (const statement of statements(postgres, size, now)) await sql.unsafe(statement)
    await sql.unsafe('VACUUM ANALYZE')
  } finally {
    await sql.close()
  }
}

/** More of what one process reads as a whole: at a start, in a look at what has changed, or for one participant. */
function crowded(now: number): string[] {
  const { numbers } = sqlite
  return [
    `UPDATE calls SET status = 'accepted', ended_at = NULL, end_reason = NULL
     WHERE id IN (SELECT id FROM calls WHERE ended_at IS NOT NULL AND accepted_at IS NOT NULL ORDER BY id DESC LIMIT 3000)`,
    'INSERT OR IGNORE INTO outbox (seq) SELECT seq FROM call_events ORDER BY seq DESC LIMIT 3000',
    `INSERT INTO webhook_steps (deliveries) SELECT '[]' FROM ${numbers(3000)}`,
    `INSERT INTO call_timeline (call_id, product, call_uuid, id, at, side, role, user_id, entry)
     SELECT 0, '${product}', 'e' || substr(${sqlite.uuid}, 2), 'r', ${now} - n, 'caller', 'customer', 'busy', '{"what":"refused"}'
     FROM ${numbers(20_000)}`,
    `INSERT INTO webhook_endpoints (id, product, url, enabled, secret, created_at)
     SELECT 'we_more_' || n, 'p-' || n % 500, 'https://hooks.example/', 0, 'whsec_', n FROM ${numbers(10_000)}`,
    // One delivery waits at each of them, and thousands of one person at `hooked`.
    `INSERT INTO webhook_deliveries (id, endpoint_id, subject, version, type, body, created_at, due_at)
     SELECT 'msg_more_' || n, 'we_more_' || n, 'one', 1, 'call.ended', '{}', ${now}, 0 FROM ${numbers(10_000)}`,
    `INSERT INTO webhook_deliveries (id, endpoint_id, subject, version, type, body, created_at, due_at)
     SELECT 'msg_one_' || n, '${endpointId}', 'one', n, 'participant.online', '{}', ${now}, 0 FROM ${numbers(20_000)}`,
    `INSERT INTO product_settings (product, busy, reveal_busy, media, presence)
     SELECT CASE n WHEN 1 THEN '${product}' ELSE 'p-' || n END, 'allow', 0, 'relay', 'peers' FROM ${numbers(3_000)}`,
    `INSERT INTO product_keys (key_id, products, disabled, origin, created_at) SELECT 'k-' || n, '["p"]', 1, 'cli', 0
     FROM ${numbers(3_000)}`,
    `INSERT INTO revocations (participant, not_before, changed_at) SELECT 'q' || n, ${now}, ${now} - n FROM ${numbers(30_000)}`,
    `INSERT INTO online (product, role, user_id, node) SELECT '${product}', 'customer', 'guest-' || n, 'node-' || n % 3
     FROM ${numbers(60_000)}`,
  ]
}

/** Fills the file of a SQLite store that is up to date, and that nobody else has open. */
export function fillSqlite(path: string, size: Size = million, now = Date.now(), { isCrowded = false } = {}): void {
  const db = new Database(path, { readwrite: true })
  try {
    db.run('PRAGMA synchronous = OFF')
    db.run('PRAGMA cache_size = -262144')
    db.transaction(() => {
      for (const statement of statements(sqlite, size, now)) db.run(statement)
      if (isCrowded) for (const statement of crowded(now)) db.run(statement)
    })()
    db.run('PRAGMA wal_checkpoint(TRUNCATE)')
  } finally {
    db.close()
  }
}
