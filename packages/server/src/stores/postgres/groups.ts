import type { Groups } from '../../ports/groups.ts'
import { type GroupRow, groupOf, summaryOf } from '../sql/group-rows.ts'
import type { Connections, SqlParameter } from './connections.ts'

const putSql = 'SELECT put_group($1, $2, $3, $4, $5::int, $6::int, $7)'
const removeSql = 'SELECT remove_group($1, $2, $3) AS gone'
/** A group without members has one row, too: all of it is read at one moment. */
export const groupSql = `
  SELECT g.role, g.name, g.strategy, g.member_ring_ms, g.ring_ms, m.user_id FROM call_groups AS g
  LEFT JOIN call_group_members AS m ON m.product = g.product AND m.role = g.role AND m.group_name = g.name
  WHERE g.product = $1 AND g.role = $2 AND g.name = $3 ORDER BY m.turn`
export const groupsSql = `
  SELECT g.role, g.name, g.strategy, g.member_ring_ms, g.ring_ms, (
    SELECT count(*)::int FROM call_group_members AS m
    WHERE m.product = g.product AND m.role = g.role AND m.group_name = g.name
  ) AS members
  FROM call_groups AS g WHERE g.product = $1 AND (g.role, g.name) > ($2, $3) ORDER BY g.role, g.name LIMIT $4::int`
export const groupsOfSql = `
  SELECT group_name FROM call_group_members WHERE product = $1 AND role = $2 AND user_id = $3 ORDER BY group_name`
export const forgetMemberSql = `
  DELETE FROM call_group_members WHERE product = $1 AND role = $2 AND user_id = $3 RETURNING 1`

/** Groups in the database: what another node writes is seen by the next read. */
export function createGroups(connections: Connections): Groups {
  const run = (text: string, values: readonly SqlParameter[]) =>
    // Each of the writes leaves the same behind when it is done twice.
    connections.run(text, values, { repeatable: true })

  return {
    async put({ product, role, name, strategy, memberRingMs, ringMs, members }) {
      await run(putSql, [product, role, name, strategy, memberRingMs, ringMs, JSON.stringify(members)])
    },
    async get(group) {
      const rows: (GroupRow & { user_id: string | null })[] = await run(groupSql, [
        group.product,
        group.role,
        group.name,
      ])
      const [first] = rows
      if (first === undefined) return undefined
      return groupOf(
        group,
        first,
        rows.flatMap(({ user_id }) => user_id ?? []),
      )
    },
    async remove({ product, role, name }) {
      const [row] = await run(removeSql, [product, role, name])
      return row?.gone === true
    },
    async list({ product, role, name }, limit) {
      const rows: (GroupRow & { members: number })[] = await run(groupsSql, [product, role, name, limit])
      return rows.map((row) => summaryOf(product, row))
    },
    async of({ product, role, userId }) {
      const rows: { group_name: string }[] = await run(groupsOfSql, [product, role, userId])
      return rows.map(({ group_name }) => group_name)
    },
    forget: async ({ product, role, userId }) => (await run(forgetMemberSql, [product, role, userId])).length,
  }
}
