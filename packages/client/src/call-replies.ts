import type { ClientEventName } from '@ringwire/protocol/client-events'
import type { ElsewhereReason } from '@ringwire/protocol/end-reasons'
import type { CallAck } from '@ringwire/protocol/events/call'
import type { CallStatus } from '@ringwire/protocol/rest'
import type { CallInput } from './call-state.ts'
import type { RingwireError } from './error.ts'
import type { Reply } from './requests.ts'
import { type CallState, ownReasons } from './types.ts'

/* The state of a call as a reply of the service shows it. */

/** Its final notice is on the way or was lost; in any case there is nothing left to ask for. */
function gone(error: RingwireError): CallInput | undefined {
  if (error.code !== 'CALL_INVALID_STATE' && error.code !== 'CALL_NOT_FOUND') return undefined
  return { type: 'over', status: error.status as CallStatus, reason: ownReasons.lost, error }
}

/** The reply to `call.accept`. */
export function afterAccept(reply: Reply): CallInput {
  if (reply.ok) return { type: 'accepted' }
  const { error } = reply
  if (error.code === 'CALL_ALREADY_ANSWERED')
    return { type: 'over', status: 'accepted', reason: 'answered_elsewhere' satisfies ElsewhereReason, error }
  return gone(error) ?? { type: 'answering', on: false }
}

/** The reply to a question whether the call goes on. */
export function afterConfirm(reply: Reply): CallInput | undefined {
  return reply.ok ? { type: 'stands', status: (reply.data as CallAck).status } : gone(reply.error)
}

/** The service refused a request that only the holder of the place may send: another session holds it [PLACE3]. */
export function afterRefusal(event: ClientEventName, error: RingwireError, state: CallState): CallInput | undefined {
  const isOfHolder = event === 'call.connected' || event === 'call.media' || event.startsWith('webrtc.')
  const wasHolder = state.name !== 'ringing' || state.direction === 'outgoing'
  if (error.code !== 'CALL_NOT_PARTICIPANT' || !isOfHolder || !wasHolder) return undefined
  return { type: 'over', status: 'accepted', reason: ownReasons.elsewhere, error }
}
