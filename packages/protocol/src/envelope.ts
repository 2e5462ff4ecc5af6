import Type, { type Static } from 'typebox'
import { type ClientEventName, clientEvents } from './client-events.ts'
import { type ErrorBody, type ErrorCode, errorBody } from './errors.ts'
import { inviteLimits } from './events/call.ts'
import { relayLimits } from './events/webrtc.ts'
import { fitsBytes, utf8Length } from './text.ts'
import { createValidator } from './validate.ts'

/** Bounds of a message [WS6]. */
export const messageLimits = { messageBytes: 64 * 1024, requestIdLength: 128 } as const

export const Envelope = Type.Object({
  event: Type.String({ description: 'Event name.' }),
  request_id: Type.Optional(Type.String({ maxLength: messageLimits.requestIdLength })),
  data: Type.Optional(Type.Object({}, { description: 'Event payload.' })),
})

type DataOf<E extends ClientEventName> = Static<(typeof clientEvents)[E]>

/** A request that passed every check that needs no knowledge of calls. */
export type ClientRequest = {
  [E in ClientEventName]: { event: E; requestId: string | undefined; data: DataOf<E> }
}[ClientEventName]

export type ParsedMessage =
  | { kind: 'request'; request: ClientRequest }
  /** A bare `ping` or an empty text: nothing to do [ENV1]. */
  | { kind: 'ignored' }
  /** `malformed` counts towards the ten in a row that close the socket [ENV1]. */
  | { kind: 'error'; malformed: boolean; requestId: string | undefined; error: ErrorBody }

function failure(code: ErrorCode, requestId: string | undefined, details: Parameters<typeof errorBody>[1] = {}) {
  const error = errorBody(code, details)
  return { kind: 'error', malformed: code === 'INVALID_MESSAGE', requestId, error } as const
}

/** Builds the parser of client messages; schemas are compiled here, once. */
export function createMessageParser(): (text: string) => ParsedMessage {
  const validators = new Map(
    Object.entries(clientEvents).map(([event, schema]) => [event, createValidator(schema)] as const),
  )

  return (text) => {
    if (text === '' || text === 'ping') return { kind: 'ignored' }
    const envelope = parseObject(text)
    if (envelope === undefined) return failure('INVALID_MESSAGE', undefined)

    const { event, request_id: rawId, data: rawData } = envelope
    const requestId = typeof rawId === 'string' ? rawId : undefined
    if (requestId !== undefined && requestId.length > messageLimits.requestIdLength) {
      return failure('INVALID_MESSAGE', undefined, { field: 'request_id' })
    }
    if (rawId != null && requestId === undefined) {
      return failure('INVALID_MESSAGE', undefined, { field: 'request_id' })
    }
    if (typeof event !== 'string') return failure('INVALID_MESSAGE', requestId, { field: 'event' })
    const data = rawData ?? {}
    if (!isObject(data)) return failure('INVALID_MESSAGE', requestId, { field: 'data' })

    const validate = validators.get(event)
    if (validate === undefined) return failure('UNKNOWN_EVENT', requestId)
    const oversize = oversizeField(event as ClientEventName, data)
    if (oversize !== undefined) return failure('PAYLOAD_TOO_LARGE', requestId, { field: oversize })
    const checked = validate(data)
    if (!checked.ok) {
      const message = `${checked.field === '' ? 'data' : checked.field} ${checked.message}`
      return failure('INVALID_PAYLOAD', requestId, { field: checked.field, message })
    }
    return { kind: 'request', request: { event, requestId, data } as ClientRequest }
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** JSON.parse throws on bad text, and on text nested deeper than its stack. */
function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** Sizes have a code of their own, so they are looked at before the shape [WS6, INV1]. */
function oversizeField(event: ClientEventName, data: Record<string, unknown>): string | undefined {
  switch (event) {
    case 'webrtc.offer':
    case 'webrtc.answer': {
      const text = isObject(data.sdp) ? data.sdp.sdp : undefined
      return typeof text === 'string' && !fitsBytes(text, relayLimits.sdpBytes) ? 'sdp.sdp' : undefined
    }
    case 'webrtc.ice_candidate': {
      const text = isObject(data.candidate) ? data.candidate.candidate : undefined
      return typeof text === 'string' && !fitsBytes(text, relayLimits.candidateBytes)
        ? 'candidate.candidate'
        : undefined
    }
    case 'call.invite':
      return isObject(data.metadata) && jsonBytes(data.metadata) > inviteLimits.metadataBytes ? 'metadata' : undefined
    default:
      return undefined
  }
}

/** Bytes of a value as JSON; infinite where it is nested too deep to be written again. */
function jsonBytes(value: object): number {
  try {
    return utf8Length(JSON.stringify(value))
  } catch {
    return Number.POSITIVE_INFINITY
  }
}
