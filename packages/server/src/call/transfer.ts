import {
  type AnsweredCall,
  type Call,
  isAnswered,
  type LiveCall,
  otherSide,
  type Participant,
  type Place,
  participantOf,
  placeOf,
  type RingingCall,
  type Side,
  sideOf,
  type Transferred,
  takesPartIn,
} from './call.ts'
import { type Actor, byOf, type Decision, type Refusal, refuse } from './command.ts'
import { calleeIdOf, type PeerNews, type Step } from './effects.ts'
import { firstRings, type InviteCommand, newCall, refuseVerdict } from './invite.ts'
import { beganFor } from './places.ts'

/** A `call.transfer`: who asks, and the invite that it amounts to. The invite's caller is the side that is transferred. */
export interface TransferCommand {
  readonly asker: Actor
  readonly invite: InviteCommand
}

/** An answered call, and the side in it of the session that asks. */
interface Own {
  readonly call: AnsweredCall
  readonly side: Side
}

/** Whether a session has a place in a call that is answered [XFER1]. */
export function checkOwn(call: Call | undefined, asker: Actor): Refusal | Own {
  const side = call && sideOf(call, asker.participant)
  if (call === undefined || side === undefined) return refuse('CALL_NOT_FOUND')
  if (!isAnswered(call)) return refuse('CALL_INVALID_STATE', { status: call.status })
  return seatOf(call, side).sessionId === asker.sessionId ? { call, side } : refuse('CALL_NOT_PARTICIPANT')
}

/** Whether the other side of a call can be transferred: the call is not yet, and that side's client understands it [XFER1]. */
export function checkTransferable(call: AnsweredCall, by: Side): Refusal | undefined {
  if (call.transferring !== undefined) return refuse('CALL_INVALID_STATE', { status: call.status })
  const { can = [] } = seatOf(call, otherSide(by))
  return can.includes('transfer') ? undefined : refuse('NOT_SUPPORTED_BY_PEER')
}

function seatOf(call: AnsweredCall, side: Side): Place {
  return side === 'caller' ? call.callerPlace : call.calleePlace
}

/** Whether a session may transfer a call to this target: the call as it asks for it, if it may. */
export function checkTransfer(first: Call | undefined, asker: Actor, target: Participant): Refusal | Own {
  const own = checkOwn(first, asker)
  if ('ok' in own) return own
  if (sideOf(own.call, target) !== undefined) return refuse('CALL_TO_SELF')
  return checkTransferable(own.call, own.side) ?? own
}

/** Whether two people are in a live call with each other, ringing or answered. */
export function isBetween(live: readonly LiveCall[], [one, other]: readonly [Participant, Participant]): boolean {
  return live.some((call) => sideOf(call, one) !== undefined && sideOf(call, other) !== undefined)
}

/** Whether somebody's call to the group that is the target rings already. Other calls of its members are their own [GROUP1]. */
function ringsThere(call: LiveCall, caller: Participant, { group, callee }: InviteCommand): boolean {
  const isOfCaller = call.status === 'ringing' && sideOf(call, caller) === 'caller'
  return isOfCaller && call.group?.name === group?.name && call.callee.role === callee.role
}

/** Where a call came from that goes on with `left`, a side of the first one. */
export function originOf(first: AnsweredCall, left: Side, { participant, displayName }: Actor): Transferred {
  const { userId, role } = participant
  return { from: first.callUuid, by: { userId, role, displayName }, firstStartedAt: beganFor(first, left) }
}

/**
 * Decides on a transfer. `live`: the live calls of the side that is transferred, and of the target. INV6 and INV7 do not apply:
 * a call between the two is in the way.
 */
export function decideTransfer(
  first: Call | undefined,
  live: readonly LiveCall[],
  { asker, invite }: TransferCommand,
  now: number,
): Decision {
  const target: Participant = { product: asker.participant.product, ...invite.callee }
  const own = checkTransfer(first, asker, target)
  if ('ok' in own) return own
  const { call, side: by } = own
  const { rate } = invite
  if (!rate.ok) return refuse('RATE_LIMITED', { retry_after_ms: rate.retryAfterMs, limit: rate.limit })
  const unwanted = refuseVerdict(invite)
  if (unwanted !== undefined) return unwanted
  const other = participantOf(call, otherSide(by))
  const isInTheWay =
    invite.group === undefined ? isBetween(live, [other, target]) : live.some((each) => ringsThere(each, other, invite))
  if (isInTheWay) return refuse('CALL_INVALID_STATE', { status: call.status })
  const isBusy = invite.group?.isBusy ?? live.some((each) => takesPartIn(each, target))
  if (invite.busy === 'reject' && isBusy) return refuse('CALLEE_BUSY')
  const ringing = transferred(call, by, asker, invite, now)
  const transferring = { to: ringing.call.callUuid, by }
  const step: Step = {
    call: { ...call, version: call.version + 1, transferring },
    event: { type: 'transferring', at: now, by: byOf(asker), notices: [] },
  }
  return { ok: true, call: ringing.call, steps: [step, ringing] }
}

/** The call that rings at the target. Nobody in it began it: the asker of the transfer is not in it. */
function transferred(first: AnsweredCall, by: Side, asker: Actor, invite: InviteCommand, now: number): Step {
  const other = otherSide(by)
  const call: RingingCall = {
    ...newCall(invite, invite.callUuid, now),
    caller: first[other],
    callerPlace: placeOf(first, other) as Place,
    transferred: originOf(first, other, asker),
    status: 'ringing',
    silenced: [],
  }
  const notices = firstRings(call, now)
  return { call, event: { type: 'invited', at: now, by: null, notices, peers: [transferringNews(first, call)] } }
}

/** To the side that is transferred, before anything else that it hears of the new call. */
function transferringNews(first: AnsweredCall, call: RingingCall): PeerNews {
  const { callee, group } = call
  const named = { user_id: calleeIdOf(call), role: callee.role, ...(group !== undefined && { group: group.name }) }
  const rings = { status: 'ringing', direction: 'outgoing' } as const
  const to = { ...named, display_name: callee.displayName }
  const data = { call_uuid: first.callUuid, new_call_uuid: call.callUuid, ...rings, to }
  return { to: 'caller', event: 'call.transferring', needs: 'transfer', data }
}
