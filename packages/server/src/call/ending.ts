import type { EndReasonOf, OverStatus } from '@ringwire/protocol/end-reasons'
import { type AnsweredCall, type Call, isAnswered, type LiveCall, type OverCall, type Place } from './call.ts'
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
    // Members who only rang in a call that somebody answered are not kept. Events name those who declined.
    ...(group !== undefined && { group: { ...withoutTurns(group), ...(answered && { members: [] }) } }),
    ...(transferred !== undefined && { transferred }),
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
