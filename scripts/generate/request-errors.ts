/** Which request a code of `call.error` answers: what the decisions say of every situation, and what is refused before. */
import { type ClientEventName, clientEvents } from '@ringwire/protocol/client-events'
import type { ErrorCode } from '@ringwire/protocol/errors'
import { allowedActions } from '@ringwire/protocol/rest'
import { inviteRows } from './call-invites.ts'
import { lateRows, liveCalls, overCalls, requestRows } from './call-situations.ts'

const relays = ['webrtc.offer', 'webrtc.answer', 'webrtc.ice_candidate'] as const
const hangUps: readonly ClientEventName[] = ['call.reject', 'call.cancel', 'call.end', 'auth.refresh']

/** Errors that are not about a call: of the socket, of the message, of the service. */
export const beforeRequests = {
  'the upgrade': ['AUTH_TOKEN_REQUIRED', 'AUTH_TOKEN_INVALID', 'RATE_LIMITED', 'SERVICE_DRAINING'],
  'what is no envelope': ['INVALID_MESSAGE'],
  'an unknown event': ['UNKNOWN_EVENT'],
  'every request': ['INVALID_PAYLOAD', 'SERVICE_UNAVAILABLE', 'INTERNAL_ERROR'],
} as const satisfies Record<string, readonly ErrorCode[]>

/** Refusals outside of `decide` and `decideInvite` [WS5, WS6, REL2, EXT5, TAKE1]. */
const beside: Partial<Record<ClientEventName, readonly ErrorCode[]>> = {
  'call.invite': ['AUTH_TOKEN_INVALID', 'PAYLOAD_TOO_LARGE', 'GROUP_NOT_FOUND'],
  'call.accept': ['AUTH_TOKEN_INVALID'],
  'call.connected': ['AUTH_TOKEN_INVALID'],
  'call.stats': ['UNKNOWN_EVENT', 'CALL_NOT_FOUND', 'CALL_NOT_PARTICIPANT', 'CALL_INVALID_STATE'],
  'call.alerting': ['CALL_NOT_FOUND', 'CALL_NOT_PARTICIPANT', 'CALL_INVALID_STATE'],
  'call.take': ['UNKNOWN_EVENT', 'CALL_NOT_FOUND', 'CALL_INVALID_STATE', 'AUTH_TOKEN_INVALID', 'ACTION_NOT_ALLOWED'],
  'call.transfer': [
    ...(['UNKNOWN_EVENT', 'AUTH_TOKEN_INVALID', 'PAYLOAD_TOO_LARGE', 'ACTION_NOT_ALLOWED'] as const),
    ...(['CALL_PEER_ROLE_NOT_ALLOWED', 'CALL_TO_SELF', 'CALL_NOT_FOUND', 'CALL_NOT_PARTICIPANT'] as const),
    ...(['CALL_INVALID_STATE', 'NOT_SUPPORTED_BY_PEER', 'GROUP_NOT_FOUND', 'CALL_REFUSED', 'CALLEE_BUSY'] as const),
  ],
  'call.list': ['UNKNOWN_EVENT'],
  'presence.watch': ['UNKNOWN_EVENT', 'ACTION_NOT_ALLOWED'],
  'auth.refresh': ['UNKNOWN_EVENT', 'AUTH_TOKEN_INVALID'],
  ...Object.fromEntries(
    relays.map((event) => [event, ['AUTH_TOKEN_INVALID', 'PAYLOAD_TOO_LARGE', 'RELAY_BUFFER_FULL']]),
  ),
}

function decided(): Map<ClientEventName, Set<ErrorCode>> {
  const codes = new Map<ClientEventName, Set<ErrorCode>>()
  const add = (event: ClientEventName, code: ErrorCode) => codes.set(event, (codes.get(event) ?? new Set()).add(code))
  for (const { decision } of inviteRows()) if (!decision.ok) add('call.invite', decision.code)
  const rows = [...Object.values(liveCalls()).flatMap(requestRows), ...overCalls().flatMap(lateRows)]
  for (const { request, decision } of rows) {
    // A request of the tables may say more than its event: its reason, its time.
    const [name = ''] = request.split(',')
    const events = name === 'webrtc.*' ? relays : [name as ClientEventName]
    for (const event of events) {
      add(event, 'CALL_NOT_FOUND')
      if (!decision.ok) add(event, decision.code)
    }
  }
  return codes
}

/** Codes by request; those of every request are not repeated. */
export function requestErrors(): ReadonlyMap<ClientEventName, ReadonlySet<ErrorCode>> {
  const fromDecisions = decided()
  const permitted: readonly string[] = allowedActions
  return new Map(
    (Object.keys(clientEvents) as ClientEventName[]).map((event) => {
      const codes = new Set([...(fromDecisions.get(event) ?? []), ...(beside[event] ?? [])])
      if (permitted.includes(event)) codes.add('ACTION_NOT_ALLOWED')
      if (!hangUps.includes(event)) codes.add('RATE_LIMITED')
      return [event, codes]
    }),
  )
}
