import type { Database } from 'bun:sqlite'
import { countsKeptMs, type ErasedCounts, type Erasures, noneErased } from '../../participants/erasures.port.ts'
import { addedSql, type CountRow, countColumns, countsOf, countValues } from '../sql/erasure-counts.ts'
import { type SqlValue, sqlFailure } from './connection.ts'

/** The work of the writer thread for the counts of erasures. */
export type CountErrand =
  | { readonly type: 'countErased'; readonly participant: string; readonly counts: ErasedCounts; readonly at: number }
  | { readonly type: 'forgetErased'; readonly participant: string; readonly before: number }

const addSql = `
  INSERT INTO erasures (participant, ${countColumns}, changed_at) VALUES (?, ?, ?, ?, ?, ?)
  ON CONFLICT (participant) DO UPDATE SET ${addedSql('erasures')}, changed_at = excluded.changed_at`
const countedSql = `SELECT ${countColumns} FROM erasures WHERE participant = ?`
const forgetSql = `
  DELETE FROM erasures WHERE participant = ?1 OR participant IN (
    SELECT participant FROM erasures WHERE changed_at < ?2 LIMIT 10)`

interface CountWrites {
  erase(errand: CountErrand): Promise<unknown>
}

export function createErasures(reader: Database, writes: CountWrites, now: () => number): Erasures {
  const counted = reader.query<CountRow, [string]>(countedSql)
  return {
    async add(participant, counts) {
      await writes.erase({ type: 'countErased', participant, counts, at: now() })
    },
    async counted(participant) {
      try {
        const row = counted.get(participant)
        return row === null ? noneErased : countsOf(row)
      } catch (error) {
        throw sqlFailure(error)
      }
    },
    async forget(participant) {
      await writes.erase({ type: 'forgetErased', participant, before: now() - countsKeptMs })
    },
  }
}

/** Of the writer thread: answers how many rows it wrote. */
export function createCountWriter(db: Database): (errand: CountErrand) => number {
  const add = db.query<unknown, SqlValue[]>(addSql)
  const forget = db.query<unknown, [string, number]>(forgetSql)
  return (errand) => {
    const { participant } = errand
    if (errand.type === 'forgetErased') return forget.run(participant, errand.before).changes
    return add.run(participant, ...countValues(errand.counts), Math.trunc(errand.at)).changes
  }
}
