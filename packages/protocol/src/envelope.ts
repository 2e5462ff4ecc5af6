import Type, { type Static } from 'typebox'
import { type ClientEventName, clientEvents } from './client-events.ts'
import { type ErrorBody, type ErrorCode, errorBody, errors } from './errors.ts'
import { inviteLimits } from './events/call.ts'
import { relayLimits } from './events/webrtc.ts'
import { isNestedDeeper } from './nesting.ts'
import { type RelayEnvelope, type RelaySender, type RelayTextProblem, relayText } from './relay-text.ts'
import { fitsBytes, isStorable, jsonBytes } from './text.ts'
import { readUsualCandidate } from './usual-candidate.ts'
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

/**
 * The number of a request in an extended session; `invalid`: what stands there is no whole number of at least 1. A base
 * session has none, whatever it sends [EXT4].
 */
export type RequestNumber = number | 'invalid' | undefined

/** A request that passed every check that needs no knowledge of calls. */
export type ClientRequest = {
  [E in ClientEventName]: {
    event: E
    requestId: string | undefined
    n: RequestNumber
    data: DataOf<E>
    /** Of a relay whose sender is known: the event as the peer gets it [REL4]. */
    passedOn?: string
  }
}[ClientEventName]

export type ParsedMessage =
  | { kind: 'request'; request: ClientRequest }
  /** A heartbeat: nothing to do [ENV1]. */
  | { kind: 'ignored'; n: RequestNumber }
  /** `malformed` counts towards the ten in a row that close the socket [ENV1]; `event`: where its data alone is wrong. */
  | {
      kind: 'error'
      malformed: boolean
      event: ClientEventName | undefined
      requestId: string | undefined
      n: RequestNumber
      error: ErrorBody
    }

/** Messages name the field and what it must be, and never hold what was sent [LOG1]. */
function failure(
  code: ErrorCode,
  requestId: string | undefined,
  n: RequestNumber,
  problem?: FieldProblem,
  event?: ClientEventName,
) {
  const details = problem && { field: problem.field, message: `${problem.field || 'data'} ${problem.message}` }
  const malformed = code === 'INVALID_MESSAGE'
  return { kind: 'error', malformed, event, requestId, n, error: errorBody(code, details) } as const
}

const requestIdProblem: FieldProblem = {
  field: 'request_id',
  message: `must be a string of at most ${messageLimits.requestIdBytes} bytes, without NUL or lone surrogates`,
}
const eventProblem: FieldProblem = { field: 'event', message: 'must be a string' }
const dataProblem: FieldProblem = { field: 'data', message: 'must be an object' }

/** `sender`: of relays. Without it their text is not made, nor looked at. */
export type MessageParser = (text: string, sender?: RelaySender) => ParsedMessage

/** Builds the parser of client messages; schemas are compiled here, once. */
export function createMessageParser(): MessageParser {
  const validators = new Map(
    Object.entries(clientEvents).map(([event, schema]) => [event, createValidator(schema)] as const),
  )

  return (message, sender) => {
    const usual = sender && readUsualCandidate(message, sender)
    if (usual !== undefined) return { kind: 'request', request: usual }
    const text = message.charCodeAt(0) === byteOrderMark ? message.slice(1) : message
    if (text === '' || text === 'ping') return { kind: 'ignored', n: undefined }
    const envelope = parseObject(text)
    if (envelope === undefined) return failure('INVALID_MESSAGE', undefined, undefined)

    const { event, request_id: rawId, data: rawData } = envelope
    const n = numberOf(envelope.n)
    if (isHeartbeat(envelope)) return { kind: 'ignored', n }
    const requestId = isRequestId(rawId) ? rawId : undefined
    if (rawId != null && requestId === undefined) return failure('INVALID_MESSAGE', undefined, n, requestIdProblem)
    if (typeof event !== 'string') return failure('INVALID_MESSAGE', requestId, n, eventProblem)
    const data = rawData ?? {}
    if (!isObject(data)) return failure('INVALID_MESSAGE', requestId, n, dataProblem)

    const validate = validators.get(event)
    if (validate === undefined) return unknownEvent(event, requestId, n)
    const known = event as ClientEventName
    const oversize = oversizeProblem(known, data)
    if (oversize !== undefined) return failure('PAYLOAD_TOO_LARGE', requestId, n, oversize, known)
    const checked = validate(data)
    if (!checked.ok) return failure('INVALID_PAYLOAD', requestId, n, checked, known)
    const unnamed = unnamedProblem(known, data)
    if (unnamed !== undefined) return failure('INVALID_PAYLOAD', requestId, n, unnamed, known)
    if (sender === undefined || !isRelayed(known))
      return { kind: 'request', request: { event, requestId, n, data } as ClientRequest }
    const relay = relayText(text, envelope as unknown as RelayEnvelope, sender, messageLimits.depth)
    if (!relay.ok) return failure('INVALID_PAYLOAD', requestId, n, relayProblems[relay.problem], known)
    return { kind: 'request', request: { event, requestId, n, data, passedOn: relay.text } as ClientRequest }
  }
}

const byteOrderMark = 0xfeff

/** Events that pass on to the peer. */
function isRelayed(event: ClientEventName): boolean {
  return event.startsWith('webrtc.') || event === 'call.media'
}

const relayProblems: Readonly<Record<RelayTextProblem, FieldProblem>> = {
  repeated: { field: 'data', message: 'must not name a key twice in one object' },
  'repeated outside': { field: 'data', message: 'and the members beside it must not be named twice' },
  text: { field: 'data', message: 'must not hold NUL or a lone surrogate' },
  syntax: dataProblem,
  depth: { field: 'data', message: `must not be nested deeper than ${messageLimits.depth} levels` },
}

/** A text that could be an event. Other text is not repeated: it may be a token, or worse, in the wrong place [LOG1]. */
const eventName = /^[a-z][a-z_]{0,31}(\.[a-z_]{1,32})?$/

function unknownEvent(event: string, requestId: string | undefined, n: RequestNumber): ParsedMessage {
  const message = eventName.test(event) ? `There is no such event: ${event}.` : errors.UNKNOWN_EVENT.message
  const error = errorBody('UNKNOWN_EVENT', { message })
  return { kind: 'error', malformed: false, event: undefined, requestId, n, error }
}

/** `{"type":"ping"}` and `{"event":"ping"}`, as libraries send them by themselves, with whatever else they put in. */
function isHeartbeat({ event, type }: Record<string, unknown>): boolean {
  return event === 'ping' || (event == null && type === 'ping')
}

/** null counts as absent, as it does for the other members. */
function numberOf(value: unknown): RequestNumber {
  if (value == null) return undefined
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : 'invalid'
}

function isRequestId(value: unknown): value is string {
  return typeof value === 'string' && fitsBytes(value, messageLimits.requestIdBytes) && isStorable(value)
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Deep nesting is read in no time, and takes a third of a second to be written again. */
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
    case 'call.invite':
    case 'call.transfer': {
      const fits = !isObject(data.metadata) || jsonBytes(data.metadata) <= inviteLimits.metadataBytes
      return fits ? undefined : tooLarge('metadata', inviteLimits.metadataBytes)
    }
    default:
      return undefined
  }
}

/** A person or a group is called, or a call is transferred to another one: exactly one has to be named [GROUP1, XFER1]. */
function unnamedProblem(event: ClientEventName, data: Record<string, unknown>): FieldProblem | undefined {
  if (event === 'call.invite') return oneNamed(data, ['callee_user_id', 'callee_group'])
  if (event !== 'call.transfer') return undefined
  const problem = oneNamed(data, ['to_user_id', 'to_group', 'to_call_uuid'])
  if (problem !== undefined) return problem
  if ((data.to_role == null) !== (data.to_call_uuid == null)) return undefined
  return data.to_role == null
    ? { field: 'to_role', message: 'is required' }
    : { field: 'to_role', message: 'must not be given beside to_call_uuid' }
}

function oneNamed(data: Record<string, unknown>, fields: readonly [string, ...string[]]): FieldProblem | undefined {
  const [first, second] = fields.filter((field) => data[field] != null)
  if (second !== undefined) return { field: second, message: `must not be given beside ${first}` }
  if (first !== undefined) return undefined
  const [usual, ...others] = fields
  return { field: usual, message: `is required, or ${others.join(' or ')} in its place` }
}

function tooLarge(field: string, bytes: number): FieldProblem {
  return { field, message: `must have at most ${bytes} bytes` }
}
