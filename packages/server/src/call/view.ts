import type { CallView } from '@ringwire/protocol/backend'
import { type Call, isLive, type Party } from './call.ts'
import { type By, calleeIdOf, transferOriginOf } from './effects.ts'

const iso = (at: number) => new Date(at).toISOString()
const isoOrNull = (at: number | null) => (at === null ? null : iso(at))

/** A call as the backend of its product is shown it [SRV2, HOOK2]. `by`: who brought it into its status. */
export function callView(call: Call, by: Pick<By, 'userId' | 'role'> | null): CallView {
  return {
    call_uuid: call.callUuid,
    version: call.version,
    status: call.status,
    end_reason: isLive(call) ? null : call.endReason,
    caller: partyView(call.caller),
    callee: calleeView(call),
    call_type: call.callType,
    context_type: call.contextType,
    context_id: call.contextId,
    metadata: call.metadata === null ? null : { ...call.metadata },
    started_at: iso(call.startedAt),
    accepted_at: call.status === 'ringing' ? null : isoOrNull(call.acceptedAt),
    connected_at: call.status === 'ringing' ? null : isoOrNull(call.connectedAt),
    ended_at: isLive(call) ? null : iso(call.endedAt),
    by: by === null ? null : { user_id: by.userId, role: by.role },
    ...transferOriginOf(call),
  }
}

function calleeView(call: Call): CallView['callee'] {
  const { callee, group } = call
  return { ...partyView(callee), user_id: calleeIdOf(call), ...(group !== undefined && { group: group.name }) }
}

function partyView({ userId, role, displayName }: Party): CallView['caller'] {
  return { user_id: userId, role, display_name: displayName }
}
