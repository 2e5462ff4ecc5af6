import type { Database } from 'bun:sqlite'
import type { Participant } from '../../call/call.ts'
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

export const entriesSql = `
  SELECT id, at, side, role, user_id, entry FROM call_timeline WHERE product = ? AND call_uuid = ? ORDER BY at, id LIMIT ?`
/** Nothing is written of a side that was erased [SRV2], nor of a call that is not kept any more. */
export const addSql = `
  INSERT INTO call_timeline (${timelineColumns})
  SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8
  WHERE coalesce((
      SELECT CASE ?5 WHEN 'caller' THEN caller_user_id WHEN 'callee' THEN callee_user_id ELSE '-' END
      FROM calls WHERE call_uuid = ?2 AND product = ?1), ?6) <> ''
    AND ((SELECT count(*) FROM call_timeline WHERE product = ?1 AND call_uuid = ?2) < ${mostEntries}
      OR EXISTS (SELECT 1 FROM call_timeline WHERE product = ?1 AND call_uuid = ?2 AND id = ?3))
  ON CONFLICT (product, call_uuid, id) DO UPDATE SET entry = excluded.entry`
export const forgetSides = (['caller', 'callee'] as const).map(
  (side) => `
  DELETE FROM call_timeline WHERE side = '${side}' AND (product, call_uuid) IN (
    SELECT product, call_uuid FROM calls WHERE ${side}_user_id = ? AND ${side}_role = ? AND product = ?)`,
)
export const forgetRefusedSql = `
  DELETE FROM call_timeline WHERE role <> '' AND user_id = ? AND role = ? AND product = ?`
export const refusedSql = `
  SELECT call_uuid, id, at, side, role, user_id, entry FROM call_timeline
  WHERE role <> '' AND user_id = ? AND role = ? AND product = ? AND (at, id) < (?, ?) ORDER BY at DESC, id DESC LIMIT ?`
export const pruneRefusedSql = `
  DELETE FROM call_timeline WHERE rowid IN (
    SELECT rowid FROM call_timeline WHERE role <> '' AND at < ? ORDER BY at LIMIT ?)`

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

/** Of the writer thread: all entries in one transaction; answers how many. */
export function createTimelineWriter(db: Database): (errand: TimelineErrand) => number {
  const add = db.query<unknown, (string | number)[]>(addSql)
  const width = timelineColumns.length
  const run = db.transaction(({ values }: TimelineErrand) => {
    for (let from = 0; from < values.length; from += width) add.run(...values.slice(from, from + width))
    return values.length / width
  })
  return (errand) => run.immediate(errand)
}
