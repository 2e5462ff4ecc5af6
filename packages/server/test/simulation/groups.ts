import type { Group, GroupName } from '../../src/ports/groups.ts'

/** The groups of a world: everybody, and everybody but the first two, who have one phone each. */
const firstOf = { all: 0, few: 2 } as const

export const groupNames = Object.keys(firstOf) as (keyof typeof firstOf)[]

export function groupOf({ name, ...of }: GroupName, users: readonly string[]): Group | undefined {
  const known = groupNames.find((each) => each === name)
  if (known === undefined) return undefined
  return { ...of, name, members: users.slice(firstOf[known]), strategy: 'all', memberRingMs: 15_000, ringMs: 2_500 }
}
