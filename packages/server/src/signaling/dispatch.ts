import type { ClientRequest, ParsedMessage } from '@ringwire/protocol/envelope'
import { type ErrorBody, errorBody } from '@ringwire/protocol/errors'
import type { Calls, Outcome } from '../calls.ts'
import { andThen, type MaybePromise } from '../maybe.ts'
import { StoreError } from '../ports.ts'
import type { Relay, RelaySender } from '../relay.ts'

/** A session as its connection knows it. */
export interface SignalingSession extends RelaySender {
  readonly displayName: string
  /** Of the token, in ms since the epoch. */
  readonly expiresAt: number
}

/** What the connection has to do about a message: send a reply, and count the malformed ones [ENV1]. */
export interface DispatchResult {
  readonly reply: string | undefined
  readonly malformed: boolean
}

export interface Dispatch {
  handle(session: SignalingSession, text: string): MaybePromise<DispatchResult>
  /** The reply to a message that is not even looked at, for a reason of the connection's. */
  refuse(text: string, error: ErrorBody): string
}

export interface DispatchOptions {
  readonly parse: (text: string) => ParsedMessage
  readonly calls: Calls
  readonly relay: Relay
  /** Wall clock, ms since the epoch. */
  readonly now: () => number
  readonly onError: (error: unknown, event: string) => void
}

const nothing: DispatchResult = { reply: undefined, malformed: false }

/** From a text to what happens and what is answered. It never sends and never closes: the connection does. */
export function createDispatch(options: DispatchOptions): Dispatch {
  const { parse, calls, relay, now, onError } = options

  function handle(session: SignalingSession, request: ClientRequest): MaybePromise<ErrorBody | string | undefined> {
    if (!session.allowedActions.includes(request.event)) return errorBody('ACTION_NOT_ALLOWED')
    switch (request.event) {
      case 'webrtc.ice_candidate':
      case 'webrtc.offer':
      case 'webrtc.answer':
        return relay.relay(session, request.event, request.data)
      case 'call.invite':
        // A call may outlive its token, but none begins after it [WS5].
        if (now() >= session.expiresAt) return errorBody('AUTH_TOKEN_INVALID')
        return calls.invite(session, request.data).then((outcome) => invitedReply(outcome, request.requestId))
      case 'call.accept':
        return calls.verb(session, 'accept', request.data.call_uuid, null).then(errorOf)
      case 'call.connected':
        return calls.verb(session, 'connected', request.data.call_uuid, null).then(errorOf)
      case 'call.reject':
        return calls.verb(session, 'reject', request.data.call_uuid, request.data.reason ?? null).then(errorOf)
      case 'call.cancel':
        return calls.verb(session, 'cancel', request.data.call_uuid, request.data.reason ?? null).then(errorOf)
      case 'call.end':
        return calls.verb(session, 'end', request.data.call_uuid, request.data.reason ?? null).then(errorOf)
    }
  }

  function failed(error: unknown, event: string): ErrorBody {
    if (error instanceof StoreError) return errorBody('SERVICE_UNAVAILABLE')
    onError(error, event)
    return errorBody('INTERNAL_ERROR')
  }

  function dispatch(session: SignalingSession, text: string): MaybePromise<DispatchResult> {
    const message = parse(text)
    if (message.kind === 'ignored') return nothing
    if (message.kind === 'error') {
      return { reply: encodeError(message.error, message.requestId), malformed: message.malformed }
    }
    const { request } = message
    const finish = (answer: ErrorBody | string | undefined): DispatchResult => {
      if (answer === undefined) return nothing
      const reply = typeof answer === 'string' ? answer : encodeError(answer, request.requestId)
      return { reply, malformed: false }
    }
    try {
      const answer = handle(session, request)
      const safe = answer instanceof Promise ? answer.catch((error) => failed(error, request.event)) : answer
      return andThen(safe, finish)
    } catch (error) {
      return finish(failed(error, request.event))
    }
  }

  return {
    handle: dispatch,
    refuse(text, error) {
      const message = parse(text)
      if (message.kind === 'ignored') return encodeError(error, undefined)
      return encodeError(error, message.kind === 'error' ? message.requestId : message.request.requestId)
    },
  }
}

function errorOf(outcome: Outcome<unknown>): ErrorBody | undefined {
  return outcome.ok ? undefined : outcome.error
}

/** In both modes the inviter learns the call_uuid: without it, it could not cancel [INV2]. */
function invitedReply(outcome: Outcome<unknown>, requestId: string | undefined): ErrorBody | string {
  if (!outcome.ok) return outcome.error
  return JSON.stringify({ event: 'call.invited', request_id: requestId, data: outcome.value })
}

/** The error object twice: the interface can be read both ways [ENV2]. */
export function encodeError(error: ErrorBody, requestId: string | undefined): string {
  return JSON.stringify({ event: 'call.error', request_id: requestId, error, data: { error } })
}
