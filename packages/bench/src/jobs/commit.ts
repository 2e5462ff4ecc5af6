// What a commit costs on a PostgreSQL server: one row, one statement, one connection, one after another.
import { SQL } from 'bun'
import { loadBetween, readLoad } from '../proc.ts'
import { LatencyHistogram } from '../statistics.ts'
import { stayAwake } from './awake.ts'
import { within } from './clients.ts'
import { type CommitJob, type Prepared, plainResult } from './job.ts'

const SETUP_MS = 20_000

export async function prepareCommit({ url }: CommitJob): Promise<Prepared> {
  const sql = new SQL({ url, max: 1 })
  await within(SETUP_MS, 'A table', sql`CREATE TABLE bare_commit (id bigint PRIMARY KEY, note text NOT NULL)`)
  let id = 0
  return {
    async run({ warmupMs, measureMs }) {
      const latencies = new LatencyHistogram()
      const awake = stayAwake()
      const insertFor = async (ms: number) => {
        const until = performance.now() + ms
        while (performance.now() < until) {
          const before = Bun.nanoseconds()
          await sql`INSERT INTO bare_commit VALUES (${++id}, 'a row that is as short as this')`
          latencies.record(Bun.nanoseconds() - before)
        }
      }
      await insertFor(warmupMs)
      latencies.clear()
      const first = id
      const before = readLoad(process.pid, null)
      await insertFor(measureMs)
      const load = loadBetween(before, readLoad(process.pid, null))
      awake.stop()
      return { ...plainResult(id - first, load), latencies: latencies.counts() }
    },
    async release() {
      const rows: { count: number }[] = await sql`SELECT count(*)::int AS count FROM bare_commit`
      await sql.close()
      if (rows[0]?.count !== id) throw new Error(`${id} rows were inserted, ${rows[0]?.count} are there`)
    },
  }
}
