import type { Group, GroupName } from '../../src/ports/groups.ts'
import type { GroupInTurns } from '../chaos/recording.ts'

type Known = Pick<Group, 'strategy' | 'memberRingMs' | 'ringMs'> & {
  /** The first of its members, by how many people come before them. */
  readonly from: number
}

const atOnce = { strategy: 'all', memberRingMs: 15_000, ringMs: 2_500 } as const
const inTurns = { memberRingMs: 1_500, ringMs: 5_500 } as const

/** The groups of a world: everybody, and everybody but the first two, who have one phone each. */
const ringing = { all: { ...atOnce, from: 0 }, few: { ...atOnce, from: 2 } } as const
/** Those that ring at one of their members after another. */
const turning = {
  turns: { ...inTurns, strategy: 'in_turn', from: 0 },
  idle: { ...inTurns, strategy: 'longest_idle', from: 0 },
} as const
const known: ReadonlyMap<string, Known> = new Map<string, Known>(Object.entries({ ...ringing, ...turning }))

/** Those that people call; only people at a desk call groups that ring in turn. */
export function groupNames(isDesk: boolean): readonly string[] {
  return [...Object.keys(ringing), ...(isDesk ? Object.keys(turning) : [])]
}

export function groupOf({ name, ...of }: GroupName, users: readonly string[]): Group | undefined {
  const found = known.get(name)
  if (found === undefined) return undefined
  const { from, ...settings } = found
  return { ...of, name, members: users.slice(from), ...settings }
}

export function groupsInTurns(users: readonly string[]): GroupInTurns[] {
  return Object.entries(turning).map(([name, { strategy, memberRingMs, from }]) => {
    return { name, strategy, memberRingMs, members: users.slice(from) }
  })
}
