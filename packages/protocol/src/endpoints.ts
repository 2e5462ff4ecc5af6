// Over 350 lines: it is one table, and an entry of it makes little sense elsewhere.
import type { RestCode } from './errors.ts'
import { groupLimits } from './groups.ts'
import { webSocketPath } from './subprotocol.ts'

/**
 * Every endpoint that clients, application backends and probes are answered by, in one registry: the router, the
 * metrics and OpenAPI are made from it.
 */
export interface EndpointDefinition {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Braces stand for a part of a path, percent-encoded: `routeAt` in routes.ts reads it. */
  readonly path: string
  /** Whether web pages of allowed origins may read the answer [HIST2]; never of the token endpoint [TOK3]. */
  readonly cors: boolean
  /**
   * The limit of a request [HTTP1]. `address`: the limit of its address. `own`: a limit of the endpoint's. `close`: that
   * of its address, over which it is answered, too, and the connection closed: no limit makes a probe find the service
   * dead.
   */
  readonly counts: 'address' | 'own' | 'close'
  /** The bound of its body in bytes, where it is not that of all others [HTTP1]. */
  readonly maxBodyBytes?: number
  readonly operationId: string
  readonly tag: EndpointTag
  readonly summary: string
  readonly description: string
  /** The codes that it answers beside success. */
  readonly errors: readonly RestCode[]
}

/** Whom the endpoints are for. */
export const endpointTags = {
  tokens: 'For application backends.',
  server: 'For application backends.',
  history: 'For clients.',
  ice: 'For clients.',
  ring: 'For clients that were woken.',
  devices: 'For clients that are to be woken.',
  signaling: 'For clients.',
  health: 'For deployments.',
} as const
export type EndpointTag = keyof typeof endpointTags

/** The errors that every endpoint for application backends may answer [SRV1]. */
const serverErrors = [
  'PRODUCT_REQUIRED',
  'PRODUCT_AUTH_KEY_ID_REQUIRED',
  'PRODUCT_AUTH_SECRET_REQUIRED',
  'PRODUCT_AUTH_INVALID_KEY',
  'PRODUCT_AUTH_INVALID_SECRET',
  'PRODUCT_AUTH_PRODUCT_MISMATCH',
  'METHOD_NOT_ALLOWED',
  'REQUEST_BODY_TOO_LARGE',
  'BOOTSTRAP_IP_RATE_LIMITED',
  'BOOTSTRAP_KEY_RATE_LIMITED',
  'INTERNAL_ERROR',
  'SERVICE_UNAVAILABLE',
] as const satisfies readonly RestCode[]

/** An endpoint for application backends: `/v1/server/…` with product credentials, and limits of its own [SRV1]. */
const forServer = { cors: false, counts: 'own', tag: 'server' } as const

const ringCors = 'Web pages and service workers of allowed origins may ask it (CORS).'
const ringErrors = [
  'AUTH_TOKEN_REQUIRED',
  'AUTH_TOKEN_INVALID',
  'METHOD_NOT_ALLOWED',
  'CALL_NOT_RINGING',
  'REQUEST_BODY_TOO_LARGE',
  'RATE_LIMITED',
  'INTERNAL_ERROR',
  'SERVICE_UNAVAILABLE',
] as const

const deviceErrors = [
  'AUTH_TOKEN_REQUIRED',
  'AUTH_TOKEN_INVALID',
  'METHOD_NOT_ALLOWED',
  'REQUEST_BODY_TOO_LARGE',
  'RATE_LIMITED',
  'INTERNAL_ERROR',
  'SERVICE_UNAVAILABLE',
] as const

const byQuery =
  'For a participant whose role or user_id is "." or "..", which no URL path can carry [ID3]. It works for all others, too.'

export const endpoints = {
  sessionToken: {
    method: 'POST',
    path: '/v1/call/session-token',
    cors: false,
    counts: 'own',
    operationId: 'issueSessionToken',
    tag: 'tokens',
    summary: 'Issue a session token for a participant.',
    description:
      'Called by the application backend, which has authenticated its own user and decided that a call is allowed. ' +
      'The first failure answers, in the order of rule TOK1. Unknown fields are ignored; null or blank counts as not given.',
    errors: [
      'INVALID_REQUEST_BODY',
      'PRODUCT_REQUIRED',
      'CONTEXT_TYPE_REQUIRED',
      'CONTEXT_ID_REQUIRED',
      'ROLE_REQUIRED',
      'USER_ID_REQUIRED',
      'DISPLAY_NAME_REQUIRED',
      'ALLOWED_PEER_ROLE_REQUIRED',
      'PRODUCT_AUTH_KEY_ID_REQUIRED',
      'PRODUCT_AUTH_SECRET_REQUIRED',
      'PRODUCT_AUTH_INVALID_KEY',
      'PRODUCT_AUTH_INVALID_SECRET',
      'PRODUCT_AUTH_PRODUCT_MISMATCH',
      'METHOD_NOT_ALLOWED',
      'REQUEST_BODY_TOO_LARGE',
      'BOOTSTRAP_IP_RATE_LIMITED',
      'BOOTSTRAP_KEY_RATE_LIMITED',
      'INTERNAL_ERROR',
      'SERVICE_UNAVAILABLE',
    ],
  },
  jwks: {
    method: 'GET',
    path: '/.well-known/jwks.json',
    cors: false,
    counts: 'address',
    operationId: 'listPublicKeys',
    tag: 'tokens',
    summary: 'The public keys of session tokens.',
    description:
      'A JSON Web Key Set (RFC 7517) of the keys that sign with EdDSA (RFC 8037) or ES256 (RFC 7518). With only a ' +
      'secret (HS256) it has no keys. May be kept for 5 minutes.',
    errors: ['METHOD_NOT_ALLOWED', 'REQUEST_BODY_TOO_LARGE', 'RATE_LIMITED', 'INTERNAL_ERROR'],
  },
  callHistory: {
    method: 'GET',
    path: '/v1/calls/history',
    cors: true,
    counts: 'address',
    operationId: 'listCalls',
    tag: 'history',
    summary: 'Recent calls of the participant that the session token represents.',
    description:
      'Newest started_at first, tie by call_uuid, descending. Web pages of allowed origins may read it (CORS).',
    errors: [
      'AUTH_TOKEN_REQUIRED',
      'AUTH_TOKEN_INVALID',
      'METHOD_NOT_ALLOWED',
      'REQUEST_BODY_TOO_LARGE',
      'RATE_LIMITED',
      'CALL_HISTORY_FAILED',
      'INTERNAL_ERROR',
    ],
  },
  iceServers: {
    method: 'POST',
    path: '/v1/call/ice-servers',
    cors: true,
    counts: 'address',
    operationId: 'renewIceServers',
    tag: 'ice',
    summary: 'ICE servers with TURN credentials that are made now.',
    description:
      'For the participant that the session token represents. Takes no body. An extended session gets the same in ' +
      'ice.servers before its credentials run out. Web pages of allowed origins may ask it (CORS).',
    errors: [
      'AUTH_TOKEN_REQUIRED',
      'AUTH_TOKEN_INVALID',
      'METHOD_NOT_ALLOWED',
      'REQUEST_BODY_TOO_LARGE',
      'RATE_LIMITED',
      'INTERNAL_ERROR',
    ],
  },
  serverCalls: {
    ...forServer,
    method: 'GET',
    path: '/v1/server/calls',
    operationId: 'listProductCalls',
    summary: 'Calls of a product, newest first.',
    description:
      'Newest started_at first, tie by call_uuid, descending. A page may hold fewer calls than its limit, or none, while ' +
      'next_cursor says that there are more: the service only looks at a limited number of calls for one page.',
    errors: ['INVALID_QUERY', ...serverErrors],
  },
  serverCall: {
    ...forServer,
    method: 'GET',
    path: '/v1/server/calls/{call_uuid}',
    operationId: 'showCall',
    summary: 'One call.',
    description: 'Also of one that is over, as long as it is kept.',
    errors: ['NOT_FOUND', ...serverErrors],
  },
  serverTimeline: {
    ...forServer,
    method: 'GET',
    path: '/v1/server/calls/{call_uuid}/timeline',
    operationId: 'showTimeline',
    summary: 'What happened to a call, and why a phone did not ring.',
    description:
      'As long as the call is kept. Also of an invite that was refused before there was a call, under the call_uuid that it ' +
      'named, for 30 days.',
    errors: ['NOT_FOUND', ...serverErrors],
  },
  serverEndCall: {
    ...forServer,
    method: 'POST',
    path: '/v1/server/calls/{call_uuid}/end',
    operationId: 'endCall',
    summary: 'End a call.',
    description:
      'Both sides get call.ended, or call.cancelled while it rings, with the reason ended_by_server. A call that is ' +
      'over already stays as it is, and is answered the same.',
    errors: ['INVALID_REQUEST_BODY', 'NOT_FOUND', ...serverErrors],
  },
  serverTransferCall: {
    ...forServer,
    method: 'POST',
    path: '/v1/server/calls/{call_uuid}/transfer',
    operationId: 'transferCall',
    summary: 'Transfer a call for one of its sides.',
    description:
      'It rings at the target, and the other side of the call goes on with whoever answers, as if the side that is named by ' +
      'had sent call.transfer [XFER1]. Until then the call goes on.',
    errors: [
      'INVALID_REQUEST_BODY',
      'NOT_FOUND',
      'GROUP_NOT_FOUND',
      'CALL_TO_SELF',
      'CALL_INVALID_STATE',
      'NOT_SUPPORTED_BY_PEER',
      'CALLEE_BUSY',
      ...serverErrors,
    ],
  },
  ring: {
    method: 'GET',
    path: '/v1/call/ring',
    cors: true,
    counts: 'address',
    operationId: 'lookAtRing',
    tag: 'ring',
    summary: 'The call that a ring ticket is for, while it rings.',
    description: `Asked with only the ticket [TICK1]: a phone that was woken has no session yet. ${ringCors}`,
    errors: ringErrors,
  },
  rejectRing: {
    method: 'POST',
    path: '/v1/call/ring/reject',
    cors: true,
    counts: 'address',
    operationId: 'rejectRing',
    tag: 'ring',
    summary: 'Reject the call that a ring ticket is for.',
    description: `While it rings; takes no body. ${ringCors}`,
    errors: ringErrors,
  },
  alertRing: {
    method: 'POST',
    path: '/v1/call/ring/alerting',
    cors: true,
    counts: 'address',
    operationId: 'alertRing',
    tag: 'ring',
    summary: 'Say that the phone shows the call that a ring ticket is for.',
    description: `An extended caller gets call.alerting, as from a session [EXT5]. Takes no body. ${ringCors}`,
    errors: ringErrors,
  },
  putDevice: {
    method: 'PUT',
    path: '/v1/call/device',
    cors: true,
    counts: 'address',
    operationId: 'putDevice',
    tag: 'devices',
    summary: 'Register the push address of the device of the session token.',
    description:
      'Replaces the former address of the device. To be sent at each start of an app, and whenever the push service gives ' +
      'another address [PUSH1]. Web pages and service workers of allowed origins may ask it (CORS).',
    errors: ['INVALID_REQUEST_BODY', 'DEVICE_ID_REQUIRED', ...deviceErrors],
  },
  forgetDevice: {
    method: 'DELETE',
    path: '/v1/call/device',
    cors: true,
    counts: 'address',
    operationId: 'forgetDevice',
    tag: 'devices',
    summary: 'Forget the device of the session token: somebody logs out.',
    description:
      'Also if there is nothing to forget. Web pages and service workers of allowed origins may ask it (CORS).',
    errors: ['DEVICE_ID_REQUIRED', ...deviceErrors],
  },
  serverParticipant: {
    ...forServer,
    method: 'GET',
    path: '/v1/server/participants/{role}/{user_id}',
    operationId: 'showParticipant',
    summary: 'Whether a participant is there, and its calls.',
    description: 'Of all nodes. Of somebody who never connected, too: a participant is a name that a token gives.',
    errors: ['NOT_FOUND', ...serverErrors],
  },
  serverDisconnect: {
    ...forServer,
    method: 'POST',
    path: '/v1/server/participants/{role}/{user_id}/disconnect',
    operationId: 'disconnectParticipant',
    summary: 'Take the tokens of a participant back.',
    description:
      'Its sockets are closed with 4403 on every node within a second, and its tokens that were issued before now, or ' +
      'before until, are refused everywhere. No call ends by it, but its places are lost.',
    errors: ['INVALID_REQUEST_BODY', 'NOT_FOUND', ...serverErrors],
  },
  serverEraseParticipant: {
    ...forServer,
    method: 'DELETE',
    path: '/v1/server/participants/{role}/{user_id}',
    operationId: 'eraseParticipant',
    summary: 'Erase everything that is kept of a participant.',
    description:
      'Its sockets are closed with 4403 and its tokens taken back, its live calls end with the reason ended_by_server, and then ' +
      'nothing names it any more: calls keep their times and roles, with a blank user_id. Also of somebody who is not known. It ' +
      'can be asked again; after 503 it has to be.',
    errors: ['NOT_FOUND', ...serverErrors],
  },
  serverExportParticipant: {
    ...forServer,
    method: 'GET',
    path: '/v1/server/participants/{role}/{user_id}/export',
    operationId: 'exportParticipant',
    summary: 'Everything that is kept of a participant.',
    description:
      'It is sent while it is read, however much it is. Where a store goes away meanwhile, the connection is cut: what came is ' +
      'no JSON then. Where a device is pushed to is a secret of the device, and left out.',
    errors: ['NOT_FOUND', ...serverErrors],
  },
  serverParticipantByQuery: {
    ...forServer,
    method: 'GET',
    path: '/v1/server/participants',
    operationId: 'showParticipantByQuery',
    summary: 'The same as showParticipant, with role and user_id in the query.',
    description: byQuery,
    errors: ['INVALID_QUERY', 'NOT_FOUND', ...serverErrors],
  },
  serverDisconnectByQuery: {
    ...forServer,
    method: 'POST',
    path: '/v1/server/participants/disconnect',
    operationId: 'disconnectParticipantByQuery',
    summary: 'The same as disconnectParticipant, with role and user_id in the query.',
    description: byQuery,
    errors: ['INVALID_REQUEST_BODY', 'INVALID_QUERY', 'NOT_FOUND', ...serverErrors],
  },
  serverEraseParticipantByQuery: {
    ...forServer,
    method: 'DELETE',
    path: '/v1/server/participants',
    operationId: 'eraseParticipantByQuery',
    summary: 'The same as eraseParticipant, with role and user_id in the query.',
    description: byQuery,
    errors: ['INVALID_QUERY', 'NOT_FOUND', ...serverErrors],
  },
  serverExportParticipantByQuery: {
    ...forServer,
    method: 'GET',
    path: '/v1/server/participants/export',
    operationId: 'exportParticipantByQuery',
    summary: 'The same as exportParticipant, with role and user_id in the query.',
    description: byQuery,
    errors: ['INVALID_QUERY', 'NOT_FOUND', ...serverErrors],
  },
  serverProduct: {
    ...forServer,
    method: 'GET',
    path: '/v1/server/product',
    operationId: 'showProduct',
    summary: 'The settings of a product.',
    description: 'A setting that was never set has its default. The secret of the invite hook is not shown.',
    errors: [...serverErrors],
  },
  serverProductChange: {
    ...forServer,
    method: 'PATCH',
    path: '/v1/server/product',
    operationId: 'changeProduct',
    summary: 'Change the settings of a product.',
    description:
      'Fields that are not given stay as they are. If invite_url is given, the answer shows invite_secret: the same one ' +
      'until invite_url was null [HOOK5].',
    errors: ['INVALID_REQUEST_BODY', ...serverErrors],
  },
  serverGroups: {
    ...forServer,
    method: 'GET',
    path: '/v1/server/groups',
    operationId: 'listGroups',
    summary: 'Groups of a product.',
    description: 'By role and name, without their members.',
    errors: [...serverErrors],
  },
  serverGroup: {
    ...forServer,
    method: 'GET',
    path: '/v1/server/groups/{role}/{group}',
    operationId: 'showGroup',
    summary: 'One group.',
    description: 'With its members in their order.',
    errors: ['NOT_FOUND', ...serverErrors],
  },
  serverGroupPut: {
    ...forServer,
    method: 'PUT',
    path: '/v1/server/groups/{role}/{group}',
    maxBodyBytes: groupLimits.bodyBytes,
    operationId: 'putGroup',
    summary: 'Make a group, or replace it.',
    description:
      'The body is the whole group: its members are those of the body, and a time that is not given is the default [GROUP1]. ' +
      'The body may have 160 KiB.',
    errors: ['INVALID_REQUEST_BODY', ...serverErrors],
  },
  serverGroupRemove: {
    ...forServer,
    method: 'DELETE',
    path: '/v1/server/groups/{role}/{group}',
    operationId: 'deleteGroup',
    summary: 'Remove a group.',
    description: 'Its members stay participants as before.',
    errors: ['NOT_FOUND', ...serverErrors],
  },
  serverWebhooks: {
    ...forServer,
    method: 'GET',
    path: '/v1/server/webhooks',
    operationId: 'listWebhooks',
    summary: 'Webhook endpoints of a product.',
    description: 'All of them, the oldest first. Their secrets are not shown.',
    errors: [...serverErrors],
  },
  serverWebhookCreate: {
    ...forServer,
    method: 'POST',
    path: '/v1/server/webhooks',
    operationId: 'createWebhook',
    summary: 'Add a webhook endpoint.',
    description: 'Only this answer shows its secret. A product has at most 20.',
    errors: ['INVALID_REQUEST_BODY', ...serverErrors],
  },
  serverWebhook: {
    ...forServer,
    method: 'GET',
    path: '/v1/server/webhooks/{id}',
    operationId: 'showWebhook',
    summary: 'One webhook endpoint.',
    description: 'Without its secret.',
    errors: ['NOT_FOUND', ...serverErrors],
  },
  serverWebhookChange: {
    ...forServer,
    method: 'PATCH',
    path: '/v1/server/webhooks/{id}',
    operationId: 'changeWebhook',
    summary: 'Change a webhook endpoint.',
    description: 'Fields that are not given stay as they are; null means the value of a new endpoint.',
    errors: ['INVALID_REQUEST_BODY', 'NOT_FOUND', ...serverErrors],
  },
  serverWebhookRemove: {
    ...forServer,
    method: 'DELETE',
    path: '/v1/server/webhooks/{id}',
    operationId: 'deleteWebhook',
    summary: 'Remove a webhook endpoint.',
    description: 'With all of its deliveries. Events that were not delivered never are.',
    errors: ['NOT_FOUND', ...serverErrors],
  },
  serverWebhookRotate: {
    ...forServer,
    method: 'POST',
    path: '/v1/server/webhooks/{id}/rotate',
    operationId: 'rotateWebhookSecret',
    summary: 'Give a webhook endpoint a new secret.',
    description: 'Only this answer shows it. For 24 hours the previous one signs, too.',
    errors: ['NOT_FOUND', 'INVALID_REQUEST_BODY', ...serverErrors],
  },
  serverWebhookTest: {
    ...forServer,
    method: 'POST',
    path: '/v1/server/webhooks/{id}/test',
    operationId: 'testWebhook',
    summary: 'Send a webhook.test.',
    description: 'It is delivered as any other event: the list of deliveries says what became of it.',
    errors: ['NOT_FOUND', 'INVALID_REQUEST_BODY', ...serverErrors],
  },
  serverWebhookDeliveries: {
    ...forServer,
    method: 'GET',
    path: '/v1/server/webhooks/{id}/deliveries',
    operationId: 'listDeliveries',
    summary: 'The deliveries of a webhook endpoint.',
    description: 'The newest first, with the last answer of each.',
    errors: ['INVALID_QUERY', 'NOT_FOUND', ...serverErrors],
  },
  serverWebhookRetry: {
    ...forServer,
    method: 'POST',
    path: '/v1/server/webhooks/{id}/deliveries/{delivery_id}/retry',
    operationId: 'retryDelivery',
    summary: 'Send a webhook once more.',
    description: 'One that has failed, or was delivered. Once it is over three days old, a single attempt is made.',
    errors: ['NOT_FOUND', 'INVALID_REQUEST_BODY', ...serverErrors],
  },
  liveness: {
    method: 'GET',
    path: '/healthz',
    cors: false,
    counts: 'close',
    operationId: 'checkLiveness',
    tag: 'health',
    summary: 'The process lives.',
    description: 'Dependencies are not looked at. service_ready is false only while the service starts or stops.',
    errors: ['METHOD_NOT_ALLOWED', 'REQUEST_BODY_TOO_LARGE'],
  },
  readiness: {
    method: 'GET',
    path: '/readyz',
    cors: false,
    counts: 'close',
    operationId: 'checkReadiness',
    tag: 'health',
    summary: 'The service and what it needs are ready.',
    description:
      'Each dependency is checked at most once a second and has one second. A store in the process itself is ok.',
    errors: ['METHOD_NOT_ALLOWED', 'REQUEST_BODY_TOO_LARGE'],
  },
  webSocket: {
    method: 'GET',
    path: webSocketPath,
    cors: false,
    counts: 'address',
    operationId: 'connect',
    tag: 'signaling',
    summary: 'The WebSocket signaling endpoint.',
    description:
      'What goes over the socket is in asyncapi.json. With both credentials the header decides. A bad token in the ' +
      'subprotocol list does not refuse the upgrade, but over the limit of its address (429): call.error comes over the socket, then close 4401, because a ' +
      'browser shows every refused upgrade alike. A token in the URL is refused.',
    errors: [
      'AUTH_TOKEN_REQUIRED',
      'AUTH_TOKEN_INVALID',
      'METHOD_NOT_ALLOWED',
      'REQUEST_BODY_TOO_LARGE',
      'UPGRADE_REQUIRED',
      'INVALID_UPGRADE',
      'RATE_LIMITED',
      'SERVICE_DRAINING',
    ],
  },
} as const satisfies Record<string, EndpointDefinition>

export type EndpointName = keyof typeof endpoints
