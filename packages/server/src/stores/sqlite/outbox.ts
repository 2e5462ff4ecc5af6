import type { Database } from 'bun:sqlite'
import { callKey } from '../../call/call.ts'
import type { Step } from '../../call/effects.ts'
import { type Left, leaseMs, type Outbox, ownMs, type LeftRow as RowLeft } from '../../ports/outbox.ts'
import { createStepRows } from '../sql/step-rows.ts'
import { attempt } from './connection.ts'

interface LeftRow {
  readonly row: number
  readonly version: number | null
  readonly product: string | null
  readonly call_uuid: string | null
  readonly ended_at: number | null
}

/** Rows whose event is gone come, too: a version that knows no outbox has removed it. */
export const leftSql = `
  SELECT outbox.seq AS row, call_events.version AS version, product, call_uuid, ended_at
  FROM outbox LEFT JOIN call_events ON call_events.seq = outbox.seq LEFT JOIN calls ON calls.id = call_id
  ORDER BY outbox.seq`
export const leftOfSql = `
  SELECT outbox.seq AS row, version FROM outbox JOIN call_events ON call_events.seq = outbox.seq
  WHERE call_id = (SELECT id FROM calls WHERE call_uuid = ? AND product = ?) ORDER BY version`
export const rowsSql = 'SELECT seq FROM outbox ORDER BY seq'
export const oldestSql = `
  SELECT at FROM outbox JOIN call_events ON call_events.seq = outbox.seq ORDER BY outbox.seq LIMIT 1`

/** Rows that the serving process has just written. */
export interface OwnRows {
  committed(step: Step, row: number): void
}

interface Removals {
  /** Removes rows of the outbox. */
  told(rows: readonly number[]): Promise<unknown>
}

/**
 * The outbox of one process. Nobody else reads or writes it, so its memory knows which claim has which row, and after a
 * start every row is free. A step's row is the `seq` of its event.
 */
export function createOutbox(db: Database, commits: Removals, now = () => performance.now()): Outbox & OwnRows {
  const stepRows = createStepRows()
  /** Rows that are not free yet, or are here already: when they are. */
  const freeAt = new Map<number, number>()
  const left = db.query<LeftRow, []>(leftSql)
  const leftOfCall = db.query<RowLeft, [string, string]>(leftOfSql)
  const rows = db.query<{ seq: number }, []>(rowsSql)
  const oldest = db.query<{ at: number }, []>(oldestSql)

  const isFree = (row: number, at: number) => (freeAt.get(row) ?? 0) <= at

  /** Most of the time none is. */
  function isAnyFree(at: number): boolean {
    for (const { seq } of rows.iterate()) if (isFree(seq, at)) return true
    return false
  }

  function takeFree(limit: number, at: number): Left[] {
    const taken: Left[] = []
    const busy = new Set<string>()
    for (const found of left.iterate()) {
      const one = leftOf(found)
      const key = one.call && callKey(one.call)
      if (!isFree(one.row, at)) {
        if (key !== undefined) busy.add(key)
      } else if (key === undefined || !busy.has(key)) {
        taken.push(one)
        if (taken.length === limit) break
      }
    }
    for (const { row } of taken) freeAt.set(row, at + leaseMs)
    return taken
  }

  return {
    committed(step, row) {
      stepRows.note([step], [row])
      freeAt.set(row, now() + ownMs)
    },
    rowOf: stepRows.find,
    leftOf: ({ callUuid, product }) => attempt(() => leftOfCall.all(callUuid, product)),
    async remove(gone) {
      if (gone.length === 0) return
      await commits.told(gone)
      for (const row of gone) freeAt.delete(row)
    },
    claim(limit) {
      const at = now()
      return attempt(() => (isAnyFree(at) ? takeFree(limit, at) : []))
    },
    release(given, afterMs) {
      for (const row of given) freeAt.set(row, now() + afterMs)
    },
    oldest: () => attempt(() => oldest.get()?.at),
  }
}

function leftOf({ row, version, product, call_uuid: callUuid, ended_at: endedAt }: LeftRow): Left {
  const call = product === null || callUuid === null ? undefined : { product, callUuid, endedAt }
  return { row, version: version ?? 0, call }
}

/** Of the writer thread: removes rows in one transaction; answers how many were there. */
export function createRemoval(db: Database): (rows: readonly number[]) => number {
  const remove = db.query<unknown, [number]>('DELETE FROM outbox WHERE seq = ?')
  const removeAll = db.transaction((rows: readonly number[]) => {
    let count = 0
    for (const row of rows) count += remove.run(row).changes
    return count
  })
  return (rows) => removeAll.immediate(rows)
}
