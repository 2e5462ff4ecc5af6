import type { Capability } from '@ringwire/protocol/capabilities'
import type { ClientEventName } from '@ringwire/protocol/client-events'
import { type ErrorBody, type ErrorCode, errorBody } from '@ringwire/protocol/errors'
import type { CallAck } from '@ringwire/protocol/events/call'
import type { CallStatus } from '@ringwire/protocol/rest'
import type { SessionClaims } from '../auth/tokens.ts'
import type { Call } from '../call/call.ts'
import type { RelayResult } from '../calls/relay.ts'
import type { Outcome } from '../calls/request.ts'

/** What a request comes to: an error, a call's status for an acknowledgement, a whole reply, or nothing to say. */
export type Answer =
  | { readonly error: ErrorBody }
  | {
      readonly ack: { readonly callUuid: string; readonly status: string; readonly volatile?: true }
      readonly isOfLog?: boolean
    }
  | {
      readonly event: 'call.invited' | 'call.listed' | 'call.transfer_started' | 'presence.state' | 'auth.refreshed'
      readonly data: unknown
      readonly refreshed?: SessionClaims | undefined
      readonly handedOn?: Promise<void> | undefined
    }

/** A relay is acknowledged when it is in the peer's log; that has to be saved first [EXT3]. */
export function relayed(callUuid: string, result: RelayResult): Answer {
  if (typeof result === 'string') return { ack: { callUuid, status: result }, isOfLog: true }
  return answered(callUuid, result)
}

export function answered(callUuid: string, result: RelayResult): Answer {
  if (typeof result === 'string') return { ack: { callUuid, status: result } }
  return 'volatile' in result ? { ack: { callUuid, ...result } } : { error: result }
}

export function acknowledged(outcome: Outcome<Call>): Answer {
  return outcome.ok ? { ack: { callUuid: outcome.value.callUuid, status: outcome.value.status } } : outcome
}

export function refused(code: ErrorCode): Answer {
  return { error: errorBody(code) }
}

/** For a base session there is no such event. */
export function onlyExtended(event: ClientEventName): Answer {
  const message = `There is no such event: ${event}. Extended sessions have it: connect with ?ext=1.`
  return { error: errorBody('UNKNOWN_EVENT', { message }) }
}

/** For a session that did not list the capability there is no such event [EXT6]. */
export function onlyWith(capability: Capability, event: ClientEventName): Answer {
  const message = `There is no such event: ${event}. Connect with ?ext=1&can=${capability} for it.`
  return { error: errorBody('UNKNOWN_EVENT', { message }) }
}

/**
 * The text of an answer. Errors are always sent. A base inviter gets its reply, too, or it could not cancel [INV2]. An extended
 * session gets the replies to its requests that have a request_id [EXT2].
 */
export function replyTo(isExtended: boolean, requestId: string | undefined, answer: Answer): string | undefined {
  if ('error' in answer) return encodeError(answer.error, requestId)
  if (isExtended && requestId === undefined) return undefined
  if ('ack' in answer) {
    if (!isExtended) return undefined
    const { callUuid, status, ...more } = answer.ack
    const data: CallAck = { call_uuid: callUuid, status: status as CallStatus, ...more }
    return JSON.stringify({ event: 'call.ack', request_id: requestId, data })
  }
  return JSON.stringify({ event: answer.event, request_id: requestId, data: answer.data })
}

/** The error object twice: the interface can be read both ways [ENV2]. */
export function encodeError(error: ErrorBody, requestId: string | undefined): string {
  return JSON.stringify({ event: 'call.error', request_id: requestId, error, data: { error } })
}
