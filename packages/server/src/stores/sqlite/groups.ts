import type { Database } from 'bun:sqlite'
import type { GroupSummary, Groups } from '../../ports/groups.ts'
import { macrotask } from '../../ports/macrotask.ts'
import { type GroupRow, groupOf, summaryOf } from '../sql/group-rows.ts'
import { attempt } from './connection.ts'
import { inPages, rowsOfPage } from './pages.ts'
import type { RowWrites } from './row-writes.ts'

const columns = 'role, name, strategy, member_ring_ms, ring_ms'
/** A group without members has one row, too: all of it is read at one moment. */
export const groupSql = `
  SELECT ${columns.replace('role', 'g.role')}, m.user_id FROM call_groups AS g
  LEFT JOIN call_group_members AS m ON m.product = g.product AND m.role = g.role AND m.group_name = g.name
  WHERE g.product = ? AND g.role = ? AND g.name = ? ORDER BY m.turn`
export const groupsSql = `
  SELECT ${columns}, (
    SELECT count(*) FROM call_group_members AS m WHERE m.product = g.product AND m.role = g.role AND m.group_name = g.name
  ) AS members
  FROM call_groups AS g WHERE product = ? AND (role, name) > (?, ?) ORDER BY role, name LIMIT ?`
export const groupsOfSql = `
  SELECT group_name FROM call_group_members
  WHERE product = ? AND role = ? AND user_id = ? AND group_name > ? ORDER BY group_name LIMIT ${rowsOfPage}`
const putSql = `
  INSERT INTO call_groups (product, role, name, strategy, member_ring_ms, ring_ms) VALUES (?, ?, ?, ?, ?, ?)
  ON CONFLICT (product, role, name) DO UPDATE
  SET strategy = excluded.strategy, member_ring_ms = excluded.member_ring_ms, ring_ms = excluded.ring_ms`
const dropMembersSql = 'DELETE FROM call_group_members WHERE product = ? AND role = ? AND group_name = ?'
const addMembersSql = `
  INSERT INTO call_group_members (product, role, group_name, turn, user_id)
  SELECT ?, ?, ?, key + 1, value FROM json_each(?)`
const removeSql = 'DELETE FROM call_groups WHERE product = ? AND role = ? AND name = ?'
const forgetSql = 'DELETE FROM call_group_members WHERE product = ? AND role = ? AND user_id = ?'
/** Groups that are counted in one turn of the event loop: each may have 500 members. */
const groupsOfPage = 20

/** Groups in the file. The writer thread writes them, each in one transaction. */
export function createGroups(reader: Database, writes: RowWrites): Groups {
  const one = reader.query<GroupRow & { user_id: string | null }, string[]>(groupSql)
  const list = reader.query<GroupRow & { members: number }, (string | number)[]>(groupsSql)
  const ofMember = reader.query<{ group_name: string }, string[]>(groupsOfSql)
  const write = (statements: Parameters<RowWrites['rows']>[0]['statements']) =>
    writes.rows({ type: 'rows', statements, isLight: false })

  return {
    async put({ product, role, name, strategy, memberRingMs, ringMs, members }) {
      const group = [product, role, name] as const
      await write([
        [putSql, ...group, strategy, memberRingMs, ringMs],
        [dropMembersSql, ...group],
        [addMembersSql, ...group, JSON.stringify(members)],
      ])
    },
    get(group) {
      return attempt(() => {
        const rows = one.all(group.product, group.role, group.name)
        const [first] = rows
        if (first === undefined) return undefined
        return groupOf(
          group,
          first,
          rows.flatMap(({ user_id }) => user_id ?? []),
        )
      })
    },
    async remove({ product, role, name }) {
      const group = [product, role, name] as const
      const gone = await write([
        [removeSql, ...group],
        [dropMembersSql, ...group],
      ])
      return gone > 0
    },
    async list({ product, ...first }, limit) {
      const found: GroupSummary[] = []
      for (let after = first; ; await macrotask()) {
        const size = Math.min(groupsOfPage, limit - found.length)
        const page = await attempt(() => list.all(product, after.role, after.name, size))
        found.push(...page.map((row) => summaryOf(product, row)))
        const last = page.at(-1)
        if (last === undefined || page.length < groupsOfPage) return found
        after = last
      }
    },
    async of({ product, role, userId }) {
      const rows = await inPages(
        '',
        (after) => ofMember.all(product, role, userId, after),
        ({ group_name }) => group_name,
      )
      return rows.map(({ group_name }) => group_name)
    },
    forget: ({ product, role, userId }) => write([[forgetSql, product, role, userId]]),
  }
}
