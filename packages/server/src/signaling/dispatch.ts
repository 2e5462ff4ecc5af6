import type { ClientEventName } from '@ringwire/protocol/client-events'
import type { ClientRequest, MessageParser, ParsedMessage, RequestNumber } from '@ringwire/protocol/envelope'
import { type ErrorBody, errorBody } from '@ringwire/protocol/errors'
import { type RelaySender, relaySender } from '@ringwire/protocol/relay-text'
import type { SessionClaims } from '../auth/tokens.ts'
import type { Waiter } from '../calls/request.ts'
import { andThen, type MaybePromise } from '../ports/maybe.ts'
import { StoreError } from '../ports/store-error.ts'
import { aboutRequest } from './about.ts'
import { type Answer, encodeError, refused, replyTo } from './answer.ts'
import { isUnlimited } from './rate-gate.ts'
import { createRequests, type RequestingSession, type RequestsOptions } from './requests.ts'

/** A session as its connection knows it. */
export interface SignalingSession extends RequestingSession {
  readonly displayName: string
  /** When its token was issued, in ms since the epoch. */
  readonly issuedAt: number
  /** The tag of the product key that its token was issued with [KEY1]. */
  readonly key: string | null
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
  /** The call that a text hangs up, in lower case. */
  hangUpOf(text: string): string | undefined
  /** Does what a text asks for before its turn [HOOK5]. Undefined: nothing was done, it has to wait for its turn. */
  handleEarly(session: SignalingSession, text: string, handled: number): MaybePromise<DispatchResult | undefined>
  /** The subjects of a request, as `aboutRequest` says; undefined if the text is not a request. */
  aboutOf(text: string): readonly string[] | undefined
}

export interface DispatchOptions extends RequestsOptions {
  readonly parse: MessageParser
  readonly onError: (error: unknown, event: string) => void
  /** A request of a client was answered, with an error if it was refused [LOG2]. */
  readonly onAnswered: (session: SignalingSession, asked: Asked | undefined, error: ErrorBody | undefined) => void
}

/** The request of a message; its data if it was good. */
interface Asked {
  readonly event: string
  readonly data: object
}

const nothing: DispatchResult = { reply: undefined, malformed: false, n: undefined }

/** From a text to what happens and what is answered. Only the connection sends and closes. */
export function createDispatch(options: DispatchOptions): Dispatch {
  const { parse, onError, onAnswered } = options
  const handle = createRequests(options)

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
    const taken = take(message, session, handled, refusal, isLast)
    if ('result' in taken) {
      if (taken.error !== undefined) onAnswered(session, taken.asked, taken.error)
      return taken.result
    }
    const { request, n } = taken
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
    hangUpOf(text) {
      const message = parse(text)
      if (message.kind !== 'request' || !isHangUp(message.request.event)) return undefined
      return aboutRequest(message.request)[0]
    },
    handleEarly(session, text, handled) {
      const message = parse(text, senderOf(session))
      if (message.kind !== 'request' || !isOfCall(message.request.event)) return undefined
      return dispatch(message, session, handled, undefined, undefined, true)
    },
    aboutOf(text) {
      const message = parse(text)
      return message.kind === 'request' ? aboutRequest(message.request) : undefined
    },
  }
}

/** The answer to a message that has no effect. */
interface NotTaken {
  readonly result: DispatchResult
  readonly asked?: Asked | undefined
  /** Undefined where nothing is wrong with it. */
  readonly error?: ErrorBody
}

/** The request of a message, where it is to take effect. */
function take(
  message: ParsedMessage,
  session: SignalingSession,
  handled: number,
  refusal: Refusal | undefined,
  isLast: boolean,
): { readonly request: ClientRequest; readonly n: number | undefined } | NotTaken {
  const ids = idsOf(message)
  const { requestId } = ids
  const n = typeof ids.n === 'number' ? ids.n : undefined
  const asked = message.kind === 'request' ? message.request : undefined
  if (session.extended && ids.n !== undefined) {
    if (n !== undefined && n <= handled) return { result: nothing }
    if (n !== handled + 1 && !isLast) {
      const error = misnumbered(handled + 1)
      const result = { reply: encodeError(error, requestId), malformed: n === undefined, n: undefined }
      return { result, asked, error }
    }
  }
  if (refusal !== undefined && !(refusal.mayBeUnlimited && asked !== undefined && isUnlimited(asked.event))) {
    // Over the rate nobody judges what it was.
    const { error } = refusal
    return { result: { reply: encodeError(error, requestId), malformed: false, n }, asked, error }
  }
  if (message.kind === 'ignored') return { result: { ...nothing, n } }
  if (message.kind === 'request') return { request: message.request, n }
  const { error, malformed } = message
  return { result: { reply: encodeError(error, requestId), malformed, n }, asked: askedBy(message), error }
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

/** An event that another one may follow before it is answered [ORD1]. */
function isRelay(event: ClientEventName): boolean {
  return (
    event === 'webrtc.ice_candidate' || event === 'webrtc.offer' || event === 'webrtc.answer' || event === 'call.media'
  )
}

function isHangUp(event: ClientEventName): boolean {
  return event === 'call.end' || event === 'call.cancel' || event === 'call.reject'
}

/** Events about a call that exists, which change nothing else. */
function isOfCall(event: ClientEventName): boolean {
  return isRelay(event) || isHangUp(event) || event === 'call.accept' || event === 'call.connected'
}
