import type { Database } from 'bun:sqlite'
import { callKey, type Participant } from '../../call/call.ts'
import { mostEntries } from '../../call/observed.ts'
import type { TimelineStore } from '../../ports/timeline.ts'
import {
  latest,
  type StoredEntry,
  type StoredRefusal,
  timelineColumns,
  timelineRowOf,
  timelineValues,
} from '../sql/timeline-rows.ts'
import { sqlFailure } from './connection.ts'

/** What the writer thread does for timelines: the values of entries, one after another. */
export interface TimelineErrand {
  readonly type: 'timeline'
  readonly values: readonly (string | number)[]
}

export interface TimelineWrites {
  timeline(errand: TimelineErrand): Promise<number>
}

const pruneSize = 500

/** The columns of an entry where it is stored; `call_id`, product and call are those of its call, or of an invite. */
const storedColumns = ['call_id', ...timelineColumns] as const
const key = ['call_id', 'product', 'call_uuid', 'id'] as const

export const entriesSql = `
  SELECT id, at, side, role, user_id, entry FROM call_timeline
  WHERE call_id = (SELECT id FROM calls WHERE call_uuid = ?2 AND product = ?1)
  UNION ALL
  SELECT id, at, side, role, user_id, entry FROM call_timeline WHERE call_id = 0 AND product = ?1 AND call_uuid = ?2
  ORDER BY at, id LIMIT ?3`
/** All of them, with what their calls are named by. */
export const allEntriesSql = `
  SELECT coalesce(c.product, t.product) AS product, coalesce(c.call_uuid, t.call_uuid) AS call_uuid,
    ${timelineColumns.slice(2).map((column) => `t.${column}`)}
  FROM call_timeline AS t LEFT JOIN calls AS c ON c.id = t.call_id`
export const refusalsSql =
  'SELECT count(*) AS count FROM call_timeline WHERE call_id = 0 AND product = ?1 AND call_uuid = ?2'
/** What decides on the entries of a call that is kept: whom it names, how many there are. */
export const askedSql = `
  SELECT id, caller_user_id AS caller, callee_user_id AS callee,
    (SELECT count(*) FROM call_timeline WHERE call_id = calls.id) + (${refusalsSql}) AS count
  FROM calls WHERE call_uuid = ?2 AND product = ?1`
const insertSql = `
  INSERT INTO call_timeline (${storedColumns}) VALUES (${storedColumns.map(() => '?')}) ON CONFLICT (${key}) DO NOTHING`
export const replaceSql = `UPDATE call_timeline SET entry = ? WHERE ${key.map((column) => `${column} = ?`).join(' AND ')}`
export const forgetSides = (['caller', 'callee'] as const).map(
  (side) => `
  DELETE FROM call_timeline WHERE side = '${side}' AND call_id IN (
    SELECT id FROM calls WHERE ${side}_user_id = ? AND ${side}_role = ? AND product = ?)`,
)
export const forgetRefusedSql = `
  DELETE FROM call_timeline WHERE role <> '' AND user_id = ? AND role = ? AND product = ?`
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

/** Entries are added by the writer thread; who is erased and what is too old is removed on the calling one. */
export function createTimelineStore(reader: Database, beside: Database, writes: TimelineWrites): TimelineStore {
  const entries = reader.query<StoredEntry, [string, string, number]>(entriesSql)
  const refused = reader.query<StoredRefusal, (string | number)[]>(refusedSql)
  const forgets = [...forgetSides, forgetRefusedSql].map((sql) => beside.query<unknown, [string, string, string]>(sql))
  const pruneRefused = beside.query<unknown, [number, number]>(pruneRefusedSql)
  const forget = beside.transaction(({ product, role, userId }: Participant) =>
    forgets.reduce((count, statement) => count + statement.run(userId, role, product).changes, 0),
  )

  function attempt<T>(action: () => T): T | Promise<T> {
    try {
      return action()
    } catch (error) {
      return Promise.reject(sqlFailure(error))
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
    forgetParticipant: (participant) => attempt(() => forget.immediate(participant)),
    pruneRefused: (before) => attempt(() => pruneRefused.run(before, pruneSize).changes),
  }
}

/** In the order of `timelineColumns`. */
type EntryValues = [string, string, string, number, string, string, string, string]

/** What the writer asks of a call before it writes entries of it. */
interface Asked {
  /** 0: it is not kept. */
  readonly id: number
  readonly caller: string
  readonly callee: string
  count: number
}

/** Of the writer thread: all entries in one transaction; answers how many it was given. */
export function createTimelineWriter(db: Database): (errand: TimelineErrand) => number {
  const asked = db.query<Asked, [string, string]>(askedSql)
  const refusals = db.query<{ count: number }, [string, string]>(refusalsSql)
  const insert = db.query<unknown, (string | number)[]>(insertSql)
  const replace = db.query<unknown, (string | number)[]>(replaceSql)

  function ask(product: string, callUuid: string): Asked {
    const kept = asked.get(product, callUuid)
    return kept ?? { id: 0, caller: '', callee: '', count: refusals.get(product, callUuid)?.count ?? 0 }
  }

  function write(call: Asked, [product, callUuid, id, at, side, role, userId, entry]: EntryValues): void {
    if (!isWritten(call, side, role)) return
    const of = role === '' ? ([call.id, '', ''] as const) : ([0, product, callUuid] as const)
    const isNew = call.count < mostEntries && insert.run(...of, id, at, side, role, userId, entry).changes > 0
    if (isNew) call.count++
    else replace.run(entry, ...of, id)
  }

  const run = db.transaction(({ values }: TimelineErrand) => {
    // A call is asked about once, however many of its entries there are: nothing else writes meanwhile.
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
  })
  return (errand) => run.immediate(errand)
}

/** Nothing is written of a side that was erased [SRV2], nor of a call that is not kept, but for an invite that was refused. */
function isWritten({ id, caller, callee }: Asked, side: string, role: string): boolean {
  if (id === 0) return role !== ''
  return (side !== 'caller' || caller !== '') && (side !== 'callee' || callee !== '')
}
