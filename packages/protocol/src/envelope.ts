import Type, { type Static } from 'typebox'
import { type ClientEventName, clientEvents } from './client-events.ts'
import { type ErrorBody, type ErrorCode, errorBody } from './errors.ts'
import { inviteLimits } from './events/call.ts'
import { relayLimits } from './events/webrtc.ts'
import { isNestedDeeper } from './nesting.ts'
import { fitsBytes, utf8Length } from './text.ts'
import { createValidator, type FieldProblem } from './validate.ts'

/** Bounds of a message [WS6]. */
export const messageLimits = { messageBytes: 64 * 1024, requestIdBytes: 128, depth: 1000 } as const

export const Envelope = Type.Object({
  event: Type.String({ description: 'Event name.' }),
  request_id: Type.Optional(
    Type.String({
      maxLength: messageLimits.requestIdBytes,
      description: `Chosen by the client, at most ${messageLimits.requestIdBytes} bytes of UTF-8; a reply carries it.`,
    }),
  ),
  n: Type.Optional(Type.Integer({ minimum: 1, description: 'Number of the request in an extended session [EXT4].' })),
  data: Type.Optional(Type.Object({}, { description: 'Event payload.' })),
})

type DataOf<E extends ClientEventName> = Static<(typeof clientEvents)[E]>

/** A request that passed every check that needs no knowledge of calls. */
export type ClientRequest = {
  [E in ClientEventName]: { event: E; requestId: string | undefined; n: number | undefined; data: DataOf<E> }
}[ClientEventName]

export type ParsedMessage =
  | { kind: 'request'; request: ClientRequest }
  /** A bare `ping` or an empty text: nothing to do [ENV1]. */
  | { kind: 'ignored' }
  /** `malformed` counts towards the ten in a row that close the socket [ENV1]; `event`: where its data alone is wrong. */
  | {
      kind: 'error'
      malformed: boolean
      event: ClientEventName | undefined
      requestId: string | undefined
      n: number | undefined
      error: ErrorBody
    }

/** Messages name the field and what it must be, and never hold what was sent [LOG1]. */
function failure(
  code: ErrorCode,
  requestId: string | undefined,
  n: number | undefined,
  problem?: FieldProblem,
  event?: ClientEventName,
) {
  const details = problem && { field: problem.field, message: `${problem.field || 'data'} ${problem.message}` }
  const malformed = code === 'INVALID_MESSAGE'
  return { kind: 'error', malformed, event, requestId, n, error: errorBody(code, details) } as const
}

const requestIdProblem: FieldProblem = {
  field: 'request_id',
  message: `must be a string of at most ${messageLimits.requestIdBytes} bytes`,
}
const eventProblem: FieldProblem = { field: 'event', message: 'must be a string' }
const dataProblem: FieldProblem = { field: 'data', message: 'must be an object' }

/** Builds the parser of client messages; schemas are compiled here, once. */
export function createMessageParser(): (text: string) => ParsedMessage {
  const validators = new Map(
    Object.entries(clientEvents).map(([event, schema]) => [event, createValidator(schema)] as const),
  )

  return (text) => {
    if (text === '' || text === 'ping') return { kind: 'ignored' }
    const envelope = parseObject(text)
    if (envelope === undefined) return failure('INVALID_MESSAGE', undefined, undefined)

    const { event, request_id: rawId, n: rawN, data: rawData } = envelope
    const n = typeof rawN === 'number' && Number.isSafeInteger(rawN) && rawN > 0 ? rawN : undefined
    const requestId = typeof rawId === 'string' && fitsBytes(rawId, messageLimits.requestIdBytes) ? rawId : undefined
    if (rawId != null && requestId === undefined) return failure('INVALID_MESSAGE', undefined, n, requestIdProblem)
    if (typeof event !== 'string') return failure('INVALID_MESSAGE', requestId, n, eventProblem)
    const data = rawData ?? {}
    if (!isObject(data)) return failure('INVALID_MESSAGE', requestId, n, dataProblem)

    const validate = validators.get(event)
    if (validate === undefined) return failure('UNKNOWN_EVENT', requestId, n)
    const known = event as ClientEventName
    const oversize = oversizeProblem(known, data)
    if (oversize !== undefined) return failure('PAYLOAD_TOO_LARGE', requestId, n, oversize, known)
    const checked = validate(data)
    if (!checked.ok) return failure('INVALID_PAYLOAD', requestId, n, checked, known)
    return { kind: 'request', request: { event, requestId, n, data } as ClientRequest }
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** What is nested deep is read in no time, and takes a third of a second to be written again. */
function parseObject(text: string): Record<string, unknown> | undefined {
  if (isNestedDeeper(text, messageLimits.depth)) return undefined
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** Sizes have a code of their own, so they are looked at before the shape [WS6, INV1]. */
function oversizeProblem(event: ClientEventName, data: Record<string, unknown>): FieldProblem | undefined {
  switch (event) {
    case 'webrtc.offer':
    case 'webrtc.answer': {
      const text = isObject(data.sdp) ? data.sdp.sdp : undefined
      const fits = typeof text !== 'string' || fitsBytes(text, relayLimits.sdpBytes)
      return fits ? undefined : tooLarge('sdp.sdp', relayLimits.sdpBytes)
    }
    case 'webrtc.ice_candidate': {
      const text = isObject(data.candidate) ? data.candidate.candidate : undefined
      const fits = typeof text !== 'string' || fitsBytes(text, relayLimits.candidateBytes)
      return fits ? undefined : tooLarge('candidate.candidate', relayLimits.candidateBytes)
    }
    case 'call.invite': {
      const fits = !isObject(data.metadata) || jsonBytes(data.metadata) <= inviteLimits.metadataBytes
      return fits ? undefined : tooLarge('metadata', inviteLimits.metadataBytes)
    }
    default:
      return undefined
  }
}

function tooLarge(field: string, bytes: number): FieldProblem {
  return { field, message: `must have at most ${bytes} bytes` }
}

/** Bytes of a value as JSON; infinite where it is nested too deep to be written again. */
function jsonBytes(value: object): number {
  try {
    return utf8Length(JSON.stringify(value))
  } catch {
    return Number.POSITIVE_INFINITY
  }
}
