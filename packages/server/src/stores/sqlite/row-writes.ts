import type { Database } from 'bun:sqlite'
import type { SqlValue } from './connection.ts'

export type RowStatement = readonly [sql: string, ...values: SqlValue[]]

/**
 * The work of the writer thread for rows that are seldom written: all statements in one transaction. `isLight`: a loss of
 * power may take it along, so that no commit of a call waits for the disk.
 */
export interface RowErrand {
  readonly type: 'rows'
  readonly statements: readonly RowStatement[]
  readonly isLight: boolean
}

export interface RowWrites {
  /** Answers how many rows the first statement changed. */
  rows(errand: RowErrand): Promise<number>
}

/** Answers how many rows the first statement changed. */
export function createRowWriter(db: Database): (errand: RowErrand) => number {
  const run = db.transaction((statements: readonly RowStatement[]) => {
    const [first = 0] = statements.map(([sql, ...values]) => db.query<unknown, SqlValue[]>(sql).run(...values).changes)
    return first
  })
  const synchronous = db.query<{ synchronous: number }, []>('PRAGMA synchronous').get()?.synchronous ?? 2
  return ({ statements, isLight }) => {
    if (!isLight) return run.immediate(statements)
    db.run('PRAGMA synchronous = NORMAL')
    try {
      return run.immediate(statements)
    } finally {
      db.run(`PRAGMA synchronous = ${synchronous}`)
    }
  }
}
