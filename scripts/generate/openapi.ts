import { type EndpointName, endpoints, endpointTags } from '@ringwire/protocol/endpoints'
import { errors, type RestCode } from '@ringwire/protocol/errors'
import { CallWake, CallWakeCancelled, DeviceRequest, DeviceResponse } from '@ringwire/protocol/push'
import {
  CallRecord,
  Health,
  HistoryResponse,
  headers,
  IceServer,
  IceServersResponse,
  JsonWebKeySet,
  NotRinging,
  RestError,
  RingChanged,
  RingResponse,
  TokenRequest,
  TokenResponse,
} from '@ringwire/protocol/rest'
import { routes } from '@ringwire/protocol/routes'
import service from '../../packages/server/package.json' with { type: 'json' }
import { settings } from '../../packages/server/src/config/settings.ts'
import { queryParameters } from './asyncapi.ts'
import * as examples from './examples.ts'
import { paging, pathParameters, type ServerEndpoint, serverSchemas, serverShapes } from './openapi-server.ts'
import { createWebhooks, webhookSchemas } from './openapi-webhooks.ts'
import { type Json, type JsonObject, plainSchema, reference, withReferences } from './schemas.ts'

const namedSchemas = {
  TokenRequest,
  TokenResponse,
  IceServer,
  IceServersResponse,
  JsonWebKeySet,
  HistoryResponse,
  CallRecord,
  DeviceRequest,
  DeviceResponse,
  CallWake,
  CallWakeCancelled,
  RingResponse,
  RingChanged,
  NotRinging,
  Health,
  RestError,
  ...serverSchemas,
  ...webhookSchemas,
}

const headerComponents: JsonObject = {
  RetryAfter: { description: 'Seconds to wait.', schema: { type: 'integer', minimum: 1 } },
  Allow: { description: 'The methods of this path.', schema: { type: 'string' } },
  WwwAuthenticate: { description: 'How to authenticate (RFC 9110 section 11.6.1).', schema: { type: 'string' } },
  CacheControl: { description: 'Always no-store.', schema: { type: 'string', const: 'no-store' } },
}
const header = (name: keyof typeof headerComponents): JsonObject => ({ $ref: `#/components/headers/${name}` })
const noStore = { 'Cache-Control': header('CacheControl') }

/** The headers that come with a status. */
function errorHeaders(status: number): JsonObject {
  const extra: JsonObject = {}
  if (status === 401) extra['WWW-Authenticate'] = header('WwwAuthenticate')
  if (status === 405) extra.Allow = header('Allow')
  if (status === 429 || status === 503) extra['Retry-After'] = header('RetryAfter')
  return { ...noStore, ...extra }
}

/** A default as people say it: `120/60` is 120 in 60 s. */
function rateOf({ name, default: rate }: { name: string; default: string }): string {
  const [count, seconds] = rate.split('/')
  return `${count} in ${seconds} s (${name})`
}

/** The count behind a limit that answers [TOK5, HTTP1]. */
const counted: Partial<Record<RestCode, string>> = {
  BOOTSTRAP_IP_RATE_LIMITED: `${rateOf(settings.tokenRateIp)}. Or ${rateOf(settings.tokenFailRateIp)} had product credentials that failed.`,
  BOOTSTRAP_KEY_RATE_LIMITED: `${rateOf(settings.tokenRateKey)}.`,
  RATE_LIMITED: `Of one participant for its history or ICE servers ${rateOf(settings.restRate)}, of one address ${rateOf(settings.restRateIp)}. Token requests have limits of their own.`,
}

function errorResponse(status: number, codes: readonly RestCode[]): JsonObject {
  const named = codes.map((code): [string, Json] => [
    code,
    { value: { success: false, error: { code, message: errors[code].message } } },
  ])
  const schema = {
    allOf: [reference('RestError'), { properties: { error: { properties: { code: { enum: [...codes] } } } } }],
  }
  return {
    description: codes
      .map((code) => [`${code}: ${errors[code].message}`, counted[code]].filter(Boolean).join(' '))
      .join('\n\n'),
    headers: errorHeaders(status),
    content: { 'application/json': { schema, examples: Object.fromEntries(named) } },
  }
}

/** The runtime's own answer, before any code of the service runs. */
const headersTooLarge: JsonObject = {
  description: 'The request line and the headers are over 16 KiB. There is no body, and the connection is closed.',
}

function errorResponses(codes: readonly RestCode[]): JsonObject {
  const statuses = [...new Set(codes.map((code) => errors[code].status))].sort()
  const ofStatus = (status: number) => codes.filter((code) => errors[code].status === status)
  const named = statuses.map((status): [string, Json] => [String(status), errorResponse(status, ofStatus(status))])
  return { ...Object.fromEntries(named), '431': headersTooLarge }
}

function answer(
  description: string,
  schema: string,
  named: Record<string, object>,
  extra: JsonObject = {},
): JsonObject {
  const values = Object.entries(named).map(([name, value]): [string, Json] => [name, { value: value as JsonObject }])
  return {
    description,
    headers: { ...noStore, ...extra },
    content: { 'application/json': { schema: reference(schema), examples: Object.fromEntries(values) } },
  }
}

/** The input of an endpoint, and its answers besides its codes. */
interface Shape {
  readonly security: JsonObject[]
  readonly parameters?: JsonObject[]
  readonly requestBody?: JsonObject
  readonly success: JsonObject
}

const productCredentials: JsonObject[] = [{ productKeyId: [], productSecret: [] }]
const ofServer = Object.fromEntries(
  Object.entries(serverShapes(answer)).map(([name, shape]) => [name, { security: productCredentials, ...shape }]),
) as Record<ServerEndpoint, Shape>

const shapes: Readonly<Record<EndpointName, Shape>> = {
  ...ofServer,
  sessionToken: {
    security: productCredentials,
    requestBody: {
      required: true,
      description: 'At most 16 KiB. Its Content-Type is not asked for.',
      content: {
        'application/json': {
          schema: reference('TokenRequest'),
          examples: { ann: { value: examples.tokenRequest as JsonObject } },
        },
      },
    },
    success: {
      '200': answer('The token and what a client needs to connect.', 'TokenResponse', { ann: examples.tokenResponse }),
    },
  },
  jwks: {
    security: [],
    success: {
      '200': answer(
        'The keys that verify tokens.',
        'JsonWebKeySet',
        { 'one of each kind': examples.jwks, 'a secret alone': { keys: [] } },
        { 'Cache-Control': { schema: { type: 'string', const: 'public, max-age=300' } } },
      ),
    },
  },
  callHistory: {
    security: [{ sessionToken: [] }],
    parameters: paging,
    success: { '200': answer('A page of the history.', 'HistoryResponse', { two: examples.historyResponse }) },
  },
  iceServers: {
    security: [{ sessionToken: [] }],
    success: {
      '200': answer('The ICE servers.', 'IceServersResponse', {
        turn: examples.iceServersResponse,
        'nothing that runs out': examples.lastingIceServers,
      }),
    },
  },
  putDevice: {
    security: [{ sessionToken: [] }],
    requestBody: {
      required: true,
      description: 'At most 16 KiB. Its Content-Type is not asked for.',
      content: {
        'application/json': {
          schema: reference('DeviceRequest'),
          examples: Object.fromEntries(
            Object.entries(examples.deviceRequests).map(([name, value]) => [name, { value: value as JsonObject }]),
          ),
        },
      },
    },
    success: { '200': answer('It is known.', 'DeviceResponse', { browser: examples.deviceResponse }) },
  },
  forgetDevice: {
    security: [{ sessionToken: [] }],
    success: { '204': { description: 'It is not known any more.', headers: noStore } },
  },
  ring: {
    security: [{ ringTicket: [] }],
    success: { '200': answer('It rings.', 'RingResponse', { ann: examples.ringResponse }) },
  },
  rejectRing: {
    security: [{ ringTicket: [] }],
    success: { '200': answer('It is rejected.', 'RingChanged', { rejected: examples.ringRejected }) },
  },
  alertRing: {
    security: [{ ringTicket: [] }],
    success: {
      '200': answer('The caller is told, if it is extended.', 'RingChanged', { ringing: examples.ringAlerting }),
    },
  },
  liveness: {
    security: [],
    success: {
      '200': answer('Always.', 'Health', { live: examples.health.live, draining: examples.health.draining }),
    },
  },
  readiness: {
    security: [],
    success: {
      '200': answer('Ready.', 'Health', { ready: examples.health.ready }),
      '503': answer(
        'Not ready.',
        'Health',
        { 'database away': examples.health.databaseAway },
        { 'Retry-After': header('RetryAfter') },
      ),
    },
  },
  webSocket: {
    security: [{ sessionToken: [] }, { subprotocol: [] }],
    parameters: Object.entries(queryParameters).map(([name, { schema, description, example }]) => ({
      name,
      in: 'query',
      description,
      schema,
      example,
    })),
    success: {
      '101': {
        description: 'Switching protocols. Where the token came as a subprotocol, jwt is the one that is selected.',
        headers: { 'Sec-WebSocket-Protocol': { schema: { type: 'string', const: 'jwt' } } },
      },
    },
  },
}

function operationOf(name: EndpointName): JsonObject {
  const { operationId, summary, description, tag, errors: codes, path } = endpoints[name]
  const { success, parameters = [], ...shape } = shapes[name]
  const all = [...pathParameters(path), ...parameters]
  return {
    operationId,
    summary,
    description,
    tags: [tag],
    ...(all.length > 0 && { parameters: all }),
    ...shape,
    responses: { ...success, ...errorResponses(codes) },
  }
}

function pathsOf(): JsonObject {
  return Object.fromEntries(
    routes.map((route) => [
      route.path,
      Object.fromEntries(route.endpoints.map(({ name, method }) => [method.toLowerCase(), operationOf(name)])),
    ]),
  )
}

const securitySchemes: JsonObject = {
  productKeyId: { type: 'apiKey', in: 'header', name: headers.keyId, description: 'Product key ID.' },
  productSecret: { type: 'apiKey', in: 'header', name: headers.secret, description: 'Product secret.' },
  sessionToken: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT', description: 'Session token.' },
  ringTicket: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT', description: 'Ring ticket of one call.' },
  subprotocol: {
    type: 'apiKey',
    in: 'header',
    name: 'Sec-WebSocket-Protocol',
    description: 'The list of two entries: the literal jwt, and the session token.',
  },
}

/** OpenAPI 3.1 of all requests over HTTP, and of the requests of the service itself. */
export function createOpenApi(): JsonObject {
  const plain = Object.fromEntries(Object.entries(namedSchemas).map(([name, schema]) => [name, plainSchema(schema)]))
  const schemas = Object.fromEntries(Object.entries(plain).map(([name, it]) => [name, withReferences(it, plain)]))
  return {
    openapi: '3.1.1',
    info: {
      title: 'Ringwire',
      version: service.version,
      description:
        'REST endpoints of the call signaling service. Every error has the same body. A path that is not listed here ' +
        'answers 404 NOT_FOUND.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: 'http://127.0.0.1:8080', description: 'As started without any configuration.' }],
    tags: Object.entries({ ...endpointTags, webhooks: 'What application backends are sent.' }).map(
      ([name, description]) => ({ name, description }),
    ),
    paths: pathsOf(),
    webhooks: createWebhooks(),
    components: {
      schemas,
      headers: headerComponents,
      securitySchemes,
      responses: { NotFound: errorResponse(404, ['NOT_FOUND']) },
    },
  }
}
