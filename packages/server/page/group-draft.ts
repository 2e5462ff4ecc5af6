/** The form of a group: what an operator types, and the group that it means [GROUP1]. */
import type { GroupRequest, GroupShown } from '@ringwire/protocol/backend'
import { plural } from './wording.ts'

export type GroupStrategy = GroupShown['strategy']

/** The page has only types of the protocol, so it repeats its bounds. A test compares them. In ms. */
export const bounds = {
  memberRingMs: { min: 5_000, default: 15_000, max: 60_000 },
  ringMs: { min: 5_000, default: 45_000, max: 600_000 },
}

export interface Draft {
  readonly role: string
  readonly group: string
  readonly strategy: GroupStrategy
  /** One user id a line. */
  readonly members: string
  /** In seconds. */
  readonly memberRing: string
  readonly ring: string
}

type Read =
  | { readonly ok: true; readonly group: GroupShown & Required<GroupRequest> }
  | { readonly ok: false; readonly message: string }

export const newDraft: Draft = {
  ...{ role: '', group: '', strategy: 'all', members: '' },
  memberRing: String(bounds.memberRingMs.default / 1_000),
  ring: String(bounds.ringMs.default / 1_000),
}

export function draftOf({ role, group, strategy, members, member_ring_ms, ring_ms }: GroupShown): Draft {
  return {
    ...{ role, group, strategy, members: members.map(lineOf).join('\n') },
    memberRing: String(member_ring_ms / 1_000),
    ring: String(ring_ms / 1_000),
  }
}

/** The group that the form means, or the first thing that is wrong with it. The service checks the rest. */
export function readDraft({ role, group, strategy, members: lines, memberRing, ring }: Draft): Read {
  const wrong = (message: string) => ({ ok: false, message }) as const
  if (role.trim() === '' || group.trim() === '') return wrong('The group needs a role and a name.')
  // The browser would take these out of the path, and ask for something else.
  if ([role, group].some((name) => name === '.' || name === '..')) return wrong('A role or a name is not "." or "..".')
  const members = membersOf(lines)
  if (members === undefined) return wrong('A line that begins with a quote has to be a JSON string.')
  const twice = members.find((id, i) => members.indexOf(id) !== i)
  if (twice !== undefined) return wrong(`${twice} is in the list twice. Leave one of the two out.`)
  const [memberRingMs, ringMs] = [msOf(memberRing, bounds.memberRingMs), msOf(ring, bounds.ringMs)]
  if (memberRingMs === undefined) return wrong(`A member rings for ${range(bounds.memberRingMs)}.`)
  if (ringMs === undefined) return wrong(`A call rings for ${range(bounds.ringMs)} in all.`)
  return { ok: true, group: { role, group, strategy, members, member_ring_ms: memberRingMs, ring_ms: ringMs } }
}

/** What a save changes for people, in a sentence or three. */
export function changesOf(before: GroupShown | undefined, after: GroupShown): string {
  const members = plural(after.members.length, 'member')
  if (before === undefined) return `A new group with ${members}.`
  const joined = after.members.filter((id) => !before.members.includes(id)).length
  const left = before.members.filter((id) => !after.members.includes(id)).length
  const said = [`The group has ${members}: ${joined} more, ${left} fewer.`]
  if (isMoved(before, after)) said.push('It gets another name. Calls that ring at the old name end.')
  else if (left > 0) said.push('Calls that ring stop ringing at those who leave.')
  return said.join(' ')
}

export const isMoved = (before: GroupShown, after: GroupShown) =>
  before.role !== after.role || before.group !== after.group

export const range = ({ min, max }: { min: number; max: number }) => `${min / 1_000} to ${max / 1_000} s`

/** As it is, unless a line would not give it back: then as a JSON string. */
function lineOf(userId: string): string {
  return /^"|[\r\n\u2028\u2029]/.test(userId) || userId !== userId.trim() ? JSON.stringify(userId) : userId
}

/** Undefined if a line cannot be read. Empty lines do not count. */
function membersOf(lines: string): string[] | undefined {
  const members = lines
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .map((line) => (line.startsWith('"') ? parsed(line) : line))
  return members.every((id) => id !== undefined) ? members : undefined
}

function parsed(line: string): string | undefined {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'string' ? value : undefined
  } catch {
    return undefined
  }
}

function msOf(text: string, { min, max }: { min: number; max: number }): number | undefined {
  const ms = text.trim() === '' ? Number.NaN : Math.round(Number(text) * 1_000)
  return ms >= min && ms <= max ? ms : undefined
}
