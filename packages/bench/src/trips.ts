// How many requests the stores of a service got, as they count it themselves.
import { RedisClient, SQL } from 'bun'

export interface TripCounts {
  /** Scripts that Redis ran, and messages that it published, for the most part from within those. */
  scripts: number
  published: number
  /** Transactions of PostgreSQL; each statement of the service is one. */
  transactions: number
}

export interface Trips {
  read(): Promise<TripCounts>
}

/** What a connection to PostgreSQL did shows in its statistics a second later, in ms. */
const SHOWS_AFTER_MS = 2000

export function tripsOf(redisUrl: string, databaseUrl: string): Trips {
  return {
    async read() {
      await Bun.sleep(SHOWS_AFTER_MS)
      const redis = new RedisClient(redisUrl)
      const stats = String(await redis.send('INFO', ['commandstats']))
      redis.close()
      const sql = new SQL({ url: databaseUrl, max: 1 })
      const rows: { count: number }[] = await sql`SELECT (xact_commit + xact_rollback)::int AS count
        FROM pg_stat_database WHERE datname = current_database()`
      await sql.close()
      const calls = (command: string) =>
        Number(new RegExp(`^cmdstat_${command}:calls=(\\d+)`, 'm').exec(stats)?.[1] ?? 0)
      return { scripts: calls('evalsha'), published: calls('publish'), transactions: rows[0]!.count }
    },
  }
}

/** What each of this many calls took. */
export function tripsEach(before: TripCounts, after: TripCounts, calls: number): TripCounts {
  const each = (name: keyof TripCounts) => (after[name] - before[name]) / calls
  return { scripts: each('scripts'), published: each('published'), transactions: each('transactions') }
}
