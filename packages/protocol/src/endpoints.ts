import type { RestCode } from './errors.ts'
import { webSocketPath } from './subprotocol.ts'

/**
 * Every endpoint that clients, application backends and probes are answered by, in one registry: the router, the
 * metrics and OpenAPI are made from it.
 */
export interface EndpointDefinition {
  readonly method: 'GET' | 'POST'
  readonly path: string
  /** Whether web pages of allowed origins may read the answer [HIST2]; never of the token endpoint [TOK3]. */
  readonly cors: boolean
  /**
   * What a request counts for [HTTP1]. `address`: the limit of its address. `own`: a limit of the endpoint's. `close`: that
   * of its address, over which it is answered, too, and the connection closed: no limit makes a probe find the service dead.
   */
  readonly counts: 'address' | 'own' | 'close'
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
  history: 'For clients.',
  ice: 'For clients.',
  signaling: 'For clients.',
  health: 'For deployments.',
} as const
export type EndpointTag = keyof typeof endpointTags

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
      'For the participant that the session token represents. Takes no body. An extended session is told the same in ' +
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
      'Each dependency is asked at most once a second and has one second. A store in the process itself is ok.',
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
      'subprotocol list does not refuse the upgrade: call.error comes over the socket, then close 4401, because a ' +
      'browser shows every refused upgrade alike. A token in the URL is refused.',
    errors: [
      'AUTH_TOKEN_REQUIRED',
      'AUTH_TOKEN_INVALID',
      'METHOD_NOT_ALLOWED',
      'REQUEST_BODY_TOO_LARGE',
      'UPGRADE_REQUIRED',
      'RATE_LIMITED',
      'SERVICE_DRAINING',
    ],
  },
} as const satisfies Record<string, EndpointDefinition>

export type EndpointName = keyof typeof endpoints
