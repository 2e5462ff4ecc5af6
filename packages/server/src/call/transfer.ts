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
  takesPartIn,
} from './call.ts'
import { type Actor, byOf, type Decision, type Refusal, refuse } from './command.ts'
import { type PeerNews, ringingData, type Step } from './effects.ts'
import { type InviteCommand, newCall, refuseVerdict } from './invite.ts'

/** A `call.transfer`: who asks, and the invite that it amounts to. The invite's caller is the side that is transferred. */
export interface TransferCommand {
  readonly asker: Actor
  readonly invite: InviteCommand
}

/**
 * Whether a session may transfer a call at all: it has a place in it, the call is answered and is not being transferred, and
 * the other side's client understands a transfer [XFER1]. Undefined: it may.
 */
export function checkTransfer(first: Call | undefined, asker: Actor, target: Participant): Refusal | undefined {
  const side = first && sideOf(first, asker.participant)
  if (first === undefined || side === undefined) return refuse('CALL_NOT_FOUND')
  if (!isAnswered(first)) return refuse('CALL_INVALID_STATE', { status: first.status })
  if (seatOf(first, side).sessionId !== asker.sessionId) return refuse('CALL_NOT_PARTICIPANT')
  if (sideOf(first, target) !== undefined) return refuse('CALL_TO_SELF')
  if (first.transferring !== undefined) return refuse('CALL_INVALID_STATE', { status: first.status })
  const { can = [] } = seatOf(first, otherSide(side))
  return can.includes('transfer') ? undefined : refuse('NOT_SUPPORTED_BY_PEER')
}

function seatOf(call: AnsweredCall, side: Side): Place {
  return side === 'caller' ? call.callerPlace : call.calleePlace
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
  const unfit = checkTransfer(first, asker, target)
  if (unfit !== undefined) return unfit
  const call = first as AnsweredCall
  const by = sideOf(call, asker.participant) as Side
  const other = participantOf(call, otherSide(by))
  const { rate } = invite
  if (!rate.ok) return refuse('RATE_LIMITED', { retry_after_ms: rate.retryAfterMs, limit: rate.limit })
  const unwanted = refuseVerdict(invite)
  if (unwanted !== undefined) return unwanted
  const isBetween = live.some((each) => sideOf(each, other) !== undefined && sideOf(each, target) !== undefined)
  if (isBetween) return refuse('CALL_INVALID_STATE', { status: call.status })
  if (invite.busy === 'reject' && live.some((each) => takesPartIn(each, target))) return refuse('CALLEE_BUSY')
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
  const { userId, role } = asker.participant
  const call: RingingCall = {
    ...newCall(invite, invite.callUuid, now),
    caller: first[other],
    callerPlace: placeOf(first, other) as Place,
    transferred: {
      from: first.callUuid,
      by: { userId, role, displayName: asker.displayName },
      firstStartedAt: first.transferred?.firstStartedAt ?? first.startedAt,
    },
    status: 'ringing',
    silenced: [],
  }
  const notices = [{ to: { place: 'rung', except: [] }, event: 'call.ringing', data: ringingData(call, now) }] as const
  return { call, event: { type: 'invited', at: now, by: null, notices, peers: [transferringNews(first, call)] } }
}

/** To the side that is transferred, before anything else that it hears of the new call. */
function transferringNews(first: AnsweredCall, { callUuid, callee }: RingingCall): PeerNews {
  const to = { user_id: callee.userId, role: callee.role, display_name: callee.displayName }
  const rings = { status: 'ringing', direction: 'outgoing' } as const
  const data = { call_uuid: first.callUuid, new_call_uuid: callUuid, ...rings, to }
  return { to: 'caller', event: 'call.transferring', needs: 'transfer', data }
}
