import type { Database, Statement } from 'bun:sqlite'
import type { Step } from '../../call/effects.ts'
import type { Delivery } from '../../ports/webhooks.ts'
import {
  allColumns,
  type ColumnSet,
  changedColumns,
  columnNames,
  eventColumns,
  pushColumns,
  pushEvent,
} from '../sql/rows.ts'
import { isNothingWritten, isRowProblem, type SqlValue, unknownOutcome } from './connection.ts'
import type { StoredCall } from './rows.ts'
import { stagedText } from './webhook-writes.ts'

/*
 * A batch on its way to the writer thread is one flat array: such an array crosses threads for less than half of what
 * objects or JSON text cost. Per transition: the number of its steps; per step: the columns that are
 * written of the call, their values, for an update the row's id and the version it builds on, the values of the event, and what
 * is to be delivered to endpoints of it, as one text; null: nothing.
 *
 * The answer is flat too: for every step the id of its call and its row in the outbox, or twice why its transition was not
 * written.
 */

/** The count of numbers in the answer that belong to one step. */
export const answerWidth = 2
/** The guard of one of the transition's steps failed: another version is stored. */
export const conflict = -1
/** The database refused a value of this transition: a bug. */
export const refused = -2

/** A transition, encoded; `size` is its number of steps. */
export interface Encoded {
  readonly size: number
  readonly values: readonly SqlValue[]
}

/** `stored`: what is known of the row that an update writes; no row has the id 0. */
export function encodeStep(
  out: SqlValue[],
  step: Step,
  stored: StoredCall | undefined,
  deliveries: readonly Delivery[] = [],
): void {
  const creates = step.call.version === 1
  const set = creates ? allColumns : changedColumns(step, stored?.call)
  out.push(set)
  pushColumns(out, set, step.call)
  if (!creates) out.push(stored?.id ?? 0, step.call.version - 1)
  pushEvent(out, step)
  out.push(deliveries.length === 0 ? null : stagedText(deliveries))
}

interface CallStatement {
  readonly statement: Statement<unknown, SqlValue[]>
  /** How many values it takes. */
  readonly width: number
  readonly creates: boolean
}

/** Writes batches over one connection, each in one transaction. */
export function createBatchWriter(db: Database): (batch: readonly SqlValue[]) => number[] {
  const begin = db.query('BEGIN IMMEDIATE')
  const commit = db.query('COMMIT')
  const write = createTransitionWriter(db)

  function writeAll(batch: readonly SqlValue[], guarded: boolean): number[] {
    const ids: number[] = []
    for (let cursor = 0; cursor < batch.length; ) cursor = write(batch, cursor, ids, guarded)
    return ids
  }

  function inTransaction(batch: readonly SqlValue[], guarded: boolean): number[] {
    let committing = false
    begin.run()
    try {
      const ids = writeAll(batch, guarded)
      committing = true
      commit.run()
      return ids
    } catch (error) {
      if (db.inTransaction) db.run('ROLLBACK')
      throw committing && !isNothingWritten(error) ? unknownOutcome(error) : error
    }
  }

  return (batch) => {
    try {
      return inTransaction(batch, false)
    } catch (error) {
      // One transition that the database refuses does not take the others with it.
      if (!isRowProblem(error)) throw error
      return inTransaction(batch, true)
    }
  }
}

/**
 * Writes the transition at a place of a batch, and answers where the next one begins. `ids` gets what is answered of each step.
 */
function createTransitionWriter(db: Database) {
  const savepoint = db.query('SAVEPOINT transition')
  const release = db.query('RELEASE transition')
  const rollbackTo = db.query('ROLLBACK TO transition')
  const insertEvent = db.query<unknown, SqlValue[]>(
    `INSERT INTO call_events (call_id, ${eventColumns}) VALUES (?${', ?'.repeat(eventColumns.length)})`,
  )
  // One that is there already was left by a version that knows no outbox, and removed the event.
  const insertLeft = db.query('INSERT OR IGNORE INTO outbox (seq) VALUES (?)')
  const stage = db.query<unknown, [string]>('INSERT INTO webhook_steps (deliveries) VALUES (?)')
  const statementOf = createCallStatements(db)

  /** Says where a guard failed. */
  function writeSteps(batch: readonly SqlValue[], from: number, size: number, ids: number[]): number {
    let cursor = from
    for (let step = 0; step < size; step++) {
      const { statement, width, creates } = statementOf(batch[cursor] as ColumnSet)
      const values = batch.slice(cursor + 1, cursor + 1 + width)
      cursor += 1 + width
      const result = statement.run(...values)
      if (result.changes === 0) return conflict
      const id = creates ? Number(result.lastInsertRowid) : (values[width - 2] as number)
      const event = insertEvent.run(id, ...batch.slice(cursor, cursor + eventColumns.length))
      cursor += eventColumns.length
      const seq = Number(event.lastInsertRowid)
      insertLeft.run(seq)
      ids.push(id, seq)
      const deliveries = batch[cursor++]
      if (typeof deliveries === 'string') stage.run(deliveries)
    }
    return 0
  }

  /** The index at which the next transition begins. */
  function skip(batch: readonly SqlValue[], from: number, size: number): number {
    let cursor = from
    for (let step = 0; step < size; step++) {
      const { width } = statementOf(batch[cursor] as ColumnSet)
      cursor += 1 + width + eventColumns.length + 1
    }
    return cursor
  }

  /** All steps of a transition or none; a savepoint where more than the guard of its first step can fail. */
  function writeTransition(batch: readonly SqlValue[], from: number, size: number, ids: number[], guarded: boolean) {
    const before = ids.length
    if (guarded) savepoint.run()
    let outcome: number
    try {
      outcome = writeSteps(batch, from, size, ids)
    } catch (error) {
      if (!guarded || !isRowProblem(error)) throw error
      outcome = refused
    }
    if (outcome !== 0) {
      if (guarded) rollbackTo.run()
      ids.length = before
      for (let step = 0; step < size; step++) ids.push(outcome, outcome)
    }
    if (guarded) release.run()
  }

  return (batch: readonly SqlValue[], at: number, ids: number[], guarded: boolean): number => {
    const size = batch[at] as number
    writeTransition(batch, at + 1, size, ids, guarded || size > 1)
    return skip(batch, at + 1, size)
  }
}

/**
 * A statement for each set of columns that comes; few do. An update names only the columns that change: SQLite rewrites
 * every index that has a named column, and a live call's transitions touch none.
 */
function createCallStatements(db: Database): (set: ColumnSet) => CallStatement {
  const statements = new Map<ColumnSet, CallStatement>()

  function prepare(set: ColumnSet): CallStatement {
    const columns = columnNames(set)
    const creates = set === allColumns
    const sql = creates
      ? `INSERT INTO calls (${columns}) VALUES (?${', ?'.repeat(columns.length - 1)}) ON CONFLICT (call_uuid, product) DO NOTHING`
      : `UPDATE calls SET ${columns.map((column) => `${column} = ?`)} WHERE id = ? AND version = ?`
    return { statement: db.prepare(sql), width: columns.length + (creates ? 0 : 2), creates }
  }

  return (set) => {
    let known = statements.get(set)
    if (known === undefined) {
      known = prepare(set)
      statements.set(set, known)
    }
    return known
  }
}
