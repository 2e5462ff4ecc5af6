import { describe, expect, test } from 'bun:test'
import { type ErrorCode, type ErrorDefinition, errorBody, errors } from './errors.ts'

const registry: Readonly<Record<string, ErrorDefinition>> = errors

/** The three tables of the interface, row for row. */
const tokenErrors: [number, string][] = [
  [400, 'INVALID_REQUEST_BODY'],
  [400, 'PRODUCT_REQUIRED'],
  [400, 'CONTEXT_TYPE_REQUIRED'],
  [400, 'CONTEXT_ID_REQUIRED'],
  [400, 'ROLE_REQUIRED'],
  [400, 'USER_ID_REQUIRED'],
  [400, 'DISPLAY_NAME_REQUIRED'],
  [400, 'ALLOWED_PEER_ROLE_REQUIRED'],
  [401, 'PRODUCT_AUTH_KEY_ID_REQUIRED'],
  [401, 'PRODUCT_AUTH_SECRET_REQUIRED'],
  [401, 'PRODUCT_AUTH_INVALID_KEY'],
  [401, 'PRODUCT_AUTH_INVALID_SECRET'],
  [403, 'PRODUCT_AUTH_PRODUCT_MISMATCH'],
  [429, 'BOOTSTRAP_IP_RATE_LIMITED'],
  [429, 'BOOTSTRAP_KEY_RATE_LIMITED'],
]
const historyErrors: [number, string][] = [
  [401, 'AUTH_TOKEN_REQUIRED'],
  [401, 'AUTH_TOKEN_INVALID'],
  [500, 'CALL_HISTORY_FAILED'],
]
const webSocketErrors = ['CALL_PEER_ROLE_NOT_ALLOWED']

/** Codes that the interface leaves open. */
const ownWebSocketErrors = [
  'INVALID_MESSAGE',
  'UNKNOWN_EVENT',
  'INVALID_PAYLOAD',
  'ACTION_NOT_ALLOWED',
  'CALL_PEER_ROLE_NOT_ALLOWED',
  'CALL_TO_SELF',
  'CALL_TYPE_INVALID',
  'CALL_NOT_FOUND',
  'CALL_NOT_PARTICIPANT',
  'CALL_INVALID_STATE',
  'CALL_ALREADY_ANSWERED',
  'CALL_REFUSED',
  'CALLEE_BUSY',
  'GROUP_NOT_FOUND',
  'CALL_GLARE',
  'CALL_ID_CONFLICT',
  'NOT_SUPPORTED_BY_PEER',
  'RELAY_BUFFER_FULL',
  'RATE_LIMITED',
  'PAYLOAD_TOO_LARGE',
  'AUTH_TOKEN_REQUIRED',
  'AUTH_TOKEN_INVALID',
  'SERVICE_UNAVAILABLE',
  'SERVICE_DRAINING',
  'INTERNAL_ERROR',
]

describe("every code of the interface's tables is there, with its status", () => {
  for (const [status, code] of [...tokenErrors, ...historyErrors]) {
    test(`${status} ${code}`, () => {
      const definition = registry[code]
      expect(definition?.status).toBe(status)
      expect(definition?.where).not.toBe('ws')
    })
  }
  for (const code of webSocketErrors) {
    test(`call.error ${code}`, () => expect(registry[code]?.where).not.toBe('rest'))
  }
})

describe('[ENV5] every code of call.error is there', () => {
  for (const code of ownWebSocketErrors) {
    test(code, () => expect(['ws', 'both']).toContain(String(registry[code]?.where)))
  }

  test('and no other', () => {
    const known = Object.keys(registry).filter((code) => registry[code]?.where !== 'rest')
    expect(known.sort()).toEqual([...ownWebSocketErrors].sort())
  })
})

test('a code that can be a REST answer has a status, one that cannot has none', () => {
  for (const [code, { where, status }] of Object.entries(registry)) {
    expect(`${code} ${status !== undefined}`).toBe(`${code} ${where !== 'ws'}`)
    if (status !== undefined) expect([400, 401, 403, 404, 405, 409, 410, 413, 426, 429, 500, 503]).toContain(status)
  }
})

test('messages are sentences, and different ones', () => {
  const messages = Object.values(registry).map((it) => it.message)
  for (const message of messages) expect(message).toMatch(/^\S.*\.$/)
  expect(new Set(messages).size).toBe(messages.length)
})

test('[ENV5] the error object holds the code, a message and what belongs to the case', () => {
  expect(errorBody('CALL_NOT_FOUND')).toEqual({ code: 'CALL_NOT_FOUND', message: errors.CALL_NOT_FOUND.message })
  expect(errorBody('CALL_INVALID_STATE', { status: 'ended' })).toMatchObject({ status: 'ended' })
  expect(errorBody('INVALID_PAYLOAD', { field: 'sdp', message: 'sdp is required' })).toEqual({
    code: 'INVALID_PAYLOAD',
    message: 'sdp is required',
    field: 'sdp',
  })
  for (const code of Object.keys(errors) as ErrorCode[]) {
    expect(errorBody(code).retryable).toBe(errors[code].retryable ? true : undefined)
  }
  expect(errorBody('RATE_LIMITED', { retry_after_ms: 50 })).toMatchObject({ retryable: true, retry_after_ms: 50 })
})
