import { mostComing, type OnlineStore } from '../../ports/online.ts'
import { comingRows, type OnlineRow, onlineHooks, participantOfRow } from '../sql/online-rows.ts'
import type { Subscribers } from '../sql/subscribers.ts'
import type { Connections, SqlParameter } from './connections.ts'

export const nodesSql = 'SELECT node, count(*)::int AS count FROM online GROUP BY node'
export const ofNodeSql = `SELECT product, role, user_id FROM online WHERE node = $1 LIMIT ${mostComing}`
export const eraseSql = 'DELETE FROM online WHERE product = $1 AND role = $2 AND user_id = $3'

export function createOnlineStore(connections: Connections, subscribers: Pick<Subscribers, 'wanting'>): OnlineStore {
  const run = (text: string, values: readonly SqlParameter[]) => connections.run(text, values, { repeatable: true })
  return {
    async write(node, people, at) {
      const hooks = onlineHooks(people, subscribers, at)
      await run('SELECT tell_online($1, $2::text::json, $3::text::json)', [
        node,
        JSON.stringify(comingRows(people)),
        JSON.stringify(hooks),
      ])
    },
    async nodes() {
      const rows: { node: string; count: number }[] = await run(nodesSql, [])
      return new Map(rows.map(({ node, count }) => [node, count]))
    },
    of: async (node) => ((await run(ofNodeSql, [node])) as OnlineRow[]).map(participantOfRow),
    async erase({ product, role, userId }) {
      await run(eraseSql, [product, role, userId])
    },
  }
}
