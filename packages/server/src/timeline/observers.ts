import type { Call } from '../call/call.ts'
import type { Asked as InviteAsked } from '../invite-hook/invite-hook.ts'
import type { CalleeDevices } from '../push/asleep.ts'
import type { Sent, SentResult } from '../push/sender.ts'
import type { Attempt, DeliveryResult } from '../webhooks/attempts.ts'
import type { Recorder } from './recorder.ts'

/** Writes down what became of pushes and webhooks in the timelines of their calls [TRACE1]. */
export interface Observers {
  /** No device of the callee's could be woken. */
  noDevice(call: Call, found: CalleeDevices): void
  /** A call began to ring at `count` members of a group; devices of `woken` members were woken. */
  members(call: Call, count: number, woken: number): void
  pushed(result: SentResult, reason: string, sent: Sent): void
  hooked(result: DeliveryResult, attempt: Attempt): void
  /** A question about the invite went to the backend. */
  inviteAsked(asked: InviteAsked): void
}

export function createObservers(recorder: Pick<Recorder, 'record'>): Observers {
  return {
    noDevice({ product, callUuid }, { connected, registered }) {
      const detail = { connected, registered }
      recorder.record({ product, callUuid }, { what: 'no_device', side: 'callee', detail })
    },
    // It does not say who they are: only the member who answers is kept.
    members: ({ product, callUuid }, members, woken) =>
      recorder.record({ product, callUuid }, { what: 'members', side: null, detail: { members, woken } }),
    pushed(result, reason, { device: { participant, deviceId, address }, message, afterMs }) {
      const { type, callUuid } = message
      const detail = { type, platform: address.platform, result, reason, after_ms: afterMs }
      const member = participant.userId
      const ref = { product: participant.product, callUuid }
      recorder.record(ref, { what: 'push', side: 'callee', deviceId, member, detail })
    },
    inviteAsked({ question: { product, callUuid, decider }, result, afterMs }) {
      const detail = { result, after_ms: afterMs, ...(result === 'failed' && { instead: decider.failure }) }
      recorder.record({ product, callUuid }, { what: 'invite_hook', side: null, detail })
    },
    // It does not have the answer: that is the endpoint's, and an error may name addresses.
    hooked(result, { delivery, endpoint, status, afterMs }) {
      const { subject, type, attempts } = delivery
      if (!type.startsWith('call.')) return
      const detail = { type, endpoint: endpoint.id, result, status, attempt: attempts + 1, after_ms: afterMs }
      recorder.record({ product: endpoint.product, callUuid: subject }, { what: 'webhook', side: null, detail })
    },
  }
}
