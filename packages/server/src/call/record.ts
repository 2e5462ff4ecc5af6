import type { CallRecord } from '@ringwire/protocol/rest'
import { type Call, isLive, type Participant, sideOf } from './call.ts'
import { calleeIdOf, transferOriginOf } from './effects.ts'

const iso = (at: number) => new Date(at).toISOString()
const isoOrNull = (at: number | null) => (at === null ? null : iso(at))

/** A call as one of its participants reads it in the history: one of the two, or a member of the group that missed it [HIST2]. */
export function callRecord(call: Call, viewer: Participant): CallRecord {
  const outgoing = sideOf(call, viewer) === 'caller'
  const peer = outgoing ? call.callee : call.caller
  const acceptedAt = call.status === 'ringing' ? null : call.acceptedAt
  const connectedAt = call.status === 'ringing' ? null : call.connectedAt
  const endedAt = isLive(call) ? null : call.endedAt
  return {
    call_uuid: call.callUuid,
    status: call.status,
    context_type: call.contextType,
    context_id: call.contextId,
    started_at: iso(call.startedAt),
    ended_at: isoOrNull(endedAt),
    end_reason: isLive(call) ? null : call.endReason,
    direction: outgoing ? 'outgoing' : 'incoming',
    peer: {
      user_id: outgoing ? calleeIdOf(call) : peer.userId,
      role: peer.role,
      ...(outgoing && call.group !== undefined && { group: call.group.name }),
      display_name: peer.displayName,
    },
    ...(!outgoing && call.group !== undefined && { callee_group: call.group.name }),
    call_type: call.callType,
    accepted_at: isoOrNull(acceptedAt),
    connected_at: isoOrNull(connectedAt),
    duration_ms: acceptedAt === null || endedAt === null ? null : Math.max(0, endedAt - acceptedAt),
    ...transferOriginOf(call),
  }
}
