// What a service asked of its stores, as they count it themselves: statements of PostgreSQL, commands of Redis.
import { RedisClient, SQL } from 'bun'

/** Settings of a PostgreSQL server that counts by statement. */
export const COUNTING = { shared_preload_libraries: 'pg_stat_statements', 'pg_stat_statements.track': 'top' }

/** A statement: how often it was carried out, and the server's own time for that, in ms. */
export interface Statement {
  readonly calls: number
  readonly ms: number
}

/** Counts since the start of the stores, or between two such readings. */
export interface Tally {
  /** Of PostgreSQL; each statement of the service is one. */
  readonly transactions: number
  readonly statements: ReadonlyMap<string, Statement>
  /** Of Redis, by name, also those that scripts run. */
  readonly commands: ReadonlyMap<string, number>
}

/** What a connection to PostgreSQL did shows in its statistics a second later, in ms. */
const SHOWS_AFTER_MS = 2000
/** What the reading itself asks; the service has none of these. */
const OWN = /pg_stat_|^CREATE EXTENSION/

/** The text of a statement in one line. */
export const oneLine = (text: string) => text.replaceAll(/\s+/g, ' ').trim()

export async function readTally(redisUrl: string, databaseUrl: string): Promise<Tally> {
  await Bun.sleep(SHOWS_AFTER_MS)
  const redis = new RedisClient(redisUrl)
  const stats = String(await redis.send('INFO', ['commandstats']))
  redis.close()
  const sql = new SQL({ url: databaseUrl, max: 1 })
  try {
    await sql`CREATE EXTENSION IF NOT EXISTS pg_stat_statements`
    const rows: { query: string; calls: number; ms: number }[] = await sql`
      SELECT query, calls::int AS calls, total_exec_time AS ms FROM pg_stat_statements
      WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())`
    const statements = statementsOf(rows)
    // The database's own count has those of its upkeep, and of this reading.
    const transactions = [...statements.values()].reduce((sum, { calls }) => sum + calls, 0)
    return { transactions, statements, commands: commandsOf(stats) }
  } finally {
    await sql.close()
  }
}

function statementsOf(rows: readonly { query: string; calls: number; ms: number }[]): Map<string, Statement> {
  const statements = new Map<string, Statement>()
  for (const { query, calls, ms } of rows) {
    const text = oneLine(query)
    if (OWN.test(text)) continue
    const before = statements.get(text)
    statements.set(text, { calls: calls + (before?.calls ?? 0), ms: ms + (before?.ms ?? 0) })
  }
  return statements
}

/** Names and counts of what `INFO commandstats` prints. */
export function commandsOf(stats: string): Map<string, number> {
  const all = [...stats.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)].map(([, name, calls]) => [name, Number(calls)])
  return new Map(all as [string, number][])
}

/** What came between two readings; nothing is in it of which nothing came. */
export function tallyBetween(before: Tally, after: Tally): Tally {
  const statements = new Map<string, Statement>()
  for (const [text, { calls, ms }] of after.statements) {
    const old = before.statements.get(text) ?? { calls: 0, ms: 0 }
    if (calls > old.calls) statements.set(text, { calls: calls - old.calls, ms: ms - old.ms })
  }
  const commands = new Map<string, number>()
  for (const [name, calls] of after.commands) {
    const more = calls - (before.commands.get(name) ?? 0)
    // The reading itself asks that.
    if (more > 0 && name !== 'info' && name !== 'hello') commands.set(name, more)
  }
  return { transactions: after.transactions - before.transactions, statements, commands }
}

/** What is left of a tally without that of a time in which the service was idle, and of that the part for one of `count`. */
export function withoutIdle(busy: Tally, idle: Tally, share: number, count: number): Tally {
  const own = (all: number, background: number) => Math.max(0, all - share * background) / count
  const statements = new Map<string, Statement>()
  for (const [text, { calls, ms }] of busy.statements) {
    const background = idle.statements.get(text) ?? { calls: 0, ms: 0 }
    statements.set(text, { calls: own(calls, background.calls), ms: own(ms, background.ms) })
  }
  const commands = new Map<string, number>()
  for (const [name, calls] of busy.commands) commands.set(name, own(calls, idle.commands.get(name) ?? 0))
  return { transactions: own(busy.transactions, idle.transactions), statements, commands }
}
