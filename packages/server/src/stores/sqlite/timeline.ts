import type { Database } from 'bun:sqlite'
import { callKey, type Participant, type Side } from '../../call/call.ts'
import { mostEntries } from '../../call/observed.ts'
import type { OnForgotten, TimelineStore } from '../../ports/timeline.ts'
import { type ErasableCall, firstPosition, sidesOfCall } from '../sql/erasure.ts'
import {
  latest,
  type StoredEntry,
  type StoredRefusal,
  timelineColumns,
  timelineRowOf,
  timelineValues,
} from '../sql/timeline-rows.ts'
import { attempt } from './connection.ts'

/** The values of entries, one after another. */
interface AddErrand {
  readonly type: 'timeline'
  readonly values: readonly (string | number)[]
}

/**
 * The work of the writer thread for timelines. Of what is to be forgotten it removes some at a time, `pruneSize` at the
 * most.
 */
export type TimelineErrand =
  | AddErrand
  /** Entries of a side of calls. */
  | { readonly type: 'forgetSide'; readonly side: Side; readonly ids: readonly number[] }
  /** Invites of a participant that were refused. */
  | ({ readonly type: 'forgetRefused' } & Participant)
  /** Invites that were refused before an instant. */
  | { readonly type: 'pruneRefused'; readonly before: number }

type ForgetErrand = Exclude<TimelineErrand, AddErrand>

export interface TimelineWrites {
  timeline(errand: TimelineErrand): Promise<number>
}

/** So few that no commit waits for them for more than some milliseconds. */
const pruneSize = 500
/** Of calls whose entries are looked for. */
const callsAtOnce = 100

/** The columns of an entry where it is stored; `call_id`, product and call are those of its call, or of an invite. */
const storedColumns = ['call_id', ...timelineColumns] as const
const key = ['call_id', 'product', 'call_uuid', 'id'] as const

export const entriesSql = `
  SELECT id, at, side, role, user_id, entry FROM call_timeline
  WHERE call_id = (SELECT id FROM calls WHERE call_uuid = ?2 AND product = ?1)
  UNION ALL
  SELECT id, at, side, role, user_id, entry FROM call_timeline WHERE call_id = 0 AND product = ?1 AND call_uuid = ?2
  ORDER BY at, id LIMIT ?3`
export const refusalsSql =
  'SELECT count(*) AS count FROM call_timeline WHERE call_id = 0 AND product = ?1 AND call_uuid = ?2'
/** The facts that decide on the entries of a kept call: its participants, and how many entries there are. */
export const askedSql = `
  SELECT id, caller_role, caller_user_id, callee_role, callee_user_id,
    (SELECT count(*) FROM call_timeline WHERE call_id = calls.id) + (${refusalsSql}) AS count
  FROM calls WHERE call_uuid = ?2 AND product = ?1`
const insertSql = `
  INSERT INTO call_timeline (${storedColumns}) VALUES (${storedColumns.map(() => '?')}) ON CONFLICT (${key}) DO NOTHING`
export const replaceSql = `UPDATE call_timeline SET entry = ? WHERE ${key.map((column) => `${column} = ?`).join(' AND ')}`
export const callsOfSql = (side: Side) => `
  SELECT id, started_at, call_uuid FROM calls
  WHERE ${side}_user_id = ? AND ${side}_role = ? AND product = ? AND (started_at, call_uuid) > (?, ?)
  ORDER BY started_at, call_uuid LIMIT ${callsAtOnce}`
export const forgetSideSql = `
  DELETE FROM call_timeline WHERE (${key}) IN (
    SELECT ${key} FROM call_timeline
    WHERE call_id IN (SELECT value FROM json_each(?)) AND side = ? LIMIT ${pruneSize})`
export const forgetRefusedSql = `
  DELETE FROM call_timeline WHERE (${key}) IN (
    SELECT ${key} FROM call_timeline WHERE role <> '' AND user_id = ? AND role = ? AND product = ? LIMIT ${pruneSize})`
export const refusedSql = `
  SELECT call_uuid, id, at, side, role, user_id, entry FROM call_timeline
  WHERE role <> '' AND user_id = ? AND role = ? AND product = ? AND (at, id) < (?, ?) ORDER BY at DESC, id DESC LIMIT ?`
export const pruneRefusedSql = `
  DELETE FROM call_timeline WHERE (${key}) IN (
    SELECT ${key} FROM call_timeline WHERE role <> '' AND at < ? ORDER BY at LIMIT ?)`
/** With its call: what was seen of it, and invites that named it. */
export const dropSql = `
  DELETE FROM call_timeline WHERE call_id = ?1
    OR call_id = 0 AND (product, call_uuid) = (SELECT product, call_uuid FROM calls WHERE id = ?1)`

/** The writer thread adds and removes entries. */
export function createTimelineStore(reader: Database, writes: TimelineWrites): TimelineStore {
  const entries = reader.query<StoredEntry, [string, string, number]>(entriesSql)
  const refused = reader.query<StoredRefusal, (string | number)[]>(refusedSql)
  const callsOf = (side: Side) => reader.query<ErasableCall, (string | number)[]>(callsOfSql(side))
  const pages = { caller: callsOf('caller'), callee: callsOf('callee') }

  /** Asks again as long as there may be more; answers how many in all. */
  async function forget(errand: ForgetErrand, onForgotten: OnForgotten): Promise<number> {
    let count = 0
    for (let last = pruneSize; last === pruneSize; count += last) {
      last = await writes.timeline(errand)
      if (last > 0) await onForgotten(last)
    }
    return count
  }

  async function forgetSide(side: Side, { product, role, userId }: Participant, onForgotten: OnForgotten) {
    let count = 0
    let from = firstPosition
    for (;;) {
      const page = await attempt(() => pages[side].all(userId, role, product, from.started_at, from.call_uuid))
      const last = page.at(-1)
      if (last === undefined) return count
      count += await forget({ type: 'forgetSide', side, ids: page.map(({ id }) => id) }, onForgotten)
      from = last
    }
  }

  return {
    async add(rows) {
      if (rows.length > 0) await writes.timeline({ type: 'timeline', values: rows.flatMap(timelineValues) })
    },
    of: (ref) =>
      attempt(() => entries.all(ref.product, ref.callUuid, mostEntries).map((row) => timelineRowOf(ref, row))),
    refusedOf: ({ product, role, userId }, limit, before = latest) =>
      attempt(() =>
        refused
          .all(userId, role, product, before.at, before.id, limit)
          .map((row) => timelineRowOf({ product, callUuid: row.call_uuid }, row)),
      ),
    async forgetParticipant(participant, onForgotten = () => {}) {
      let count = await forget({ type: 'forgetRefused', ...participant }, onForgotten)
      for (const side of sidesOfCall) count += await forgetSide(side, participant, onForgotten)
      return count
    },
    pruneRefused: (before) => writes.timeline({ type: 'pruneRefused', before }),
  }
}

/** In the order of `timelineColumns`. */
type EntryValues = [string, string, string, number, string, string, string, string]

/** The facts that the writer needs about a call before it writes entries of it. */
interface Asked {
  /** 0: it is not kept. */
  readonly id: number
  readonly caller_role: string
  readonly caller_user_id: string
  readonly callee_role: string
  readonly callee_user_id: string
  count: number
}

const notKept = { id: 0, caller_role: '', caller_user_id: '', callee_role: '', callee_user_id: '' }

/** Of the writer thread: each errand is one transaction; answers how many entries it was given, or has removed. */
export function createTimelineWriter(db: Database): (errand: TimelineErrand) => number {
  const asked = db.query<Asked, [string, string]>(askedSql)
  const refusals = db.query<{ count: number }, [string, string]>(refusalsSql)
  const insert = db.query<unknown, (string | number)[]>(insertSql)
  const replace = db.query<unknown, (string | number)[]>(replaceSql)

  function ask(product: string, callUuid: string): Asked {
    const kept = asked.get(product, callUuid)
    return kept ?? { ...notKept, count: refusals.get(product, callUuid)?.count ?? 0 }
  }

  function write(call: Asked, [product, callUuid, id, at, side, role, userId, entry]: EntryValues): void {
    if (!isWritten(call, side, role, userId)) return
    const of = role === '' ? ([call.id, '', ''] as const) : ([0, product, callUuid] as const)
    const asker = role === '' ? '' : userId
    const isNew = call.count < mostEntries && insert.run(...of, id, at, side, role, asker, entry).changes > 0
    if (isNew) call.count++
    else replace.run(entry, ...of, id)
  }

  const forgetSide = db.query<unknown, [string, Side]>(forgetSideSql)
  const forgetRefused = db.query<unknown, [string, string, string]>(forgetRefusedSql)
  const pruneRefused = db.query<unknown, [number, number]>(pruneRefusedSql)

  const add = ({ values }: AddErrand): number => {
    // Each call is looked up once, however many of its entries there are: nothing else writes meanwhile.
    const calls = new Map<string, Asked>()
    for (let from = 0; from < values.length; from += timelineColumns.length) {
      const row = values.slice(from, from + timelineColumns.length) as EntryValues
      const [product, callUuid] = row
      const name = callKey({ product, callUuid })
      const call = calls.get(name) ?? ask(product, callUuid)
      calls.set(name, call)
      write(call, row)
    }
    return values.length / timelineColumns.length
  }

  const run = db.transaction((errand: TimelineErrand) => {
    switch (errand.type) {
      case 'timeline':
        return add(errand)
      case 'forgetSide':
        return forgetSide.run(JSON.stringify(errand.ids), errand.side).changes
      case 'forgetRefused':
        return forgetRefused.run(errand.userId, errand.role, errand.product).changes
      case 'pruneRefused':
        return pruneRefused.run(errand.before, pruneSize).changes
    }
  })
  return (errand) => run.immediate(errand)
}

/**
 * Nothing is written of a side that was erased [SRV2], of a member who is not the callee [GROUP1], nor of a call that is not
 * kept. A refused invite (`role`, `userId`: its caller) is written if there is no such call, or one of the same caller [UUID1].
 */
function isWritten(call: Asked, side: string, role: string, userId: string): boolean {
  if (call.id === 0) return role !== ''
  if (role !== '') {
    const isCaller = call.caller_user_id === userId && call.caller_role === role
    return isCaller || (call.callee_user_id === userId && call.callee_role === role)
  }
  if (side === 'callee') return call.callee_user_id !== '' && (userId === '' || userId === call.callee_user_id)
  return side !== 'caller' || call.caller_user_id !== ''
}
