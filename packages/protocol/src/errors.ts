/**
 * Every error code that the service can answer, in one registry. REST codes carry their HTTP status; WebSocket codes
 * come in `call.error` [ENV2, ENV5]. `retryable` says whether the same request may succeed later unchanged.
 */
export interface ErrorDefinition {
  readonly where: 'rest' | 'ws' | 'both'
  /** HTTP status, where the code can be a REST answer. */
  readonly status?: number
  readonly retryable: boolean
  readonly message: string
}

function rest(status: number, message: string, retryable = false) {
  return { where: 'rest', status, retryable, message } as const
}
function ws(message: string, retryable = false) {
  return { where: 'ws', retryable, message } as const
}
function both(status: number, message: string, retryable = false) {
  return { where: 'both', status, retryable, message } as const
}

export const errors = {
  INVALID_REQUEST_BODY: rest(400, 'The request body is missing or invalid.'),
  INVALID_QUERY: rest(400, 'A query parameter is invalid.'),
  REQUEST_BODY_TOO_LARGE: rest(413, 'The request body is over 16 KiB.'),
  PRODUCT_REQUIRED: rest(400, 'product is required, because the key has several products.'),
  CONTEXT_TYPE_REQUIRED: rest(400, 'context_type is required.'),
  CONTEXT_ID_REQUIRED: rest(400, 'context_id is required.'),
  ROLE_REQUIRED: rest(400, 'role is required.'),
  USER_ID_REQUIRED: rest(400, 'user_id is required.'),
  DISPLAY_NAME_REQUIRED: rest(400, 'display_name is required.'),
  ALLOWED_PEER_ROLE_REQUIRED: rest(400, 'allowed_peer_role is required.'),
  PRODUCT_AUTH_KEY_ID_REQUIRED: rest(401, 'Send the ID of the product key as the header X-SVC-Product-Key-ID.'),
  PRODUCT_AUTH_SECRET_REQUIRED: rest(401, 'Send the secret of the product key as the header X-SVC-Product-Secret.'),
  PRODUCT_AUTH_INVALID_KEY: rest(401, 'The product key is unknown or disabled. ringwire keys list shows the keys.'),
  PRODUCT_AUTH_INVALID_SECRET: rest(
    401,
    'The product secret is incorrect. ringwire keys rotate makes a new one for the key.',
  ),
  PRODUCT_AUTH_PRODUCT_MISMATCH: rest(
    403,
    'The product is not one of the authenticated key. Name one of them, or leave product out.',
  ),
  BOOTSTRAP_IP_RATE_LIMITED: rest(429, 'Too many requests with product credentials from this address.', true),
  BOOTSTRAP_KEY_RATE_LIMITED: rest(429, 'Too many requests with this product key.', true),
  CALL_HISTORY_FAILED: rest(500, 'The call history could not be loaded.', true),
  NOT_FOUND: rest(404, 'There is nothing at this path. docs/generated/openapi.json lists the paths.'),
  DEVICE_ID_REQUIRED: rest(400, 'The session token has no device_id. Ask for a token with one.'),
  CALL_NOT_RINGING: rest(410, 'The call does not ring any more.'),
  METHOD_NOT_ALLOWED: rest(405, 'This path does not answer that method.'),

  AUTH_TOKEN_REQUIRED: both(401, 'Send the session token as "Authorization: Bearer <token>".'),
  AUTH_TOKEN_INVALID: both(401, 'The session token is invalid or expired.'),
  INTERNAL_ERROR: both(500, 'Something went wrong in the service.', true),
  SERVICE_UNAVAILABLE: both(503, 'The service cannot do this right now.', true),
  SERVICE_DRAINING: both(503, 'This node starts or is about to stop; connect again.', true),

  UPGRADE_REQUIRED: rest(426, 'This path speaks WebSocket only.'),
  INVALID_UPGRADE: rest(400, 'Sec-WebSocket-Key must be 16 bytes in base64 (RFC 6455).'),

  INVALID_MESSAGE: ws('The message is not a JSON envelope {event, request_id?, data?}.'),
  UNKNOWN_EVENT: ws('There is no such event.'),
  INVALID_PAYLOAD: ws('A field of data is missing or invalid.'),
  PAYLOAD_TOO_LARGE: ws('The payload is too large.'),
  ACTION_NOT_ALLOWED: ws('The token does not permit this action.'),
  CALL_PEER_ROLE_NOT_ALLOWED: ws('The callee role is not allowed by the token.'),
  CALL_TO_SELF: both(400, 'Both sides of the call would be the same participant.'),
  CALL_TYPE_INVALID: ws('call_type must match [a-z0-9_-]{1,32}.'),
  CALL_NOT_FOUND: ws('There is no such call.'),
  CALL_NOT_PARTICIPANT: ws('This side or session of the call may not do that.'),
  CALL_INVALID_STATE: both(409, 'The call is not in a state that allows this.'),
  CALL_ALREADY_ANSWERED: ws('The call was already answered.'),
  CALL_REFUSED: ws('The application refused the call.'),
  CALLEE_BUSY: both(409, 'The callee is in another call.'),
  CALL_GLARE: ws('The callee is calling you: answer the waiting call.'),
  CALL_ID_CONFLICT: ws('This call_uuid belongs to an earlier call of yours. Choose another one.'),
  GROUP_NOT_FOUND: both(404, 'The product has no group of this role and name.'),
  NOT_SUPPORTED_BY_PEER: both(409, 'The client of the other side does not support this.'),
  RELAY_BUFFER_FULL: ws('Too much is waiting for the peer.', true),
  RATE_LIMITED: both(429, 'Too many requests.', true),
} as const satisfies Record<string, ErrorDefinition>

export type ErrorCode = keyof typeof errors

/** Codes that can be a REST answer. */
export type RestCode = {
  [C in ErrorCode]: (typeof errors)[C] extends { status: number } ? C : never
}[ErrorCode]

/** What `RATE_LIMITED` can be about: messages and connections [WS7], invites [INV8]. */
export const limitNames = ['messages', 'invites', 'pair_invites', 'ringing', 'connections'] as const
export type LimitName = (typeof limitNames)[number]

/** The error object of a REST body and of `call.error`; both modes of reading it are served [ENV2]. */
export interface ErrorBody {
  code: ErrorCode
  message: string
  /** The field that is wrong [ENV5]. */
  field?: string
  /** The status of the call that forbids the request. */
  status?: string
  /** Why the backend refused the call: `[a-z0-9_]{1,64}` [HOOK5]. */
  reason?: string
  /** The call that waits to be answered [INV6]. */
  call_uuid?: string
  retryable?: boolean
  retry_after_ms?: number
  /** Which limit was reached: in every `RATE_LIMITED` of a socket. */
  limit?: LimitName
  /** The number that a request must have which skipped one [EXT4]. */
  expected_n?: number
}

/** Builds the error object of a code, with the members that belong to this case. */
export function errorBody(code: ErrorCode, details: Omit<ErrorBody, 'code' | 'message'> & { message?: string } = {}) {
  const { message, ...rest } = details
  const body: ErrorBody = { code, message: message ?? errors[code].message, ...rest }
  if (errors[code].retryable) body.retryable = true
  return body
}
