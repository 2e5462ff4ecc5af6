import type { EndReasonOf, OverStatus } from '@ringwire/protocol/end-reasons'
import {
  type AnsweredCall,
  type Call,
  type CallGroup,
  isAnswered,
  type LiveCall,
  membersLeft,
  type OverCall,
  type Place,
} from './call.ts'
import { type Acceptance, changed } from './command.ts'
import { type By, missedData, type Notice, overData, type Step } from './effects.ts'
import { rungAddress, withoutTurns } from './turns.ts'

/** How a call ends. `given`: the reason of the client, which then counts [END2]. */
export type End<S extends OverStatus> = S extends OverStatus
  ? { readonly status: S; readonly reason: EndReasonOf<S>; readonly given?: string | null }
  : never

/** Ends a live call, with notices for everybody who does not know it yet; `knowing`: sessions that know, and the author. */
export function over(
  call: LiveCall,
  end: End<'ended' | 'cancelled' | 'missed'>,
  by: By | null,
  now: number,
  knowing: By | null = by,
): Acceptance {
  const next = endOf(call, end, now)
  return changed(next, { type: end.status, at: now, by, notices: overNotices(call, next, by, knowing) })
}

function overNotices(before: LiveCall, next: OverCall, by: By | null, knowing: By | null): Notice[] {
  const notices: Notice[] = []
  const knows = (place: Place) => place.sessionId === knowing?.sessionId
  const tell = (to: Notice['to']) => {
    if (next.status === 'missed') notices.push({ to, event: 'call.missed', data: missedData(next) })
    else {
      const event = next.status === 'cancelled' ? 'call.cancelled' : 'call.ended'
      notices.push({ to, event, data: overData(next, by) })
    }
  }
  if (!knows(before.callerPlace)) tell({ place: 'caller' })
  const rung = before.status === 'ringing' ? rungAddress(before) : undefined
  if (rung !== undefined) tell(rung)
  if (before.status !== 'ringing' && !knows(before.calleePlace)) tell({ place: 'callee' })
  return notices
}

/** Ends a call for both, because a side of it goes on in another one [XFER1]. */
export function endedFor(call: AnsweredCall, next: Call, by: By | null, now: number): readonly Step[] {
  const { steps } = over(call, { status: 'ended', reason: 'transferred' }, by, now, null)
  return steps.map(({ call, event }) => ({ call: { ...call, transferredTo: next.callUuid }, event }))
}

/** An answer may be delivered late. For this time after its ring would have been over, a call that ends says where it rang. In ms. */
const untoldMs = 60_000

/**
 * Members who only rang in a call that somebody answered are not kept: they are many. If the call ends soon, though, a store may
 * have been away since the answer, and they still have to hear of it. In turn it rang only at the one who answered [GROUP1].
 */
function groupAtEnd(call: LiveCall, group: CallGroup, now: number): CallGroup {
  const kept = withoutTurns(group)
  if (!isAnswered(call)) return kept
  const areKept = group.turns === undefined && now < call.ringExpiresAt + untoldMs
  return { ...kept, members: areKept ? membersLeft(group).filter((userId) => userId !== call.callee.userId) : [] }
}

export function endOf(call: LiveCall, { status, reason, given = null }: End<OverStatus>, now: number): OverCall {
  const answered = isAnswered(call)
  const { product, callUuid, caller, callee, contextType, contextId, callType, metadata } = call
  const { redirectedFrom, transferred, group } = call
  return {
    product,
    callUuid,
    caller,
    callee,
    contextType,
    contextId,
    callType,
    metadata,
    // A repeat of the invite may come after the end [UUID1].
    ...(redirectedFrom !== undefined && { redirectedFrom }),
    ...(group !== undefined && { group: groupAtEnd(call, group, now) }),
    ...(transferred !== undefined && { transferred }),
    ...(call.clock !== undefined && { clock: call.clock }),
    startedAt: call.startedAt,
    ringTimeoutMs: call.ringTimeoutMs,
    ringExpiresAt: call.ringExpiresAt,
    version: call.version + 1,
    status,
    callerPlace: call.callerPlace,
    calleePlace: answered ? call.calleePlace : null,
    acceptedAt: answered ? call.acceptedAt : null,
    connectedAt: answered ? call.connectedAt : null,
    endedAt: now,
    endReason: given ?? reason,
  }
}
