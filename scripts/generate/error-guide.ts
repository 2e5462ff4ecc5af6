/** docs/generated/errors.md and close-codes.md: what each code answers, and what to do about it. */
import { type CloseCode, closeCodes } from '@ringwire/protocol/close-codes'
import { type EndpointDefinition, endpoints } from '@ringwire/protocol/endpoints'
import { type ErrorCode, type ErrorDefinition, errors, limitNames } from '@ringwire/protocol/errors'
import { beforeRequests, requestErrors } from './request-errors.ts'
import { code, page, table } from './tables.ts'

const wait = 'Wait as long as the answer says, then ask again.'
const fixBackend = 'Correct the request in your backend.'
const newToken = 'Get a new token from your backend.'

/** The remedy for a reader of the code. */
const remedies: Record<ErrorCode, string> = {
  INVALID_REQUEST_BODY: `${fixBackend} The message names the field.`,
  INVALID_QUERY: `${fixBackend} The message names the parameter.`,
  REQUEST_BODY_TOO_LARGE: 'Send less: fields of 255 bytes never come to 16 KiB.',
  PRODUCT_REQUIRED: 'Send `product`, or make a key for one product.',
  CONTEXT_TYPE_REQUIRED: fixBackend,
  CONTEXT_ID_REQUIRED: fixBackend,
  ROLE_REQUIRED: fixBackend,
  USER_ID_REQUIRED: fixBackend,
  DISPLAY_NAME_REQUIRED: fixBackend,
  ALLOWED_PEER_ROLE_REQUIRED: fixBackend,
  PRODUCT_AUTH_KEY_ID_REQUIRED: 'Send the header from your backend. A client has no business here.',
  PRODUCT_AUTH_SECRET_REQUIRED: 'Send the header from your backend. A client has no business here.',
  PRODUCT_AUTH_INVALID_KEY: 'Look at `ringwire keys list`: the key is of another data directory, or it was disabled.',
  PRODUCT_AUTH_INVALID_SECRET: 'Look whether the secret was rotated; `ringwire keys rotate` makes another one.',
  PRODUCT_AUTH_PRODUCT_MISMATCH: 'Use a key of that product, or leave `product` out.',
  BOOTSTRAP_IP_RATE_LIMITED: `${wait} If credentials fail again and again, correct them first.`,
  BOOTSTRAP_KEY_RATE_LIMITED: `${wait} A token lasts an hour: keep it instead of asking for each call.`,
  CALL_HISTORY_FAILED: 'Ask again later.',
  NOT_FOUND: 'Correct the path. Of a call: it belongs to another product, never was, or is not kept any more.',
  METHOD_NOT_ALLOWED: 'Use a method of the header `Allow`.',
  DEVICE_ID_REQUIRED: 'Have the backend ask for a token with a `device_id`.',
  CALL_NOT_RINGING: 'Stop ringing, and show the call as `status` and `end_reason` say.',
  AUTH_TOKEN_REQUIRED:
    'Send the session token: in the subprotocol list, or as `Authorization: Bearer`. A ring ticket where one is asked for.',
  AUTH_TOKEN_INVALID: `${newToken} \`ringwire token verify\` says what is wrong with the old one.`,
  INTERNAL_ERROR: 'Ask again later, and look into the log of the service.',
  SERVICE_UNAVAILABLE: 'Ask again after a second, with growing pauses: a store is away.',
  SERVICE_DRAINING: 'Connect again: another node, or this one when it is back.',
  UPGRADE_REQUIRED: 'Connect with a WebSocket client that speaks version 13 of the protocol.',
  INVALID_UPGRADE: 'Connect with a WebSocket client: it makes the key itself.',
  INVALID_MESSAGE: 'Correct the client. Ten in a row close the socket with 4400.',
  UNKNOWN_EVENT:
    'Correct the event name. `auth.refresh`, `call.stats` and `presence.watch` are only for extended sessions.',
  INVALID_PAYLOAD: 'Correct the client: `field` names what is wrong.',
  PAYLOAD_TOO_LARGE: 'Send less: `field` names what is too large.',
  ACTION_NOT_ALLOWED:
    'The token does not list it in `allowed_actions`: ask for another token. Of `presence.watch`: the product does not show it (`ringwire products set --presence peers`), or a role is not in `allowed_peer_role`.',
  CALL_PEER_ROLE_NOT_ALLOWED: 'Have the backend ask for a token whose `allowed_peer_role` is the role of the callee.',
  CALL_TO_SELF: 'Give another `user_id` or role. The message names the participant that would be both sides.',
  CALL_TYPE_INVALID: 'Correct the client, or leave `call_type` out.',
  CALL_NOT_FOUND: 'Forget the call: it never was, was long ago, or is not of this participant.',
  CALL_NOT_PARTICIPANT:
    'It is for the other side, or another session holds the place. With `retry_after_ms`: ask again then.',
  CALL_INVALID_STATE: 'Show the call as its `status` says.',
  CALL_ALREADY_ANSWERED: 'Stop ringing: another session of the user has the call.',
  CALL_REFUSED:
    'Say why, by `reason`: it is a word that your backend chose, or `unavailable` where it gave no valid answer.',
  CALLEE_BUSY: 'Say that the line is busy, and call later.',
  GROUP_NOT_FOUND: 'Look at `ringwire groups list`: the group has another role, or was removed.',
  NOT_SUPPORTED_BY_PEER: 'Do not offer this in the call: the client of the other side is older, or of another kind.',
  CALL_GLARE: 'Accept the call that `call_uuid` names: both wanted the same.',
  CALL_ID_CONFLICT: 'Choose another `call_uuid` for each call, or none.',
  RELAY_BUFFER_FULL: 'Send candidates later, or offer anew when the peer is back.',
  RATE_LIMITED: `${wait} [limits.md](limits.md) has them all.`,
}

const closeRemedies: Record<CloseCode, string> = {
  1001: 'Connect again.',
  1009: 'Correct the client, then connect again: what was sent took no effect.',
  1011: 'Connect again with growing pauses.',
  1012: 'Connect again after a random part of the `jitter_ms` that the reason names.',
  1013: 'Connect again after a second, with growing pauses.',
  4008: 'Connect again: what was not received waits for the place.',
  4400: 'Correct the client.',
  4401: newToken,
  4403: 'Reason `origin not allowed`: serve the page from an origin in `RINGWIRE_ALLOWED_ORIGINS`. `disconnected`: the backend took the token back, or its product key was disabled; get another one from it, then connect.',
  4408: 'Connect again at once: the network changed, or the device slept.',
  4409: 'Stay away until the user wants this page to be the phone again.',
  4429: 'Wait `retry_after_ms` of the `call.error` before it, or a few seconds.',
}

type Row = readonly [code: string, definition: ErrorDefinition]

function sentForRest(name: string): string {
  const all = Object.values<EndpointDefinition>(endpoints)
  const sent = all.filter(({ errors }) => errors.some((code) => code === name))
  const paths = sent.map(({ method, path }) => `${method} ${path}`)
  if (paths.length === all.length) return 'every path'
  return [...paths.map(code), ...(name === 'NOT_FOUND' ? ['any other path'] : [])].join('<br>')
}

/** Several requests with one family name have that: `webrtc.*`. */
function sentForWebSocket(name: ErrorCode): string {
  const before = Object.entries<readonly ErrorCode[]>(beforeRequests).filter(([, codes]) => codes.includes(name))
  const all = requestErrors()
  const events = [...all].filter(([, codes]) => codes.has(name)).map(([event]) => event as string)
  const families = new Set(
    events.map((event) => {
      const family = event.replace(/\..*/, '.')
      const members = [...all.keys()].filter((it) => it.startsWith(family))
      return members.length > 1 && members.every((it) => events.includes(it)) ? `${family}*` : event
    }),
  )
  return [...before.map(([what]) => what), ...[...families].map(code)].join('<br>')
}

export function errorsPage(): string {
  const all = Object.entries<ErrorDefinition>(errors)
  const cells = ([name, { retryable, message }]: Row) =>
    [message, remedies[name as ErrorCode], retryable ? 'yes' : 'no'] as const
  return page(
    'Error codes',
    'Programs read the code; the message is for people and may say more than what stands here. Retryable: the same ' +
      'request may succeed later, unchanged. What is not retryable fails again until somebody changes something.',
    '## REST and the WebSocket handshake',
    'The body is `{"success": false, "error": {"code", "message"}}`. 429 carries `Retry-After`, in seconds.',
    table(
      ['Code', 'HTTP status', 'Sent for', 'Message', 'What to do', 'Retryable'],
      all
        .filter(([, it]) => it.where !== 'ws')
        .map((row) => [code(row[0]), String(row[1].status ?? ''), sentForRest(row[0]), ...cells(row)]),
    ),
    '## WebSocket',
    'The error object of `call.error` has `code` and `message`, and where it applies `field` (what is wrong), `status` ' +
      '(of the call), `call_uuid` (of the call that waits), `retryable`, `retry_after_ms` and `limit` ' +
      `(in every \`RATE_LIMITED\`: ${limitNames.map(code).join(', ')}). After an error of the upgrade the socket is ` +
      'closed; after any other it stays.',
    table(
      ['Code', 'Sent for', 'Message', 'What to do', 'Retryable'],
      all
        .filter(([, it]) => it.where !== 'rest')
        .map((row) => [code(row[0]), sentForWebSocket(row[0] as ErrorCode), ...cells(row)]),
    ),
  )
}

export function closeCodesPage(): string {
  const rows = Object.entries(closeCodes).map(([number, { name, meaning, reconnect }]) => [
    code(number),
    name,
    meaning,
    reconnect ? 'yes' : 'no',
    closeRemedies[Number(number) as CloseCode],
  ])
  return page(
    'WebSocket close codes',
    table(['Code', 'Name', 'Meaning', 'Connect again', 'What to do'], rows),
    'Any other code, 1006 above all, means that the connection just went away: connect again. The exceptions are 1002, ' +
      '1003, 1007 and 1008, by which an endpoint calls what the client sent wrong.',
    'Connect again with growing pauses and some chance in them. What a call finds then is in ' +
      '[base-clients.md](../base-clients.md#when-the-socket-closes).',
  )
}
