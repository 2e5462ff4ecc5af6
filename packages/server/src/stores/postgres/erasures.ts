import { countsKeptMs, type Erasures, noneErased } from '../../participants/erasures.port.ts'
import { addedSql, type CountRow, countColumns, countsOf, countValues } from '../sql/erasure-counts.ts'
import type { Connections } from './connections.ts'

const addSql = `
  INSERT INTO erasures (participant, ${countColumns}, changed_at)
  VALUES ($1, $2::int, $3::int, $4::int, $5::int, clock_timestamp())
  ON CONFLICT (participant) DO UPDATE SET ${addedSql('erasures')}, changed_at = excluded.changed_at`
const countedSql = `
  SELECT ${countColumns.map((column) => `${column}::float8 AS ${column}`)} FROM erasures WHERE participant = $1`
const forgetSql = `
  WITH old AS (
    DELETE FROM erasures WHERE participant IN (
      SELECT participant FROM erasures WHERE changed_at < statement_timestamp() - $2::float8 * interval '1 ms' LIMIT 10)
  ) DELETE FROM erasures WHERE participant = $1`

export function createErasures(connections: Connections): Erasures {
  return {
    async add(participant, counts) {
      // Sent twice it would count twice.
      await connections.run(addSql, [participant, ...countValues(counts)], { repeatable: false })
    },
    async counted(participant) {
      const [row]: CountRow[] = await connections.run(countedSql, [participant], { repeatable: true })
      return row === undefined ? noneErased : countsOf(row)
    },
    async forget(participant) {
      await connections.run(forgetSql, [participant, countsKeptMs], { repeatable: true })
    },
  }
}
