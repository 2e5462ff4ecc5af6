import type { Call, CallRef, LiveCall, Participant } from '../../call/call.ts'
import { isLive, ringsAt, sideOf } from '../../call/call.ts'
import type { Step } from '../../call/effects.ts'
import {
  type Ended,
  type HistoryPage,
  type HistoryQuery,
  type InviteSituation,
  mostLastCalls,
  pageSize,
} from '../../ports/call-store.ts'
import { type CallRow, callColumns, callOf, type EventRow, eventOf } from '../sql/rows.ts'
import type { Connections, Row, SqlParameter } from './connections.ts'
import type { Look } from './glances.ts'

/** Every read of calls: each one finds its rows through an index, and sees what was committed before it began. */
export interface CallReads {
  load(ref: CallRef, deadline?: number): Promise<Call | undefined>
  situation(caller: Participant, callee: Participant, callUuid: string, deadline: number): Promise<InviteSituation>
  foresee(caller: Participant, callee: Participant, callUuid: string): Promise<InviteSituation>
  liveOf(participant: Participant): Promise<LiveCall[]>
  inCall(participants: readonly Participant[]): Promise<boolean[]>
  lastAnswered(participants: readonly Participant[]): Promise<(number | null)[]>
  livePages(): AsyncIterableIterator<readonly LiveCall[]>
  dueRings(from: number, to: number, limit: number): Promise<LiveCall[]>
  overPages(since: number): AsyncIterableIterator<readonly Ended[]>
  stepsAfter(ref: CallRef, version: number): Promise<Step[]>
  history(query: HistoryQuery): Promise<HistoryPage>
}

/** bigint comes as text; every instant fits a double. */
const bigints = ['started_at', 'ring_expires_at', 'accepted_at', 'connected_at', 'ended_at']
export const columns = callColumns
  .map((column) => (bigints.includes(column) ? `calls.${column}::float8 AS ${column}` : `calls.${column}`))
  .join(', ')
/** The same as they are stored, with the key. */
export const names = ['id', ...callColumns].join(', ')
const eventColumns = 'type, at::float8 AS at, by_user_id, by_role, by_session_id, notices'

export const loadSql = `SELECT ${columns} FROM calls WHERE call_uuid = $1 AND product = $2`

const liveHalf = (side: 'caller' | 'callee', first: number) => `
  SELECT ${columns} FROM calls
  WHERE ended_at IS NULL AND product = $1 AND ${side}_user_id = $${first} AND ${side}_role = $${first + 1}`
const liveHalves = (first: number) => `${liveHalf('caller', first)} UNION ALL ${liveHalf('callee', first)}`
/** Calls that ring at a member of the group that is called [GROUP1]. */
const liveRings = `
  SELECT ${columns} FROM calls
  WHERE ended_at IS NULL AND product = $1 AND callee_user_id = '' AND callee_role = $3 AND status = 'ringing' AND EXISTS (
    SELECT FROM call_members AS m
    WHERE m.product = $1 AND m.role = $3 AND m.user_id = $2
      AND m.started_at = calls.started_at AND m.call_uuid = calls.call_uuid)`
export const liveOfSql = `${liveHalves(2)} UNION ALL ${liveRings}`
export const situationSql = `
  SELECT ${columns} FROM calls WHERE product = $1 AND call_uuid = $2
  UNION ALL ${liveHalves(3)} UNION ALL ${liveHalves(5)}`

/**
 * The participants of a list who take part in a live call: at most two looks at an index for each. While a call rings its
 * callee does not.
 */
export const inCallSql = `
  SELECT wanted.n FROM json_to_recordset($1::text::json) AS wanted (n integer, product text, role text, user_id text),
  LATERAL (
    SELECT FROM calls
    WHERE ended_at IS NULL AND caller_user_id = wanted.user_id AND caller_role = wanted.role AND product = wanted.product
    UNION ALL
    SELECT FROM calls
    WHERE ended_at IS NULL AND callee_user_id = wanted.user_id AND callee_role = wanted.role AND product = wanted.product
      AND status <> 'ringing'
    LIMIT 1
  ) AS call`

/** When the last call ended that each of many answered. */
export const lastAnsweredSql = `
  SELECT wanted.n, answered.ended_at::float8 AS ended_at
  FROM json_to_recordset($1::text::json) AS wanted (n integer, product text, role text, user_id text),
  LATERAL (
    SELECT max(last.ended_at) AS ended_at FROM (
      SELECT accepted_at, ended_at FROM calls
      WHERE callee_user_id = wanted.user_id AND callee_role = wanted.role AND product = wanted.product
      ORDER BY started_at DESC, call_uuid DESC LIMIT ${mostLastCalls}
    ) AS last
    WHERE last.accepted_at IS NOT NULL
  ) AS answered
  WHERE answered.ended_at IS NOT NULL`

/** A page of what is live, in few bytes; then the rows that are not known yet. */
export const liveVersionsSql = `
  SELECT json_agg(json_build_array(id, version) ORDER BY id)::text AS live
  FROM (SELECT id, version FROM calls WHERE ended_at IS NULL AND id > $1::text::bigint ORDER BY id LIMIT $2::int) AS page`
export const liveByIdSql = `SELECT calls.id::float8 AS id, ${columns} FROM calls WHERE id = ANY ($1::text::bigint[])`

export const dueRingsSql = `
  SELECT ${columns} FROM calls
  WHERE ended_at IS NULL AND status = 'ringing'
    AND ring_expires_at > $1::float8::bigint AND ring_expires_at <= $2::float8::bigint
  ORDER BY calls.ring_expires_at LIMIT $3::int`

/** In the order of their ends, and of their keys where several ended in the same millisecond. */
export const overPageSql = `
  SELECT calls.id::float8 AS id, ${columns}, ${eventColumns}
  FROM calls JOIN call_events ON call_events.call_id = calls.id AND call_events.version = calls.version
  WHERE calls.ended_at >= $1::float8::bigint AND (calls.ended_at, calls.id) > ($1::float8::bigint, $2::float8::bigint)
  ORDER BY calls.ended_at, calls.id LIMIT $3::int`

export const stepsAfterSql = `
  SELECT ${columns}, call_events.version AS event_version, ${eventColumns}
  FROM calls JOIN call_events ON call_events.call_id = calls.id
  WHERE call_uuid = $1 AND product = $2 AND call_events.version > $3::int ORDER BY call_events.version`

const historyHalf = (side: 'caller' | 'callee') => `
  (SELECT ${names} FROM calls
   WHERE ${side}_user_id = $1 AND ${side}_role = $2 AND product = $3 AND (started_at, call_uuid) < ($4::text::bigint, $5)
   ORDER BY started_at DESC, call_uuid DESC LIMIT $6::int)`

const inOrder = ['started_at', 'call_uuid']
const missedNames = ['id', ...callColumns].map((name) => `${inOrder.includes(name) ? 'm' : 'calls'}.${name}`).join(', ')
/**
 * Calls that rang at a member of a group and were not answered, along `call_members`, whose index has them in their order. Those that
 * ring in turn come when they are over: then it is known at whom they rang [GROUP1].
 */
export const missedSql = `
  SELECT ${missedNames} FROM call_members AS m JOIN calls ON calls.call_uuid = m.call_uuid AND calls.product = m.product
  WHERE m.rang AND calls.accepted_at IS NULL
    AND (calls.ended_at IS NOT NULL OR calls.extra NOT LIKE '%"turns":%')`
const missed = `
  (${missedSql} AND m.user_id = $1 AND m.role = $2 AND m.product = $3
     AND (m.started_at, m.call_uuid) < ($4::text::bigint, $5)
   ORDER BY m.started_at DESC, m.call_uuid DESC LIMIT $6::int)`

/** Both directions and missed calls to groups, each in the order of its index, merged [HIST1]. */
export const historySql = `
  SELECT ${columns} FROM (${historyHalf('caller')} UNION ALL ${historyHalf('callee')} UNION ALL ${missed}) AS calls
  ORDER BY calls.started_at DESC, calls.call_uuid DESC LIMIT $6::int`

/** Before the first page: later than every call. */
const start = { startedAt: '9223372036854775807', callUuid: '' }

type Read = (text: string, values: readonly SqlParameter[], deadline?: number) => Promise<Row[]>

export function createCallReads(connections: Connections, look: Look): CallReads {
  const read: Read = (text, values, deadline) =>
    connections.run(text, values, { repeatable: true, ...(deadline !== undefined && { deadline }) })

  return {
    async load(ref, deadline) {
      const [row] = await read(loadSql, [ref.callUuid, ref.product], deadline)
      return row === undefined ? undefined : callOf(row)
    },
    situation: (caller, callee, callUuid, deadline) =>
      situationOf(caller, callee, callUuid, (values) => read(situationSql, values, deadline)),
    foresee: (caller, callee, callUuid) =>
      situationOf(caller, callee, callUuid, (values) => look(situationSql, values)),
    async liveOf(participant) {
      const { product, userId, role } = participant
      const live = distinct(await read(liveOfSql, [product, userId, role])).filter(isLive)
      return live.filter((call) => sideOf(call, participant) !== undefined || ringsAt(call, participant))
    },
    async inCall(participants) {
      const rows: { n: number }[] = await read(inCallSql, [wanted(participants)])
      const found = new Set(rows.map(({ n }) => n))
      return participants.map((_, n) => found.has(n))
    },
    async lastAnswered(participants) {
      const rows: { n: number; ended_at: number }[] = await read(lastAnsweredSql, [wanted(participants)])
      const found = new Map(rows.map(({ n, ended_at }) => [n, ended_at]))
      return participants.map((_, n) => found.get(n) ?? null)
    },
    livePages: createLivePages(read, look),
    async dueRings(from, to, limit) {
      return (await look(dueRingsSql, [from, to, limit])).map(callOf).filter(isLive)
    },
    overPages: (since) => overPages(read, since),
    async stepsAfter(ref, version) {
      const rows = await read(stepsAfterSql, [ref.callUuid, ref.product, version])
      return rows.map((row) => ({ call: { ...callOf(row), version: row.event_version }, event: eventOf(row) }))
    },
    async history({ participant, limit, after }) {
      const { product, role, userId } = participant
      const { startedAt, callUuid } = after ?? start
      const rows = await read(historySql, [userId, role, product, String(startedAt), callUuid, limit + 1])
      return { calls: rows.slice(0, limit).map(callOf), more: rows.length > limit }
    },
  }
}

async function situationOf(
  caller: Participant,
  callee: Participant,
  callUuid: string,
  ask: (values: readonly SqlParameter[]) => Promise<Row[]>,
): Promise<InviteSituation> {
  const calls = distinct(await ask([caller.product, callUuid, caller.userId, caller.role, callee.userId, callee.role]))
  const isOfThem = (call: Call) => sideOf(call, caller) !== undefined || sideOf(call, callee) !== undefined
  return {
    sameUuid: calls.find((call) => call.callUuid === callUuid),
    live: calls.filter(isLive).filter(isOfThem),
  }
}

/** Many participants, numbered, as one parameter. */
export function wanted(participants: readonly Participant[]): string {
  return JSON.stringify(participants.map(({ product, role, userId }, n) => ({ n, product, role, user_id: userId })))
}

/** Of ten thousand live calls few have changed since they were read last: only those are read whole. */
function createLivePages(read: Read, look: Look): CallReads['livePages'] {
  /** Live calls as they were read last, by the key of their row. */
  let lastLive = new Map<number, LiveCall>()

  return async function* livePages(): AsyncGenerator<readonly LiveCall[]> {
    const now = new Map<number, LiveCall>()
    for (let after = 0, isLast = false; !isLast; ) {
      const [row] = await look(liveVersionsSql, [String(after), pageSize])
      const versions = JSON.parse(row.live ?? '[]') as [number, number][]
      isLast = versions.length < pageSize
      after = versions.at(-1)?.[0] ?? after
      const page: LiveCall[] = []
      const changed: number[] = []
      const note = (id: number, call: LiveCall) => {
        now.set(id, call)
        page.push(call)
      }
      for (const [id, version] of versions) {
        const call = lastLive.get(id)
        if (call?.version === version) note(id, call)
        else changed.push(id)
      }
      const rows = changed.length === 0 ? [] : await read(liveByIdSql, [`{${changed}}`])
      for (const row of rows) {
        const call = callOf(row)
        if (isLive(call)) note(row.id, call)
      }
      yield page
    }
    lastLive = now
  }
}

async function* overPages(read: Read, since: number): AsyncGenerator<readonly Ended[]> {
  let after = { endedAt: since, id: 0 }
  for (let isLast = false; !isLast; ) {
    const rows: (CallRow & EventRow & { id: number })[] = await read(overPageSql, [after.endedAt, after.id, pageSize])
    const page = rows.flatMap((row) => {
      const call = callOf(row)
      after = { endedAt: row.ended_at ?? after.endedAt, id: row.id }
      return isLive(call) ? [] : [{ call, step: { call, event: eventOf(row) } }]
    })
    isLast = rows.length < pageSize
    yield page
  }
}

/** A call between two participants is a row of both; a self-call would be one of either side. */
function distinct(rows: readonly CallRow[]): Call[] {
  const calls = new Map<string, Call>()
  for (const row of rows) if (!calls.has(row.call_uuid)) calls.set(row.call_uuid, callOf(row))
  return [...calls.values()]
}
