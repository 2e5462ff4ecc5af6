import type { Database } from 'bun:sqlite'
import { macrotask } from '../../ports/macrotask.ts'
import { mostComing, type OnlineStore } from '../../ports/online.ts'
import {
  type ComingRow,
  comingRows,
  type OnlineHook,
  type OnlineRow,
  onlineHooks,
  participantOfRow,
} from '../sql/online-rows.ts'
import type { Subscribers } from '../sql/subscribers.ts'
import { attempt } from './connection.ts'

/** The work of the writer thread for participants who come and go. */
export type OnlineErrand =
  | {
      readonly type: 'online'
      readonly node: string
      readonly people: readonly ComingRow[]
      readonly hooks: readonly OnlineHook[]
    }
  | { readonly type: 'eraseOnline'; readonly row: OnlineRow }

export interface OnlineWrites {
  online(errand: OnlineErrand): Promise<number>
}

/** Steps from node to node through the index. */
export const nodesSql = `
  WITH RECURSIVE nodes (node) AS (
    SELECT min(node) FROM online
    UNION ALL
    SELECT (SELECT min(node) FROM online WHERE online.node > nodes.node) FROM nodes WHERE nodes.node IS NOT NULL
  )
  SELECT node FROM nodes WHERE node IS NOT NULL`
/** Rows of a node that are counted before sockets have their turn. */
const countedAtOnce = 2_000
const rowsAfter = 'FROM online WHERE node = ? AND (product, role, user_id) > (?, ?, ?) ORDER BY product, role, user_id'
const edgeSql = `SELECT product, role, user_id ${rowsAfter} LIMIT 1 OFFSET ${countedAtOnce - 1}`
const restSql = `SELECT count(*) AS count FROM (SELECT 1 ${rowsAfter} LIMIT ${countedAtOnce})`
export const ofNodeSql = `SELECT product, role, user_id FROM online WHERE node = ? LIMIT ${mostComing}`

/** Comes before every row. */
const nobody: OnlineRow = { product: '', role: '', user_id: '' }

export function createOnlineStore(
  reader: Database,
  writes: OnlineWrites,
  subscribers: Pick<Subscribers, 'wanting'>,
): OnlineStore {
  const nodes = reader.query<{ node: string }, []>(nodesSql)
  const edge = reader.query<OnlineRow, string[]>(edgeSql)
  const rest = reader.query<{ count: number }, string[]>(restSql)
  const ofNode = reader.query<OnlineRow, [string]>(ofNodeSql)

  async function countOf(node: string): Promise<number> {
    let count = 0
    for (let last = nobody; ; await macrotask()) {
      const values = [node, last.product, last.role, last.user_id]
      const next = await attempt(() => edge.get(...values))
      if (next === null) return count + (await attempt(() => rest.get(...values)?.count ?? 0))
      count += countedAtOnce
      last = next
    }
  }

  return {
    async write(node, people, at) {
      const hooks = onlineHooks(people, subscribers, at)
      await writes.online({ type: 'online', node, people: comingRows(people), hooks })
    },
    async nodes() {
      const counts = new Map<string, number>()
      for (const { node } of await attempt(() => nodes.all())) counts.set(node, await countOf(node))
      return counts
    },
    of: (node) => attempt(() => ofNode.all(node).map(participantOfRow)),
    async erase({ product, role, userId }) {
      await writes.online({ type: 'eraseOnline', row: { product, role, user_id: userId } })
    },
  }
}

/** Of the writer thread: each errand is one transaction; answers how many came, went or were removed. */
export function createOnlineWriter(db: Database): (errand: OnlineErrand) => number {
  const isThere = db.query<unknown, string[]>(
    'SELECT 1 FROM online WHERE product = ? AND role = ? AND user_id = ? LIMIT 1',
  )
  const add = db.query<unknown, string[]>(
    'INSERT OR IGNORE INTO online (product, role, user_id, node) VALUES (?, ?, ?, ?)',
  )
  const remove = db.query<unknown, string[]>(
    'DELETE FROM online WHERE product = ? AND role = ? AND user_id = ? AND node = ?',
  )
  const erase = db.query<unknown, string[]>('DELETE FROM online WHERE product = ? AND role = ? AND user_id = ?')
  const tell = db.query<unknown, (string | number)[]>(`
    INSERT INTO webhook_deliveries (id, endpoint_id, subject, version, type, body, created_at)
    SELECT ?1, ?2, ?3, 1 + coalesce((
      SELECT max(version) FROM webhook_deliveries WHERE endpoint_id = ?2 AND subject = ?3 AND status = 'pending'
    ), 0), ?4, ?5, ?6`)

  const run = db.transaction((errand: OnlineErrand) => {
    if (errand.type === 'eraseOnline') {
      const { product, role, user_id } = errand.row
      return erase.run(product, role, user_id).changes
    }
    const changed = new Set<number>()
    for (const { n, product, role, user_id, comes } of errand.people) {
      const before = isThere.get(product, role, user_id) !== null
      const write = comes ? add : remove
      write.run(product, role, user_id, errand.node)
      if (before !== (isThere.get(product, role, user_id) !== null)) changed.add(n)
    }
    for (const { n, id, endpoint_id, subject, type, body, created_at } of errand.hooks)
      if (changed.has(n)) tell.run(id, endpoint_id, subject, type, body, created_at)
    return changed.size
  })
  return (errand) => run.immediate(errand)
}
