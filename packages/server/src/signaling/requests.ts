import type { ClientEventName } from '@ringwire/protocol/client-events'
import type { ClientRequest } from '@ringwire/protocol/envelope'
import type { ActiveCall, AuthRefreshed, CallListed } from '@ringwire/protocol/events/auth'
import { readReason } from '@ringwire/protocol/events/call'
import type { PresenceState, PresenceWatch } from '@ringwire/protocol/events/presence'
import type { Verification } from '../auth/tokens.ts'
import { sameParticipant } from '../call/call.ts'
import type { ReadActiveCalls } from '../calls/active-calls.ts'
import type { Calls } from '../calls/calls.ts'
import type { Quality } from '../calls/quality.ts'
import type { Relay } from '../calls/relay.ts'
import type { ClientSession, Waiter } from '../calls/request.ts'
import { andThen, type MaybePromise } from '../ports/maybe.ts'
import type { Presence } from '../presence/presence.ts'
import { type Answer, acknowledged, answered, onlyExtended, onlyWith, refused, relayed } from './answer.ts'

/** A session as its requests know it. */
export interface RequestingSession extends ClientSession {
  /** Of the token, in ms since the epoch. */
  readonly expiresAt: number
  /** Connected with `?ext=1` [EXT1]. */
  readonly extended: boolean
}

export interface RequestsOptions {
  readonly calls: Calls
  readonly relay: Relay
  readonly activeCalls: ReadActiveCalls
  readonly quality: Pick<Quality, 'report'>
  readonly presence: Pick<Presence, 'watch' | 'restrict'>
  readonly isPresenceOpen: (product: string) => boolean
  readonly verify: (token: string) => Verification
  /** A session goes on with a token that is over then. */
  readonly renew: (session: RequestingSession, expiresAt: number) => void
  /** Wall clock, ms since the epoch. */
  readonly now: () => number
}

const verbs = {
  'call.accept': 'accept',
  'call.connected': 'connected',
  'call.reject': 'reject',
  'call.cancel': 'cancel',
  'call.end': 'end',
} as const

export type HandleRequest = (
  session: RequestingSession,
  request: ClientRequest,
  waiter: Waiter | undefined,
) => MaybePromise<Answer>

/** The effect of each request, and its answer. */
export function createRequests(options: RequestsOptions): HandleRequest {
  const { calls, relay, quality, activeCalls, now } = options

  return (session, request, waiter) => {
    if (isAction(request.event) && !session.allowedActions.includes(request.event)) return refused('ACTION_NOT_ALLOWED')
    switch (request.event) {
      case 'webrtc.ice_candidate':
      case 'webrtc.offer':
      case 'webrtc.answer':
        return andThen(
          relay.relay(session, request.event, request.data, numberOf(session, request), waiter, request.passedOn),
          (result) => relayed(request.data.call_uuid, result),
        )
      case 'call.media': {
        const { call_uuid, audio, video, screen, held } = request.data
        const said = { call_uuid, audio, video, screen, ...(held !== undefined && { held }) }
        return andThen(relay.relay(session, request.event, said, numberOf(session, request), waiter), (result) =>
          relayed(call_uuid.toLowerCase(), result),
        )
      }
      case 'call.stats':
        if (!session.extended) return onlyExtended('call.stats')
        return quality
          .report(session, request.data)
          .then((result) => answered(request.data.call_uuid.toLowerCase(), result))
      case 'call.invite':
        // A call may outlive its token, but none begins after it [WS5].
        if (now() >= session.expiresAt) return refused('AUTH_TOKEN_INVALID')
        return calls.invite(session, request.data, waiter).then((outcome) => {
          if (!outcome.ok) return outcome
          return { event: 'call.invited', data: outcome.value, handedOn: outcome.handedOn }
        })
      case 'call.transfer':
        if (!session.extended) return onlyExtended('call.transfer')
        if (now() >= session.expiresAt) return refused('AUTH_TOKEN_INVALID')
        return calls.transfer(session, request.data, waiter).then((outcome) => {
          if (!outcome.ok) return outcome
          return { event: 'call.transfer_started', data: outcome.value, handedOn: outcome.handedOn }
        })
      case 'call.accept':
      case 'call.connected':
        return calls.verb(session, verbs[request.event], request.data.call_uuid, null, waiter).then(acknowledged)
      case 'call.reject':
      case 'call.cancel':
      case 'call.end':
        return calls
          .verb(session, verbs[request.event], request.data.call_uuid, readReason(request.data.reason), waiter)
          .then(acknowledged)
      case 'call.take':
        if (!session.can?.includes('take')) return onlyWith('take', 'call.take')
        return calls.take(session, request.data.call_uuid, waiter).then(acknowledged)
      case 'call.list':
        if (!session.can?.includes('take')) return onlyWith('take', 'call.list')
        return activeCalls(session).then(listed)
      case 'call.alerting':
        return calls.alerting(session, request.data.call_uuid, numberOf(session, request)).then(acknowledged)
      case 'presence.watch':
        return watch(options, session, request.data)
      case 'auth.refresh':
        return refresh(options, session, request.data.token)
    }
  }
}

function listed(calls: readonly ActiveCall[]): Answer {
  const data: CallListed = { active_calls: [...calls] }
  return { event: 'call.listed', data }
}

/** A session may only watch its peers, and only if the product allows it [PRES1]. */
function watch(
  { presence, isPresenceOpen }: RequestsOptions,
  session: RequestingSession,
  { participants }: PresenceWatch,
): MaybePromise<Answer> {
  if (!session.extended) return onlyExtended('presence.watch')
  const { product } = session.participant
  const arePeers = participants.every(({ role }) => session.allowedPeerRoles.includes(role))
  if (!isPresenceOpen(product) || !arePeers) return refused('ACTION_NOT_ALLOWED')
  const watched = participants.map(({ role, user_id: userId }) => ({ product, role, userId }))
  return presence.watch(session, watched).then((found) => {
    if (!found.ok) return found
    const data: PresenceState = { participants: found.participants }
    return { event: 'presence.state', data }
  })
}

/** A new token of the same participant and device [WS5]. */
function refresh({ verify, renew, presence }: RequestsOptions, session: RequestingSession, token: string): Answer {
  if (!session.extended) return onlyExtended('auth.refresh')
  const verified = verify(token)
  if (!verified.ok) return refused('AUTH_TOKEN_INVALID')
  const { claims } = verified
  const same = sameParticipant(claims.participant, session.participant) && claims.deviceId === session.deviceId
  if (!same) return refused('AUTH_TOKEN_INVALID')
  // The token that the session has already, as a sign of life: nothing is new.
  if (claims.expiresAt !== session.expiresAt) renew(session, claims.expiresAt)
  // The new token may not allow it to watch the same participants any more [PRES1].
  presence.restrict(session, claims.allowedPeerRoles)
  const data: AuthRefreshed = { expires_at: new Date(claims.expiresAt).toISOString() }
  return { event: 'auth.refreshed', data, refreshed: claims }
}

/** The number under which a request may come again [EXT4]. */
function numberOf({ extended }: RequestingSession, { n }: ClientRequest): number | undefined {
  return extended && typeof n === 'number' ? n : undefined
}

const own: readonly ClientEventName[] = [
  'call.take',
  'call.list',
  'call.alerting',
  'call.media',
  'call.stats',
  'presence.watch',
  'auth.refresh',
  // It needs what an invite does, and checks that itself.
  'call.transfer',
]

/** Whether a token may permit the event or not; the others are the session's own business. */
function isAction(event: ClientEventName): boolean {
  return !own.includes(event)
}
