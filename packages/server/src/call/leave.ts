import { type Call, type CallGroup, type LiveCall, membersLeft, type RingingCall } from './call.ts'
import { changed, type Decision, unchanged } from './command.ts'
import { elsewhereData, type Notice, overData } from './effects.ts'
import { endOf } from './ending.ts'
import { withoutMember, withoutTurn } from './turns.ts'

/*
 * Members who leave a group while a call to it rings [GROUP1].
 */

const allDeclined = { status: 'rejected', reason: 'all_declined' } as const
const stopped = { status: 'cancelled', reason: 'ended_by_server' } as const

/** These members have left the group: the call stops ringing there, and is over where nobody else is left. */
export function leaveGroup(call: Call, userIds: readonly string[], now: number): Decision {
  if (call.status !== 'ringing' || call.group === undefined) return unchanged(call)
  const gone = membersLeft(call.group).filter((userId) => userIds.includes(userId))
  if (gone.length === 0) return unchanged(call)
  const group = gone.reduce((rest, userId) => withoutTurn(withoutMember(rest, userId), userId, now), call.group)
  const left: CallGroup = { ...group, left: [...(group.left ?? []), ...gone] }
  // A member who still waits for a turn has heard nothing of the call.
  const { turns } = call.group
  const rung = gone.filter((userId) => turns === undefined || turns.member === userId)
  return membersLeft(left).length === 0 ? endEmpty({ ...call, group: left }, rung, now) : goOn(call, left, rung, now)
}

/**
 * Somebody is erased: a live call to a group names it no more. If it may still ring there, the member leaves first, which is a
 * step of its own; so this is to be done until it changes nothing [SRV2].
 */
export function forgetMember(call: LiveCall, userId: string, now: number): Decision {
  if (call.group === undefined) return unchanged(call)
  if (call.status === 'ringing' && membersLeft(call.group).includes(userId)) return leaveGroup(call, [userId], now)
  const group = withoutTrace(call.group, userId)
  if (group === call.group) return unchanged(call)
  const next: LiveCall = { ...call, version: call.version + 1, group }
  return changed(next, { type: 'left', at: now, by: null, notices: [] })
}

function withoutTrace(group: CallGroup, userId: string): CallGroup {
  const { members, declined, left = [] } = group
  // The members include those who declined.
  if (![...members, ...left].includes(userId)) return group
  const isOther = (each: string) => each !== userId
  const rest = members.includes(userId) ? withoutMember(group, userId) : group
  return { ...rest, declined: declined.filter(isOther), ...(group.left && { left: left.filter(isOther) }) }
}

function goOn(call: RingingCall, group: CallGroup, rung: readonly string[], now: number): Decision {
  const next = { ...call, version: call.version + 1, group }
  const notices = noticesTo(rung, call.silenced, elsewhereData(next, 'left_group', null))
  return changed(next, { type: 'left', at: now, by: null, notices })
}

/** Those who are still members have declined, or there is none. */
function endEmpty(call: RingingCall & { readonly group: CallGroup }, rung: readonly string[], now: number): Decision {
  const end = call.group.declined.length > 0 ? allDeclined : stopped
  const next = endOf(call, end, now)
  const data = overData(next, null)
  const event = end === allDeclined ? 'call.rejected' : 'call.cancelled'
  const notices: Notice[] = [
    { to: { place: 'caller' }, event, data },
    ...noticesTo(rung, call.silenced, { ...data, reason: 'left_group' }),
  ]
  return changed(next, { type: end.status, at: now, by: null, notices })
}

function noticesTo(rung: readonly string[], except: readonly string[], data: ReturnType<typeof overData>): Notice[] {
  return rung.map((member) => ({ to: { place: 'rung', except, member }, event: 'call.cancelled', data }))
}
