/** What a group may be, and how it is shown [GROUP1]. */
import { type GroupPage, GroupRequest, type GroupShown } from '@ringwire/protocol/backend'
import { groupLimits } from '@ringwire/protocol/groups'
import { fitsBytes, isDotSegment, isStorable, maxIdBytes } from '@ringwire/protocol/text'
import { createValidator } from '@ringwire/protocol/validate'
import type { Group, GroupName, GroupSummary } from '../ports/groups.ts'

export type GroupRead = { readonly ok: true; readonly group: Group } | { readonly ok: false; readonly message: string }

const validate = createValidator(GroupRequest)

/** A group as a backend sends it. Fields that are not known are ignored. */
export function readGroup(name: GroupName, body: Readonly<Record<string, unknown>>): GroupRead {
  const checked = validate(body)
  if (!checked.ok) {
    const twice = checked.field === 'members' ? firstTwice(body.members) : undefined
    const problem =
      twice === undefined ? checked.message : `has ${JSON.stringify(twice)} twice: leave one of the two out`
    return { ok: false, message: `${checked.field} ${problem}.` }
  }
  const { members, strategy, member_ring_ms, ring_ms } = checked.value
  const memberRingMs = member_ring_ms ?? groupLimits.memberRingMs.default
  const ringMs = ring_ms ?? groupLimits.ringMs.default
  return { ok: true, group: { ...name, members, strategy, memberRingMs, ringMs } }
}

/** The first user_id that is in a list a second time. */
function firstTwice(members: unknown): unknown {
  const seen = new Set<unknown>()
  return Array.isArray(members) ? members.find((userId) => seen.size === seen.add(userId).size) : undefined
}

/** Whether a role or a group can have the name [ID3]. */
export function canBeName(text: string): boolean {
  return text.trim() !== '' && !isDotSegment(text) && fitsBytes(text, maxIdBytes) && isStorable(text)
}

export function shownGroup({ role, name, members, strategy, memberRingMs, ringMs }: Group): GroupShown {
  return { role, group: name, members: [...members], strategy, member_ring_ms: memberRingMs, ring_ms: ringMs }
}

export function shownSummary(summary: GroupSummary): GroupPage['data'][number] {
  const { role, name, memberCount, strategy, memberRingMs, ringMs } = summary
  return { role, group: name, member_count: memberCount, strategy, member_ring_ms: memberRingMs, ring_ms: ringMs }
}
