import { type Call, type CallGroup, isLive, isMember, membersLeft, type RingingCall, ringsAt } from './call.ts'
import { type Actor, byOf, type CallCommand, changed, type Decision, refuse, unchanged } from './command.ts'
import { type By, elsewhereData, type Notice, overData } from './effects.ts'
import { endOf } from './ending.ts'
import { withoutTurn } from './turns.ts'

/*
 * Calls to groups [GROUP1]. While such a call rings, each member at whom it rings is a callee; the one who accepts becomes
 * the callee of the call.
 */

type MemberCommand = Extract<CallCommand, { readonly actor: Actor }>

/**
 * The answer for somebody who has no side of the call: a member, or a stranger. Undefined for a member at whom it rings,
 * who declines, or whose call is over: that is decided as for any callee.
 */
export function refuseOutsider(call: Call, command: MemberCommand): Decision | undefined {
  const { group } = call
  const { participant } = command.actor
  if (!isMember(call, participant) || group === undefined) return refuse('CALL_NOT_FOUND')
  if (command.type === 'arrive') return unchanged(call)
  if (!isLive(call) || ringsAt(call, participant)) return undefined
  const hasDeclined = group.declined.includes(participant.userId)
  const declines = command.type === 'reject' || command.type === 'end'
  if (call.status === 'ringing') {
    if (command.type === 'accept') return refuse('CALL_INVALID_STATE', { status: call.status })
    // The turn of a member may be over when its decline arrives: that counts for its next turns.
    return declines && !hasDeclined ? undefined : unchanged(call)
  }
  if (command.type === 'accept') return refuse('CALL_ALREADY_ANSWERED')
  // A decline may be repeated, also after somebody else has answered [END1].
  return declines && hasDeclined ? unchanged(call) : refuse('CALL_NOT_PARTICIPANT')
}

/** A member does not want the call: it rings on at the others, and is over where it rings at nobody else. */
export function decline(call: RingingCall, group: CallGroup, actor: Actor, now: number): Decision {
  const { silenced } = call
  const { userId } = actor.participant
  const by = byOf(actor)
  const declined = { ...group, declined: [...group.declined, userId] }
  const except = [...silenced, by.sessionId]
  if (membersLeft(declined).length === 0) return allDeclined({ ...call, group: declined }, userId, by, now, except)
  const next = { ...call, version: call.version + 1, group: withoutTurn(declined, userId, now) }
  const data = elsewhereData(next, 'rejected_elsewhere', by)
  const notice: Notice = { to: { place: 'rung', except, member: userId }, event: 'call.cancelled', data }
  return changed(next, { type: 'declined', at: now, by, notices: [notice] })
}

function allDeclined(call: RingingCall, userId: string, by: By, now: number, except: readonly string[]): Decision {
  const next = endOf(call, { status: 'rejected', reason: 'all_declined' }, now)
  const data = overData(next, by)
  return changed(next, {
    type: 'rejected',
    at: now,
    by,
    notices: [
      { to: { place: 'caller' }, event: 'call.rejected', data },
      {
        to: { place: 'rung', except, member: userId },
        event: 'call.cancelled',
        data: { ...data, reason: 'rejected_elsewhere' },
      },
    ],
  })
}
