// Over 350 lines: it is one document, and its parts follow its chapters.
import { capabilities } from '@ringwire/protocol/capabilities'
import { type ClientEventName, clientEventPurposes, clientEvents } from '@ringwire/protocol/client-events'
import { closeCodes } from '@ringwire/protocol/close-codes'
import { Envelope, messageLimits } from '@ringwire/protocol/envelope'
import { type ErrorCode, errorBody, errors } from '@ringwire/protocol/errors'
import { sessionIdPattern } from '@ringwire/protocol/events/auth'
import { inviteLimits } from '@ringwire/protocol/events/call'
import { extendedQuery } from '@ringwire/protocol/extended'
import { type ServerEventName, serverEvents, WsError } from '@ringwire/protocol/server-events'
import { subprotocol, webSocketPath } from '@ringwire/protocol/subprotocol'
import service from '../../packages/server/package.json' with { type: 'json' }
import * as examples from './examples.ts'
import { type Json, type JsonObject, plainSchema } from './schemas.ts'

/** Codes that `call.error` can carry. */
export const webSocketCodes = (Object.keys(errors) as ErrorCode[]).filter((code) => errors[code].where !== 'rest')

const requestId = plainSchema(Envelope.properties.request_id)
/** In a request null counts as absent [ENV1]. */
const optionalId: JsonObject = { ...requestId, type: ['string', 'null'] }
const requestNumber = plainSchema(Envelope.properties.n)

/** Replies carry the request's id; only a request with one gets `call.ack` [EXT2, ENV4]. */
const replies: readonly ServerEventName[] = [
  'call.invited',
  'call.ack',
  'call.listed',
  'call.transfer_started',
  'presence.state',
  'auth.refreshed',
]
/** Pushes that no base session gets [EXT5, EXT6, RES4, MEDIA1, PEER1, PRES1]. */
const extendedOnly: readonly ServerEventName[] = [
  'call.status',
  'call.alerting',
  'call.media',
  'call.peer_away',
  'call.peer_back',
  'call.peer_moved',
  'call.transferring',
  'call.transfer_failed',
  'presence.changed',
  'ice.servers',
  'session.reset',
]
/** Pushes that tell a version of a call [EXT1]. */
export const versioned: readonly ServerEventName[] = [
  'call.ringing',
  'call.accepted',
  'call.rejected',
  'call.cancelled',
  'call.ended',
  'call.missed',
  'call.status',
  'call.peer_away',
  'call.peer_back',
  'call.peer_moved',
  'call.transferring',
  'call.transfer_failed',
]
const camel = (event: string) => event.replace(/[._]([a-z])/g, (_, letter: string) => letter.toUpperCase())
/** A name that is both sent and received (webrtc.*) is two messages. */
const messageName = (direction: 'client' | 'service', event: string) => camel(`${direction}.${event}`)

function exampleList(named: Record<string, object>): Json {
  return Object.entries(named).map(([name, payload]) => ({ name, payload: payload as JsonObject }))
}

/** Rules that the validator leaves to a code of its own are said here [INV1]. */
function dataOf(event: ClientEventName): JsonObject {
  const data = plainSchema(clientEvents[event])
  const { call_type: callType } = data.properties as Record<string, JsonObject>
  if (callType !== undefined)
    Object.assign(callType, { type: ['string', 'null'], pattern: inviteLimits.callTypePattern })
  return data
}

function clientMessage(event: ClientEventName): JsonObject {
  const isOwn = event === 'auth.refresh'
  const named = Object.entries(examples.clientData[event]).flatMap(([name, data]): [string, object][] => {
    const envelope = { event, request_id: 'r1', data }
    const numbered: [string, object] = [isOwn ? name : `${name}, extended`, { ...envelope, n: 3 }]
    return isOwn ? [numbered] : [[name, envelope], numbered]
  })
  return {
    name: event,
    title: event,
    summary: clientEventPurposes[event],
    payload: {
      type: 'object',
      required: ['event', 'data'],
      properties: {
        event: { type: 'string', const: event },
        request_id: optionalId,
        n: requestNumber,
        data: dataOf(event),
      },
    },
    examples: exampleList(Object.fromEntries(named)),
  }
}

const seq: JsonObject = {
  type: 'integer',
  minimum: 1,
  description: 'To extended sessions: 1, 2, 3 … in a session, without gaps [EXT1].',
}
const version: JsonObject = {
  type: 'integer',
  minimum: 1,
  description: 'To extended sessions: the version of the call.',
}

/** The fields of every push, and more in an extended session. */
function pushPayload(event: ServerEventName, name: JsonObject, data: JsonObject): JsonObject {
  const required = extendedOnly.includes(event) ? ['event', 'data', 'seq'] : ['event', 'data']
  return {
    type: 'object',
    required,
    properties: { event: name, data, seq, ...(versioned.includes(event) ? { version } : {}) },
    // An extended session gets both or neither.
    ...(versioned.includes(event) ? { dependentRequired: { seq: ['version'], version: ['seq'] } } : {}),
  }
}

/** `auth.ok` and `call.error` have members of their own beside the three of every envelope [WS3, ENV2]. */
function serverPayload(event: ServerEventName): JsonObject {
  const data = plainSchema(serverEvents[event].data)
  const name: JsonObject = { type: 'string', const: event }
  switch (event) {
    case 'auth.ok':
      return {
        type: 'object',
        required: ['event', 'success', 'data'],
        properties: { event: name, success: { type: 'boolean', const: true }, data },
      }
    case 'call.error': {
      const error = plainSchema(WsError)
      ;(error.properties as JsonObject).code = { type: 'string', enum: webSocketCodes }
      return {
        type: 'object',
        required: ['event', 'error', 'data'],
        properties: {
          event: name,
          request_id: requestId,
          error,
          data: { type: 'object', required: ['error'], properties: { error } },
        },
      }
    }
    case 'call.invited':
    case 'auth.refreshed':
    case 'call.ack': {
      const required = event === 'call.ack' ? ['event', 'request_id', 'data'] : ['event', 'data']
      return { type: 'object', required, properties: { event: name, request_id: requestId, data } }
    }
    default:
      return pushPayload(event, name, data)
  }
}

function serverExamples(event: ServerEventName): Record<string, object> {
  if (event === 'call.error') {
    return Object.fromEntries(
      webSocketCodes.map((code) => {
        const error = errorBody(code, examples.errorDetails[code])
        return [code, { event, request_id: 'r1', error, data: { error } }]
      }),
    )
  }
  const extra = event === 'auth.ok' ? { success: true } : replies.includes(event) ? { request_id: 'r1' } : {}
  const numbers = { seq: 4, ...(versioned.includes(event) && { version: 2 }) }
  const isPush = event !== 'auth.ok' && !replies.includes(event)
  const named = Object.entries(examples.serverData[event]).flatMap(([name, data]): [string, object][] => {
    const toBase = { event, ...extra, data }
    if (!isPush) return [[name, toBase]]
    const toExtended = { ...toBase, ...numbers }
    return extendedOnly.includes(event)
      ? [[name, toExtended]]
      : [
          [name, toBase],
          [`${name}, extended`, toExtended],
        ]
  })
  return Object.fromEntries(named)
}

function serverMessage(event: ServerEventName): JsonObject {
  return {
    name: event,
    title: event,
    summary: serverEvents[event].purpose,
    payload: serverPayload(event),
    examples: exampleList(serverExamples(event)),
  }
}

const clientNames = Object.keys(clientEvents) as ClientEventName[]
const serverNames = Object.keys(serverEvents) as ServerEventName[]

/** The parameters of an extended client in the URL [EXT1, RES1]; a base one has none. */
export const queryParameters: Readonly<Record<string, { schema: JsonObject; description: string; example: string }>> = {
  [extendedQuery.extended]: {
    schema: { type: 'string', const: '1' },
    description: 'An extended session. Anything else, or nothing: a base session.',
    example: '1',
  },
  [extendedQuery.can]: {
    schema: { type: 'string' },
    description: `What the client understands beside: ${capabilities.join(', ')}, with commas between them. Other names are ignored.`,
    example: 'transfer,take',
  },
  [extendedQuery.resume]: {
    schema: { type: 'string', pattern: sessionIdPattern },
    description: 'The session_id of the session to go on with.',
    example: examples.serverData['auth.ok']['extended session'].session_id,
  },
  [extendedQuery.epoch]: {
    schema: { type: 'string' },
    description: 'With resume: the epoch that auth.ok or session.reset named last.',
    example: examples.serverData['auth.ok']['extended session'].epoch,
  },
  [extendedQuery.seq]: {
    schema: { type: 'string', pattern: '^[0-9]{1,15}$' },
    description: 'With resume: the last seq that the client has seen, 0 if none.',
    example: '4',
  },
  [extendedQuery.replied]: {
    schema: { type: 'string', pattern: '^[0-9]{1,15}$' },
    description: 'With resume: the n of the last request whose reply the client has seen, 0 if none.',
    example: '3',
  },
}

const connectionQuery: JsonObject = {
  type: 'object',
  properties: Object.fromEntries(
    Object.entries(queryParameters).map(([name, { schema, description, example }]) => [
      name,
      { ...schema, description, examples: [example] },
    ]),
  ),
  dependentRequired: {
    [extendedQuery.resume]: [extendedQuery.extended, extendedQuery.epoch, extendedQuery.seq],
  },
}

function channel(): JsonObject {
  const names = [
    ...clientNames.map((event) => messageName('client', event)),
    ...serverNames.map((event) => messageName('service', event)),
  ]
  const codes = Object.entries(closeCodes).map(([code, { name, meaning }]) => `${code} ${name}: ${meaning}`)
  return {
    address: webSocketPath,
    title: 'Signaling',
    description:
      `One JSON object a message, at most ${messageLimits.messageBytes / 1024} KiB. auth.ok comes first. ` +
      `With ?${extendedQuery.extended}=1 the session is an extended one: it gets acknowledgements and sequence numbers, ` +
      'and it can be resumed. ' +
      `Close codes:\n\n${codes.join('\n\n')}`,
    messages: Object.fromEntries(names.map((name) => [name, { $ref: `#/components/messages/${name}` }])),
    bindings: {
      ws: {
        method: 'GET',
        query: connectionQuery,
        headers: {
          type: 'object',
          properties: {
            'Sec-WebSocket-Protocol': {
              type: 'string',
              description: `The list of two entries: the literal ${subprotocol}, and the session token.`,
              examples: [`${subprotocol}, ${examples.token}`],
            },
            Authorization: {
              type: 'string',
              description: 'Instead, where the WebSocket library can set headers.',
              examples: [`Bearer ${examples.token}`],
            },
          },
        },
        bindingVersion: '0.1.0',
      },
    },
  }
}

function operation(action: 'send' | 'receive', title: string, names: readonly string[]): JsonObject {
  return {
    action,
    title,
    channel: { $ref: '#/channels/signaling' },
    messages: names.map((name) => ({ $ref: `#/channels/signaling/messages/${name}` })),
  }
}

/** AsyncAPI 3.0 of the WebSocket endpoint, seen from the service: it receives what clients send. */
export function createAsyncApi(): JsonObject {
  const clientMessages = clientNames.map((event): [string, Json] => [
    messageName('client', event),
    clientMessage(event),
  ])
  const serverMessages = serverNames.map((event): [string, Json] => [
    messageName('service', event),
    serverMessage(event),
  ])
  return {
    asyncapi: '3.0.0',
    id: 'urn:ringwire:signaling',
    info: {
      title: 'Ringwire',
      version: service.version,
      description: 'Realtime call signaling between two participants of an application, over one WebSocket endpoint.',
      license: { name: 'Apache-2.0', url: 'https://www.apache.org/licenses/LICENSE-2.0' },
    },
    defaultContentType: 'application/json',
    servers: {
      local: {
        host: '127.0.0.1:8080',
        protocol: 'ws',
        description: 'As started without any configuration.',
        security: [
          { $ref: '#/components/securitySchemes/subprotocol' },
          { $ref: '#/components/securitySchemes/header' },
        ],
      },
    },
    channels: { signaling: channel() },
    operations: {
      fromClients: operation(
        'receive',
        'What clients send',
        clientMessages.map(([name]) => name),
      ),
      toClients: operation(
        'send',
        'What the service sends',
        serverMessages.map(([name]) => name),
      ),
    },
    components: {
      messages: Object.fromEntries([...clientMessages, ...serverMessages]),
      securitySchemes: {
        subprotocol: {
          type: 'httpApiKey',
          in: 'header',
          name: 'Sec-WebSocket-Protocol',
          description: `The list ${subprotocol}, <session token>: what a browser can do.`,
        },
        header: {
          type: 'http',
          scheme: 'bearer',
          bearerFormat: 'JWT',
          description: 'Authorization: Bearer <session token>.',
        },
      },
    },
  }
}
