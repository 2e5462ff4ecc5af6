/** GET /v1/call/ring, POST /v1/call/ring/reject, POST /v1/call/ring/alerting: with nothing but a ring ticket [TICK1]. */
import type { EndReasonOf } from '@ringwire/protocol/end-reasons'
import type { RingChanged, RingResponse } from '@ringwire/protocol/rest'
import { bearerToken } from '../auth/bearer.ts'
import type { Revoked } from '../auth/revoked.ts'
import { type RingTicket, type RingTickets, ticketSession } from '../auth/ring-ticket.ts'
import { type Call, isLive, type RingingCall, ringsAt, sideAbout } from '../call/call.ts'
import type { Actor } from '../call/command.ts'
import { ringsUntil } from '../call/effects.ts'
import { failure, json, retryAfter } from '../http/replies.ts'
import type { LocalLimits } from '../limits/limits.ts'
import type { CallStore } from '../ports/call-store.ts'
import type { Calls } from './calls.ts'

export interface RingDeps {
  readonly ringTickets: Pick<RingTickets, 'verify'>
  /** A participant whose tokens were revoked has no ticket any more either [SRV2]. */
  readonly isRevoked: Revoked['isRevoked']
  readonly localLimits: Pick<LocalLimits, 'participantRequest'>
  readonly store: Pick<CallStore, 'load'>
  readonly calls: Pick<Calls, 'rejectRinging' | 'alerting' | 'run'>
  readonly node: string
}

type Answer = (ticket: RingTicket) => Promise<Response>

export function createRingEndpoints(deps: RingDeps) {
  const { ringTickets, isRevoked, localLimits, store, calls, node } = deps

  const withTicket = (answer: Answer) => (request: Request) => {
    const token = bearerToken(request.headers.get('authorization'))
    if (token === undefined)
      return failure('AUTH_TOKEN_REQUIRED', { message: 'Send the ring ticket as "Authorization: Bearer <ticket>".' })
    const ticket = ringTickets.verify(token)
    if (ticket === undefined || isRevoked({ ...ticket, key: null }))
      return failure('AUTH_TOKEN_INVALID', { message: 'The ring ticket is invalid.' })
    const limit = localLimits.participantRequest(ticket.participant)
    if (!limit.ok) return failure('RATE_LIMITED', { headers: retryAfter(limit.retryAfterMs) })
    return ticket.isOver ? over(ticket) : answer(ticket)
  }

  /** If the ticket names another participant: nothing of the call shows. */
  async function load({ participant, callUuid }: RingTicket): Promise<Call | undefined> {
    const call = await store.load({ product: participant.product, callUuid })
    return call !== undefined && sideAbout(call, participant) === 'callee' ? call : undefined
  }
  const gone = async (ticket: RingTicket) => notRinging(await load(ticket))

  /** It asks when the ring ends, as the service itself does: the first of the two ends it. */
  async function over(ticket: RingTicket): Promise<Response> {
    const call = await load(ticket)
    if (call?.status !== 'ringing') return notRinging(call)
    const decision = await calls.run(call, { type: 'time' })
    return notRinging(decision.ok && decision.call.status !== 'ringing' ? decision.call : undefined)
  }

  return {
    ring: withTicket(async (ticket) => {
      const call = await load(ticket)
      if (call?.status !== 'ringing') return notRinging(call)
      // It rings at other members of the group.
      return ringsAt(call, ticket.participant) ? json(200, shown(call)) : notRinging(undefined)
    }),
    rejectRing: withTicket(async (ticket) => {
      const outcome = await calls.rejectRinging(actorOf(ticket, node), ticket.callUuid)
      return outcome.ok ? json(200, changed(ticket, 'rejected', 'declined')) : gone(ticket)
    }),
    alertRing: withTicket(async (ticket) => {
      const outcome = await calls.alerting(actorOf(ticket, node), ticket.callUuid)
      return outcome.ok ? json(200, changed(ticket, 'ringing', null)) : gone(ticket)
    }),
  }
}

/** A ticket stands for nobody who is connected: no session has this name, and none can hold a place by it. */
function actorOf({ participant, deviceId }: RingTicket, node: string): Actor {
  return { participant, sessionId: ticketSession(deviceId), deviceId, node, displayName: '' }
}

function shown(call: RingingCall): RingResponse {
  const { callUuid, caller, callType, contextType, contextId } = call
  return {
    call_uuid: callUuid,
    status: 'ringing',
    caller: { user_id: caller.userId, role: caller.role, display_name: caller.displayName ?? '' },
    call_type: callType,
    context_type: contextType,
    context_id: contextId,
    expires_at: new Date(ringsUntil(call)).toISOString(),
  }
}

function changed(
  { callUuid }: RingTicket,
  status: RingChanged['status'],
  endReason: EndReasonOf<'rejected'> | null,
): RingChanged {
  return { call_uuid: callUuid, status, end_reason: endReason }
}

function notRinging(call: Call | undefined): Response {
  const endReason = call === undefined || isLive(call) ? null : call.endReason
  return failure('CALL_NOT_RINGING', { details: { status: call?.status ?? null, end_reason: endReason } })
}
