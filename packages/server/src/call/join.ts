import {
  type AnsweredCall,
  type Call,
  type CallDurations,
  type LiveCall,
  otherSide,
  type Participant,
  type Place,
  participantOf,
  placeOf,
  type Side,
  sideOf,
} from './call.ts'
import { type Actor, byOf, type Decision, type Refusal, refuse, refuseSelf } from './command.ts'
import type { PeerNews, Step } from './effects.ts'
import { endedFor } from './ending.ts'
import { newCall, refuseVerdict } from './invite.ts'
import { absenceOf } from './peers.ts'
import { beganFor } from './places.ts'
import { checkOwn, checkTransferable, isBetween, originOf, type TransferCommand } from './transfer.ts'

/*
 * A consultation: somebody talks to two people in two calls, and connects them [XFER1]. Nobody rings: the new call is answered
 * from its first version on, and each of the two goes on in it from where it is.
 */

/** `invite`: of the side that is left of the first call, to the side that is left of the second one. */
export interface JoinCommand extends TransferCommand<Actor> {
  /** The uuid of the second call. */
  readonly to: string
}

/** Both calls of a consultation, and whom the asker leaves in each. */
export interface Pair {
  readonly first: AnsweredCall
  readonly second: AnsweredCall
  /** The asker's side in each. */
  readonly sides: readonly [Side, Side]
}

/** Whether a session may connect the other sides of two calls; the pair if it may. An error about the second call names it. */
export function checkJoin(first: Call | undefined, second: Call | undefined, asker: Actor): Refusal | Pair {
  const one = checkOwn(first, asker)
  if ('ok' in one) return one
  const two = checkOwn(second, asker)
  if ('ok' in two) return ofSecond(two)
  const pair: Pair = { first: one.call, second: two.call, sides: [one.side, two.side] }
  const [, callee] = leftOf(pair)
  if (sideOf(pair.first, callee) !== undefined) return refuseSelf(callee)
  const unfit = checkTransferable(pair.first, one.side)
  if (unfit !== undefined) return unfit
  const unfitSecond = checkTransferable(pair.second, two.side)
  return unfitSecond === undefined ? pair : ofSecond(unfitSecond)
}

const ofSecond = (refusal: Refusal): Refusal => refuse(refusal.code, { ...refusal.details, field: 'to_call_uuid' })

/** The caller of the new call, and its callee. */
export function leftOf({ first, second, sides: [one, two] }: Pair): readonly [Participant, Participant] {
  return [participantOf(first, otherSide(one)), participantOf(second, otherSide(two))]
}

/** Decides on a consultation. `live`: the live calls of the two who are connected; the second call is among them. */
export function decideJoin(
  first: Call | undefined,
  live: readonly LiveCall[],
  { asker, invite, to }: JoinCommand,
  now: number,
  durations: CallDurations,
): Decision {
  const second = live.find(({ callUuid }) => callUuid === to)
  // The request was checked on it a moment ago: it is over since.
  if (second === undefined) return ofSecond(refuse('CALL_INVALID_STATE'))
  const pair = checkJoin(first, second, asker)
  if ('ok' in pair) return pair
  const { rate } = invite
  if (!rate.ok) return refuse('RATE_LIMITED', { retry_after_ms: rate.retryAfterMs, limit: rate.limit })
  const unwanted = refuseVerdict(invite)
  if (unwanted !== undefined) return unwanted
  if (isBetween(live, leftOf(pair))) return refuse('CALL_INVALID_STATE', { status: pair.first.status })
  const joined = join(pair, { asker, invite }, now, durations)
  const ends = [pair.first, pair.second].flatMap((call) => endedFor(call, joined.call, byOf(asker), now))
  return { ok: true, call: joined.call, steps: [joined, ...ends] }
}

/** The call of the two. Nobody in it began it. */
function join(
  { first, second, sides: [one, two] }: Pair,
  { asker, invite }: TransferCommand<Actor>,
  now: number,
  durations: CallDurations,
): Step {
  const [left, right] = [otherSide(one), otherSide(two)]
  const call: AnsweredCall = {
    ...newCall(invite, invite.callUuid, now),
    ...{ caller: first[left], callerPlace: placeOf(first, left) as Place },
    ...{ callee: second[right], calleePlace: placeOf(second, right) as Place },
    transferred: { ...originOf(first, left, asker), secondStartedAt: beganFor(second, right) },
    ...{ status: 'accepted', acceptedAt: now, connectedAt: null },
  }
  const peers = [newsOf(first, call, 'caller', durations), newsOf(second, call, 'callee', durations)]
  return { call, event: { type: 'accepted', at: now, by: null, notices: [], peers } }
}

/**
 * To a side of the new call, of which it reads before its former call ends. A session reads one piece of news of a version, so
 * this one also says whether the other side is away [PEER1].
 */
function newsOf(former: AnsweredCall, next: AnsweredCall, to: Side, durations: CallDurations): PeerNews {
  const { userId, role, displayName } = next[otherSide(to)]
  const away = absenceOf(next, otherSide(to), durations)
  const data = {
    ...{ call_uuid: former.callUuid, new_call_uuid: next.callUuid },
    status: 'accepted' as const,
    direction: to === 'caller' ? ('outgoing' as const) : ('incoming' as const),
    to: { user_id: userId, role, display_name: displayName, ...(away && { away }) },
  }
  return { to, event: 'call.transferring', needs: 'transfer', data }
}
