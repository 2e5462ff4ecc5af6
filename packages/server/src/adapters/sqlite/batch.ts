import type { Database, Statement } from 'bun:sqlite'
import type { Step } from '../../call/effects.ts'
import { eventColumns, pushEvent } from '../sql/rows.ts'
import { isNothingWritten, isRowProblem, type SqlValue, unknownOutcome } from './connection.ts'
import { pushCall, type Write, writes } from './rows.ts'

/*
 * A batch on its way to the writer thread is one flat array: such an array crosses threads for less than half of what
 * objects or JSON text cost. Per transition: the number of its steps; per step: the way to write the call, the
 * values of its row, for an update the row's id and the version it builds on, and the values of the event.
 *
 * The answer is flat too: for every step the id of its call, or why its transition was not written.
 */

/** The guard of one of the transition's steps failed: another version is stored. */
export const conflict = -1
/** The database refused a value of this transition: a bug. */
export const refused = -2

/** A transition, encoded; `size` is its number of steps. */
export interface Encoded {
  readonly size: number
  readonly values: readonly SqlValue[]
}

/** `id` is of the row that an update writes; 0, which no row has, where none is known. */
export function encodeStep(out: SqlValue[], step: Step, write: Write, id: number): void {
  out.push(writes[write].code)
  pushCall(out, write, step.call)
  if (write !== 'create') out.push(id, step.call.version - 1)
  pushEvent(out, step)
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
  const savepoint = db.query('SAVEPOINT transition')
  const release = db.query('RELEASE transition')
  const rollbackTo = db.query('ROLLBACK TO transition')
  const insertEvent = db.query<unknown, SqlValue[]>(
    `INSERT INTO call_events (call_id, ${eventColumns}) VALUES (?${', ?'.repeat(eventColumns.length)})`,
  )
  const callStatements = prepareCallStatements(db)

  /** Writes the transition at the cursor; false where its guard failed. `ids` gets one entry per step. */
  function writeSteps(batch: readonly SqlValue[], from: number, size: number, ids: number[]): number {
    let cursor = from
    for (let step = 0; step < size; step++) {
      const { statement, width, creates } = callStatements[batch[cursor] as number] as CallStatement
      const values = batch.slice(cursor + 1, cursor + 1 + width)
      cursor += 1 + width
      const result = statement.run(...values)
      if (result.changes === 0) return conflict
      const id = creates ? Number(result.lastInsertRowid) : (values[width - 2] as number)
      insertEvent.run(id, ...batch.slice(cursor, cursor + eventColumns.length))
      cursor += eventColumns.length
      ids.push(id)
    }
    return 0
  }

  /** Where the transition after this one begins. */
  function skip(batch: readonly SqlValue[], from: number, size: number): number {
    let cursor = from
    for (let step = 0; step < size; step++) {
      const { width } = callStatements[batch[cursor] as number] as CallStatement
      cursor += 1 + width + eventColumns.length
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
      for (let step = 0; step < size; step++) ids.push(outcome)
    }
    if (guarded) release.run()
  }

  function writeAll(batch: readonly SqlValue[], guarded: boolean): number[] {
    const ids: number[] = []
    for (let cursor = 0; cursor < batch.length; ) {
      const size = batch[cursor] as number
      writeTransition(batch, cursor + 1, size, ids, guarded || size > 1)
      cursor = skip(batch, cursor + 1, size)
    }
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

/** By the codes of `writes`. */
function prepareCallStatements(db: Database): CallStatement[] {
  const statements: CallStatement[] = []
  for (const [write, { code, columns }] of Object.entries(writes)) {
    const creates = write === 'create'
    const sql = creates
      ? `INSERT INTO calls (${columns}) VALUES (?${', ?'.repeat(columns.length - 1)}) ON CONFLICT (call_uuid, product) DO NOTHING`
      : `UPDATE calls SET ${columns.map((column) => `${column} = ?`)} WHERE id = ? AND version = ?`
    statements[code] = { statement: db.query(sql), width: columns.length + (creates ? 0 : 2), creates }
  }
  return statements
}
