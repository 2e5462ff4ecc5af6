import {
  type AnsweredCall,
  type Call,
  isAnswered,
  type LiveCall,
  otherSide,
  type Participant,
  type Party,
  type Place,
  participantOf,
  placeOf,
  type RingingCall,
  type Side,
  sideOf,
  type Transferred,
  takesPartIn,
} from './call.ts'
import { type Actor, byOf, type Decision, type Refusal, refuse, refuseSelf } from './command.ts'
import { calleeIdOf, type Notice, type PeerNews, type Step } from './effects.ts'
import { firstRings, type InviteCommand, newCall, refuseVerdict } from './invite.ts'
import { beganFor } from './places.ts'

/** A session that has a place in the call, or the application backend, which transfers it for one of the sides [SRV2]. */
export type Transferrer = Actor | { readonly side: Side }

/**
 * A transfer: the side that requests it, and the invite that it amounts to. The invite's caller is the side that is
 * transferred.
 */
export interface TransferCommand<By extends Transferrer = Transferrer> {
  readonly asker: By
  readonly invite: InviteCommand
}

/** An answered call, and the side of it that transfers the other one. */
interface Own {
  readonly call: AnsweredCall
  readonly side: Side
}

/** Whether a call is answered, and a session has a place in it; the backend needs none [XFER1]. */
export function checkOwn(call: Call | undefined, asker: Transferrer): Refusal | Own {
  const side = call && ('side' in asker ? asker.side : sideOf(call, asker.participant))
  if (call === undefined || side === undefined) return refuse('CALL_NOT_FOUND')
  if (!isAnswered(call)) return refuse('CALL_INVALID_STATE', { status: call.status })
  const speaks = 'side' in asker || seatOf(call, side).sessionId === asker.sessionId
  return speaks ? { call, side } : refuse('CALL_NOT_PARTICIPANT')
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

/** Whether a call may be transferred to this target, and by which side. */
export function checkTransfer(first: Call | undefined, asker: Transferrer, target: Participant): Refusal | Own {
  const own = checkOwn(first, asker)
  if ('ok' in own) return own
  if (sideOf(own.call, target) !== undefined) return refuseSelf(target)
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

/** The origin of a call that goes on with `left`, a side of the first one. A transfer by the backend is one by its side. */
export function originOf(first: AnsweredCall, left: Side, asker: Transferrer): Transferred {
  const by = 'side' in asker ? first[asker.side] : partyOf(asker)
  return { from: first.callUuid, by, firstStartedAt: beganFor(first, left) }
}

function partyOf({ participant: { userId, role }, displayName }: Actor): Party {
  return { userId, role, displayName }
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
  const target: Participant = { product: invite.actor.participant.product, ...invite.callee }
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
  const isOfBackend = 'side' in asker
  const notices = isOfBackend ? [startedNotice(call, by, ringing.call)] : []
  const step: Step = {
    call: { ...call, version: call.version + 1, transferring },
    event: { type: 'transferring', at: now, by: isOfBackend ? null : byOf(asker), notices },
  }
  return { ok: true, call: ringing.call, steps: [step, ringing] }
}

/** To the side for which the backend transfers: its client has not asked for it, and reads what a client that has reads. */
function startedNotice(first: AnsweredCall, by: Side, { callUuid }: Call): Notice {
  const data = { call_uuid: first.callUuid, new_call_uuid: callUuid }
  return { to: { place: by }, needs: 'transfer', event: 'call.transfer_started', data }
}

/** The call that rings at the target. Nobody in it began it: the asker of the transfer is not in it. */
function transferred(first: AnsweredCall, by: Side, asker: Transferrer, invite: InviteCommand, now: number): Step {
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
