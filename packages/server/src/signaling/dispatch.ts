import type { ClientEventName } from '@ringwire/protocol/client-events'
import type { ClientRequest, MessageParser, ParsedMessage, RequestNumber } from '@ringwire/protocol/envelope'
import { type ErrorBody, errorBody } from '@ringwire/protocol/errors'
import type { AuthRefreshed } from '@ringwire/protocol/events/auth'
import { readReason } from '@ringwire/protocol/events/call'
import type { PresenceState, PresenceWatch } from '@ringwire/protocol/events/presence'
import { type RelaySender, relaySender } from '@ringwire/protocol/relay-text'
import type { SessionClaims, Verification } from '../auth/tokens.ts'
import { sameParticipant } from '../call/call.ts'
import type { Calls } from '../calls/calls.ts'
import type { Quality } from '../calls/quality.ts'
import type { Relay } from '../calls/relay.ts'
import type { ClientSession, Waiter } from '../calls/request.ts'
import { andThen, type MaybePromise } from '../ports/maybe.ts'
import { StoreError } from '../ports/store-error.ts'
import type { Presence } from '../presence/presence.ts'
import { aboutRequest } from './about.ts'
import { type Answer, acknowledged, answered, encodeError, onlyExtended, refused, relayed, replyTo } from './answer.ts'
import { isUnlimited } from './rate-gate.ts'

/** A session as its connection knows it. */
export interface SignalingSession extends ClientSession {
  readonly displayName: string
  /** Of the token, in ms since the epoch. */
  readonly expiresAt: number
  /** When its token was issued, in ms since the epoch. */
  readonly issuedAt: number
  /** The tag of the product key that its token was issued with [KEY1]. */
  readonly key: string | null
  /** Connected with `?ext=1` [EXT1]. */
  readonly extended: boolean
  /** Of the token; null where it names none [SRV2]. */
  readonly appVersion?: string | null
  /** As its relays name it; made with the first message. */
  sender?: RelaySender
}

/** What the connection does about a message: it sends a reply, and counts malformed messages [ENV1]. */
export interface DispatchResult {
  readonly reply: string | undefined
  readonly malformed: boolean
  /** The number of the request, where it had one and took effect [EXT4]. */
  readonly n: number | undefined
  /** The reply says of a relay that it is in the receiver's log: that is to be saved first [EXT3]. */
  readonly isOfLog?: boolean
  /** The session goes on with a new token [WS5]. */
  readonly refreshed?: SessionClaims | undefined
  /** The next request has to wait for this, though the reply is there [ORD1]. */
  readonly handedOn?: Promise<void> | undefined
}

/** Why a message is not to take effect, whatever it says; `mayBeUnlimited`: unless it is one without a limit [WS7]. */
export interface Refusal {
  readonly error: ErrorBody
  readonly mayBeUnlimited: boolean
}

export interface Dispatch {
  /** `handled`: the last request of an extended session that took effect; it and those before it have none again. */
  handle(
    session: SignalingSession,
    text: string,
    handled: number,
    refusal?: Refusal,
    waiter?: Waiter,
  ): MaybePromise<DispatchResult>
  /**
   * The same for a client that is gone: it may have hung up before it went, and nothing else is done in its name. It has no
   * `n`: a client that comes back sends it again, with what it asked for before it [EXT4].
   */
  handleLast(session: SignalingSession, text: string, handled: number): MaybePromise<DispatchResult>
  /** What a request is about, as `aboutRequest` says; undefined where it is none. */
  aboutOf(text: string): readonly string[] | undefined
}

export interface DispatchOptions {
  readonly parse: MessageParser
  readonly calls: Calls
  readonly relay: Relay
  readonly quality: Pick<Quality, 'report'>
  readonly presence: Pick<Presence, 'watch' | 'restrict'>
  readonly isPresenceOpen: (product: string) => boolean
  readonly verify: (token: string) => Verification
  /** A session goes on with a token that is over then. */
  readonly renew: (session: SignalingSession, expiresAt: number) => void
  /** Wall clock, ms since the epoch. */
  readonly now: () => number
  readonly onError: (error: unknown, event: string) => void
  /** What a client asked for was answered, with an error where it was refused [LOG2]. */
  readonly onAnswered: (session: SignalingSession, asked: Asked | undefined, error: ErrorBody | undefined) => void
}

/** What a message asked for; its data where it was good. */
interface Asked {
  readonly event: string
  readonly data: object
}

const verbs = {
  'call.accept': 'accept',
  'call.connected': 'connected',
  'call.reject': 'reject',
  'call.cancel': 'cancel',
  'call.end': 'end',
} as const

const nothing: DispatchResult = { reply: undefined, malformed: false, n: undefined }

/** From a text to what happens and what is answered. Only the connection sends and closes. */
export function createDispatch(options: DispatchOptions): Dispatch {
  const { parse, calls, relay, quality, verify, renew, now, onError, onAnswered } = options
  const { presence, isPresenceOpen } = options

  function handle(session: SignalingSession, request: ClientRequest, waiter: Waiter | undefined): MaybePromise<Answer> {
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
        const { call_uuid, audio, video, screen } = request.data
        return andThen(
          relay.relay(session, request.event, { call_uuid, audio, video, screen }, numberOf(session, request), waiter),
          (result) => relayed(call_uuid.toLowerCase(), result),
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
      case 'call.accept':
      case 'call.connected':
        return calls.verb(session, verbs[request.event], request.data.call_uuid, null, waiter).then(acknowledged)
      case 'call.reject':
      case 'call.cancel':
      case 'call.end':
        return calls
          .verb(session, verbs[request.event], request.data.call_uuid, readReason(request.data.reason), waiter)
          .then(acknowledged)
      case 'call.alerting':
        return calls.alerting(session, request.data.call_uuid, numberOf(session, request)).then(acknowledged)
      case 'presence.watch':
        return watch(session, request.data)
      case 'auth.refresh':
        return refresh(session, request.data.token)
    }
  }

  /** A session may only watch its peers, and only if the product allows it [PRES1]. */
  function watch(session: SignalingSession, { participants }: PresenceWatch): MaybePromise<Answer> {
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
  function refresh(session: SignalingSession, token: string): Answer {
    if (!session.extended) return onlyExtended('auth.refresh')
    const verified = verify(token)
    if (!verified.ok) return refused('AUTH_TOKEN_INVALID')
    const { claims } = verified
    const same = sameParticipant(claims.participant, session.participant) && claims.deviceId === session.deviceId
    if (!same) return refused('AUTH_TOKEN_INVALID')
    // What the session has already, as a sign of life: nothing is new.
    if (claims.expiresAt !== session.expiresAt) renew(session, claims.expiresAt)
    // The new token may not allow it to watch the same participants any more [PRES1].
    presence.restrict(session, claims.allowedPeerRoles)
    const data: AuthRefreshed = { expires_at: new Date(claims.expiresAt).toISOString() }
    return { event: 'auth.refreshed', data, refreshed: claims }
  }

  function failed(error: unknown, event: string): Answer {
    onError(error, event)
    return refused(error instanceof StoreError ? 'SERVICE_UNAVAILABLE' : 'INTERNAL_ERROR')
  }

  function dispatch(
    message: ParsedMessage,
    session: SignalingSession,
    handled: number,
    refusal?: Refusal,
    waiter?: Waiter,
    isLast = false,
  ): MaybePromise<DispatchResult> {
    const ids = idsOf(message)
    const { requestId } = ids
    const n = typeof ids.n === 'number' ? ids.n : undefined
    const asked = message.kind === 'request' ? message.request : undefined
    if (session.extended && ids.n !== undefined) {
      if (n !== undefined && n <= handled) return nothing
      if (n !== handled + 1 && !isLast) {
        const error = misnumbered(handled + 1)
        onAnswered(session, asked, error)
        return { reply: encodeError(error, requestId), malformed: n === undefined, n: undefined }
      }
    }
    if (refusal !== undefined && !(refusal.mayBeUnlimited && asked !== undefined && isUnlimited(asked.event))) {
      onAnswered(session, asked, refusal.error)
      // Over the rate nobody judges what it was.
      return { reply: encodeError(refusal.error, requestId), malformed: false, n }
    }
    if (message.kind === 'ignored') return { ...nothing, n }
    if (message.kind === 'error') {
      onAnswered(session, askedBy(message), message.error)
      return { reply: encodeError(message.error, message.requestId), malformed: message.malformed, n }
    }
    const { request } = message
    const finish = (answer: Answer): DispatchResult => {
      onAnswered(session, request, 'error' in answer ? answer.error : undefined)
      const reply = replyTo(session.extended, request.requestId, answer)
      const result = { reply, malformed: false, n }
      if ('event' in answer) return { ...result, refreshed: answer.refreshed, handedOn: answer.handedOn }
      return reply !== undefined && 'ack' in answer && answer.isOfLog ? { ...result, isOfLog: true } : result
    }
    try {
      const ahead = isRelay(request.event) ? undefined : waiter?.ahead
      const answer =
        ahead === undefined ? handle(session, request, waiter) : ahead.done.then(() => handle(session, request, waiter))
      const safe = answer instanceof Promise ? answer.catch((error) => failed(error, request.event)) : answer
      return andThen(safe, finish)
    } catch (error) {
      return finish(failed(error, request.event))
    }
  }

  return {
    handle: (session, text, handled, refusal, waiter) =>
      dispatch(parse(text, senderOf(session)), session, handled, refusal, waiter),
    handleLast(session, text, handled) {
      const message = parse(text)
      if (message.kind !== 'request' || !isHangUp(message.request.event)) return nothing
      const done = dispatch(message, session, handled, undefined, undefined, true)
      return andThen(done, (result) => ({ ...result, n: undefined }))
    },
    aboutOf(text) {
      const message = parse(text)
      return message.kind === 'request' ? aboutRequest(message.request) : undefined
    },
  }
}

function senderOf(session: SignalingSession): RelaySender {
  const { userId, role } = session.participant
  session.sender ??= relaySender(userId, role)
  return session.sender
}

function idsOf(message: ParsedMessage): { n?: RequestNumber; requestId?: string | undefined } {
  return message.kind === 'request' ? message.request : message
}

/** The skipped message is lost or late. A later one must not take effect before it [EXT4]. */
function misnumbered(expected: number): ErrorBody {
  const message = `n must be ${expected}, one more than the last number that was used. Nothing was done.`
  return errorBody('INVALID_MESSAGE', { message, field: 'n', expected_n: expected })
}

/** Its data stays out: that is text of the client, unchecked [LOG1]. */
function askedBy({ event }: ParsedMessage & { kind: 'error' }): Asked | undefined {
  return event && { event, data: {} }
}

/** The number under which a request may come again [EXT4]. */
function numberOf({ extended }: SignalingSession, { n }: ClientRequest): number | undefined {
  return extended && typeof n === 'number' ? n : undefined
}

/** What another one may follow before it is answered [ORD1]. */
function isRelay(event: ClientEventName): boolean {
  return (
    event === 'webrtc.ice_candidate' || event === 'webrtc.offer' || event === 'webrtc.answer' || event === 'call.media'
  )
}

function isHangUp(event: ClientEventName): boolean {
  return event === 'call.end' || event === 'call.cancel' || event === 'call.reject'
}

const own: readonly ClientEventName[] = ['call.alerting', 'call.media', 'call.stats', 'presence.watch', 'auth.refresh']

/** What a token may permit or not; the rest is the session's own business. */
function isAction(event: ClientEventName): boolean {
  return !own.includes(event)
}
