import {
  type AnsweredCall,
  type Call,
  type CallDurations,
  isAnswered,
  isLive,
  type LiveCall,
  linkOf,
  type OverCall,
  type Side,
} from './call.ts'
import type { CallCommand, Decision } from './command.ts'
import { decide } from './decide.ts'
import type { By, Notice, Step } from './effects.ts'
import { endedFor, over } from './ending.ts'

/*
 * A transfer is two calls: the first one, which goes on until the target answers, and the one that rings at the target. What
 * becomes of one of them decides about the other, in the same commit [XFER1].
 */

/** Decides on a call that may be part of a transfer; `linked`: the other call of it, as `linkOf` names it. */
export function decideLinked(
  call: Call | undefined,
  linked: Call | undefined,
  command: CallCommand,
  now: number,
  durations: CallDurations,
): Decision {
  const decision = decide(call, command, now, durations)
  if (call === undefined || linked === undefined) return decision
  const also = decision.steps.flatMap((step) => linkedSteps(call, step.call, linked, now))
  return { ...decision, steps: [...decision.steps, ...also] }
}

/** The calls that an invite ends may be part of a transfer, too. `live`: all live calls of its two participants. */
export function withLinked(
  before: LiveCall,
  steps: readonly Step[],
  live: readonly LiveCall[],
  now: number,
): readonly Step[] {
  const link = linkOf(before)
  const linked = live.find(({ callUuid }) => callUuid === link?.callUuid)
  if (linked === undefined) return steps
  return [...steps, ...steps.flatMap((step) => linkedSteps(before, step.call, linked, now))]
}

/**
 * The steps of the linked call that follow from a step of one call of a transfer. The step of a first call that is
 * written here also guards it: a decision on an old version of it is made again.
 */
function linkedSteps(before: Call, after: Call, linked: Call, now: number): readonly Step[] {
  if (linked.status === 'ringing') {
    if (isLive(after)) return []
    return over(linked, { status: 'cancelled', reason: 'transfer_cancelled' }, null, now).steps
  }
  if (before.status !== 'ringing' || after.status === 'ringing' || !isAnswered(linked)) return []
  return isLive(after) ? handedOver(linked, after, now) : [notTransferred(linked, after, now)]
}

/** The target answered: the first call ends for both, and both hear of it. */
function handedOver(first: AnsweredCall, next: Call, now: number): readonly Step[] {
  const by = first.transferring === undefined ? null : partyOf(first, first.transferring.by)
  return endedFor(first, next, by, now)
}

function partyOf(call: AnsweredCall, side: Side): By {
  const { userId, role } = call[side]
  const { sessionId } = side === 'caller' ? call.callerPlace : call.calleePlace
  return { userId, role, sessionId }
}

/** The target did not answer: the first call goes on, and may be transferred again. */
function notTransferred(first: AnsweredCall, next: OverCall, now: number): Step {
  const { transferring: _, ...call } = first
  const data = {
    call_uuid: first.callUuid,
    new_call_uuid: next.callUuid,
    status: next.status,
    end_reason: next.endReason,
  }
  const notices = (['caller', 'callee'] as const).map(
    (place): Notice => ({ to: { place }, needs: 'transfer', event: 'call.transfer_failed', data }),
  )
  return {
    call: { ...call, version: first.version + 1 },
    event: { type: 'transfer_failed', at: now, by: null, notices },
  }
}
