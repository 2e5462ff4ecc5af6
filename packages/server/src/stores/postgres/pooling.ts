import type { SQL } from 'bun'
import { connectSession, openClient, within } from './connections.ts'
import { unavailable } from './failures.ts'

const limitMs = 3_000
/** In a pool that others use as well, the connections may come back in another order. */
const rounds = 3

/**
 * Rejects where a pooler gives each transaction another connection: settings, locks and prepared statements of a session would
 * end up with somebody else [PG1]. Two clients that are connected at the same time never share a server process otherwise.
 */
export async function requireSessions(url: string): Promise<void> {
  const clients: SQL[] = []
  const deadline = performance.now() + limitMs
  async function client(): Promise<SQL> {
    const sql = openClient(url, undefined, () => {})
    clients.push(sql)
    await within(connectSession(sql, {}), deadline)
    return sql
  }
  const processOf = async (sql: SQL): Promise<number> => {
    const [row] = await within(sql.unsafe('SELECT pg_backend_pid() AS pid').simple(), deadline)
    return row.pid
  }
  try {
    const one = await client()
    const first = await processOf(one)
    const other = await secondOf(client)
    if (other === undefined) return
    for (let round = 0; round < rounds; round++) {
      const isShared = (await processOf(other)) === first || (await processOf(one)) !== first
      if (isShared) throw unavailable(sharedText)
    }
  } finally {
    for (const sql of clients) void sql.close({ timeout: 0 })
  }
}

/** If there is none for a second client, the start goes on: it names the lack better than this does. */
async function secondOf(client: () => Promise<SQL>): Promise<SQL | undefined> {
  try {
    return await client()
  } catch {
    return undefined
  }
}

const sharedText =
  'DATABASE_URL leads to a pooler that gives each transaction another connection (PgBouncer: pool_mode = transaction). ' +
  'The service needs connections of its own, for their settings, locks and prepared statements: ' +
  'set pool_mode = session for its database, or name PostgreSQL itself.'
