import type { SQL } from 'bun'
import type { Ephemerals, Holding, Look } from '../../cluster/ephemerals.port.ts'
import { connectionName } from '../../ports/node-name.ts'
import { StoreError } from '../../ports/store-error.ts'
import { connectSession, openClient, within } from './connections.ts'
import { unavailable } from './failures.ts'

/** No statement takes longer, and no attempt to connect, in ms. */
const limitMs = 2_000
const firstBackoffMs = 20
const maxBackoffMs = 1_000

/** The start of the server tells one run of it from the next. */
const lookSql = `
  SELECT extract(epoch FROM pg_postmaster_start_time())::text AS origin,
    coalesce((
      SELECT json_agg(DISTINCT key)
      FROM (
        SELECT ((classid::bigint << 32) | objid::bigint)::text AS key
        FROM pg_locks
        WHERE locktype = 'advisory' AND objsubid = 1 AND granted AND mode = 'ShareLock'
          AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
      ) AS locks
      WHERE key IN (SELECT json_array_elements_text($1::text::json))
    ), '[]')::text AS held`

/**
 * An advisory lock of a session for each node. It is shared, so that a node takes it again although the server still believes
 * in the connection before. The same connection looks which nodes have one: a node that can look has its own lock [PG1].
 */
export function createPostgresEphemerals(url: string, nodeId: string): Ephemerals {
  const session = { application_name: connectionName(nodeId), statement_timeout: String(limitMs) }
  let sql: SQL | undefined
  let isClosed = false
  let kept: Promise<void> = Promise.resolve()
  /** Ends the pause before the next attempt. */
  let wake = () => {}

  /** One connection, from its begin to its end. Answers whether it came about. */
  async function holdOnce(key: string, holding: Holding): Promise<boolean> {
    const { promise: closed, resolve } = Promise.withResolvers<void>()
    const client = openClient(url, session.application_name, resolve)
    let isHeld = false
    try {
      const deadline = performance.now() + limitMs
      await within(connectSession(client, session), deadline)
      await within(client.unsafe('SELECT pg_advisory_lock_shared($1::text::bigint)', [key]), deadline)
      if (isClosed) return true
      isHeld = true
      sql = client
      holding.onHeld()
      await closed
      return true
    } catch {
      // The code that needs the database reports it.
      return false
    } finally {
      sql = undefined
      void client.close({ timeout: 0 })
      if (isHeld && !isClosed) holding.onLost()
    }
  }

  async function keep(key: string, holding: Holding): Promise<void> {
    for (let backoffMs = 0; !isClosed; ) {
      const wasThere = await holdOnce(key, holding)
      backoffMs = wasThere ? 0 : Math.min(maxBackoffMs, Math.max(firstBackoffMs, backoffMs * 2))
      if (isClosed || backoffMs === 0) continue
      const { promise, resolve } = Promise.withResolvers<void>()
      wake = resolve
      await Promise.race([promise, Bun.sleep(backoffMs)])
    }
  }

  return {
    hold(node, holding) {
      kept = keep(keyOf(node), holding)
    },
    async look(nodes): Promise<Look> {
      const client = sql
      if (client === undefined) throw unavailable('PostgreSQL is not connected')
      const keys = nodes.map(keyOf)
      try {
        const [row] = await within(client.unsafe(lookSql, [JSON.stringify(keys)]), performance.now() + limitMs)
        const held = new Set(JSON.parse(row.held) as string[])
        return { origin: row.origin, held: new Set(nodes.filter((_, i) => held.has(keys[i] as string))) }
      } catch (cause) {
        // A connection that does not answer is given up, and the next one holds the lock as well.
        void client.close({ timeout: 0 })
        throw new StoreError('unavailable', 'PostgreSQL did not say who lives', { cause })
      }
    },
    async close() {
      isClosed = true
      wake()
      await sql?.close({ timeout: 0 })
      await kept
    },
  }
}

/** 64 bits of a hash, as PostgreSQL writes a bigint. */
function keyOf(node: string): string {
  const digest = new Bun.CryptoHasher('sha256').update(`ringwire node ${node}`).digest()
  return digest.readBigInt64BE().toString()
}
