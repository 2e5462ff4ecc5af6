import type { ClientRequest } from '@ringwire/protocol/envelope'
import type { Call, Party } from '../call/call.ts'

/**
 * What a request is about [ORD1]: the call that it names, or whom it calls. Two that share nothing of it have nothing to do
 * with each other.
 */
export function aboutRequest(request: ClientRequest): readonly string[] {
  switch (request.event) {
    case 'auth.refresh':
    case 'call.list':
    case 'presence.watch':
      return []
    case 'call.invite': {
      const { callee_user_id, callee_group, callee_role: role, call_uuid: callUuid } = request.data
      const callee = subjectOf({ userId: callee_user_id ?? '', role, group: callee_group ?? undefined })
      return callUuid == null ? [callee] : [callee, callUuid.toLowerCase()]
    }
    case 'call.transfer': {
      const { call_uuid: callUuid, to_call_uuid: to } = request.data
      return to == null ? [callUuid.toLowerCase()] : [callUuid.toLowerCase(), to.toLowerCase()]
    }
    default:
      return [request.data.call_uuid.toLowerCase()]
  }
}

/** What a request is about that waits for somebody in this call: an invite of the peer may change it, too [INV7]. */
export function aboutCall({ callUuid, caller, callee, group }: Call): readonly string[] {
  return [callUuid, subjectOf(caller), subjectOf({ ...callee, group: group?.name })]
}

type Subject = Pick<Party, 'userId' | 'role'> & { readonly group?: string | undefined }

/** None of them has a NUL in it, and no UUID has one. A group is one subject, whichever member has answered. */
function subjectOf({ userId, role, group }: Subject): string {
  return group === undefined ? `${role}\0${userId}` : `${role}\0\0${group}`
}
