import type { Group, GroupName, GroupSummary } from '../../ports/groups.ts'

/** A group as both stores read it. */
export interface GroupRow {
  role: string
  name: string
  strategy: Group['strategy']
  member_ring_ms: number
  ring_ms: number
}

const settingsOf = ({ strategy, member_ring_ms: memberRingMs, ring_ms: ringMs }: GroupRow) => ({
  strategy,
  memberRingMs,
  ringMs,
})

export function groupOf({ product, role, name }: GroupName, row: GroupRow, members: readonly string[]): Group {
  return { product, role, name, ...settingsOf(row), members }
}

export function summaryOf(product: string, row: GroupRow & { members: number }): GroupSummary {
  return { product, role: row.role, name: row.name, ...settingsOf(row), memberCount: row.members }
}
