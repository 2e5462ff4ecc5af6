import {
  CallPage,
  CallShown,
  CallView,
  DeliveryPage,
  Disconnected,
  DisconnectRequest,
  EndRequest,
  GroupPage,
  GroupRequest,
  GroupShown,
  ParticipantErased,
  ParticipantExport,
  ParticipantView,
  ProductChange,
  ProductChanged,
  ProductShown,
  TimelineShown,
  TransferBegun,
  TransferRequest,
  Webhook,
  WebhookChange,
  WebhookDelivery,
  WebhookPage,
  WebhookQueued,
  WebhookRequest,
  WebhookRotated,
  WebhookWithSecret,
} from '@ringwire/protocol/backend'
import type { EndpointName } from '@ringwire/protocol/endpoints'
import { callStatuses, historyLimit } from '@ringwire/protocol/rest'
import * as examples from './examples.ts'
import { type Json, type JsonObject, reference } from './schemas.ts'

/** What OpenAPI shows of `/v1/server/…`, beside what the registry says [SRV1]. */
export type ServerEndpoint = Extract<EndpointName, `server${string}`>

export const serverSchemas = {
  CallView,
  TimelineShown,
  CallShown,
  CallPage,
  EndRequest,
  TransferRequest,
  TransferBegun,
  ParticipantView,
  ParticipantErased,
  ParticipantExport,
  DisconnectRequest,
  Disconnected,
  ProductShown,
  ProductChanged,
  ProductChange,
  GroupShown,
  GroupRequest,
  GroupPage,
  Webhook,
  WebhookWithSecret,
  WebhookRotated,
  WebhookPage,
  WebhookRequest,
  WebhookChange,
  WebhookQueued,
  WebhookDelivery,
  DeliveryPage,
}

interface Shape {
  readonly parameters?: JsonObject[]
  readonly requestBody?: JsonObject
  readonly success: JsonObject
}

type Answer = (description: string, schema: string, named: Record<string, object>) => JsonObject

const query = (name: string, description: string, schema: JsonObject, example?: Json): JsonObject => ({
  name,
  in: 'query',
  description,
  schema,
  ...(example !== undefined && { example }),
})
const product = query('product', 'Required where the key has several products.', { type: 'string' }, 'shop')

/** How lists page, as the history does [HIST1]. */
export const paging: JsonObject[] = [
  query(
    'limit',
    `How many records at most. What is not a number, or under ${historyLimit.min}, means ${historyLimit.default}; too large means ${historyLimit.max}.`,
    { type: 'number', default: historyLimit.default },
    10,
  ),
  query(
    'cursor',
    'next_cursor of the previous page. An invalid one means the first page.',
    { type: 'string' },
    'MTc3MjQ0MjMwMDAwMC4wYjlmN2E0ZS02YTUyLTRmMGUtOWQzYy0yZjFiNmMxZDdlNTU',
  ),
]

const filters: JsonObject[] = [
  query('status', 'live: the call rings or goes on.', { type: 'string', enum: ['live', ...callStatuses] }, 'live'),
  query('user_id', 'Calls of this participant, on either side; with role.', { type: 'string' }, 'ann'),
  query('role', 'The role of user_id.', { type: 'string' }, 'customer'),
  query(
    'refused',
    '1: also the invites of the participant that were refused; with user_id and role, without status.',
    { type: 'string', enum: ['1'] },
    '1',
  ),
  query('since', 'Calls that started then or later.', { type: 'string', format: 'date-time' }, '2026-03-02T00:00:00Z'),
]

/** Each twice: with the participant in the path, and in the query [ID3]. */
function participantShapes(answer: Answer) {
  const inPath = {
    serverParticipant: {
      parameters: [product],
      success: { '200': answer('The participant.', 'ParticipantView', { 'in a call': examples.participantView }) },
    },
    serverDisconnect: {
      parameters: [product],
      requestBody: {
        required: false,
        content: {
          'application/json': {
            schema: reference('DisconnectRequest'),
            examples: { 'until tomorrow': { value: { until: examples.disconnected.tokens_from } } },
          },
        },
      },
      success: { '200': answer('Which tokens count.', 'Disconnected', { disconnected: examples.disconnected }) },
    },
    serverEraseParticipant: {
      parameters: [product],
      success: { '200': answer('What was erased.', 'ParticipantErased', { erased: examples.participantErased }) },
    },
    serverExportParticipant: {
      parameters: [product],
      success: { '200': answer('What is kept.', 'ParticipantExport', { one: examples.participantExport }) },
    },
  } satisfies Partial<Record<ServerEndpoint, Shape>>
  const inQuery = (shape: Shape): Shape => ({
    ...shape,
    parameters: [...(shape.parameters ?? []), ...participantInQuery],
  })
  return {
    ...inPath,
    serverParticipantByQuery: inQuery(inPath.serverParticipant),
    serverDisconnectByQuery: inQuery(inPath.serverDisconnect),
    serverEraseParticipantByQuery: inQuery(inPath.serverEraseParticipant),
    serverExportParticipantByQuery: inQuery(inPath.serverExportParticipant),
  }
}

const participantInQuery = ['role', 'user_id'].map((name) => ({
  ...query(name, 'Of the participant.', { type: 'string' }, '..'),
  required: true,
}))

export function serverShapes(answer: Answer): Readonly<Record<ServerEndpoint, Shape>> {
  const call = examples.callShown
  return {
    serverCalls: {
      parameters: [product, ...filters, ...paging],
      success: { '200': answer('A page of calls.', 'CallPage', { one: examples.callPage }) },
    },
    serverCall: {
      parameters: [product],
      success: { '200': answer('The call.', 'CallShown', { live: call }) },
    },
    serverTimeline: {
      parameters: [product],
      success: { '200': answer('The timeline.', 'TimelineShown', { 'not answered': examples.timelineShown }) },
    },
    ...participantShapes(answer),
    serverEndCall: {
      parameters: [product],
      requestBody: {
        required: false,
        content: {
          'application/json': {
            schema: reference('EndRequest'),
            examples: { end: { value: { reason: 'order closed' } } },
          },
        },
      },
      success: { '200': answer('The call, which is over.', 'CallShown', { ended: examples.callEnded }) },
    },
    serverTransferCall: {
      parameters: [product],
      requestBody: body('TransferRequest', examples.transferRequest),
      success: { '200': answer('It rings at the target.', 'TransferBegun', { rings: examples.transferBegun }) },
    },
    serverProduct: {
      parameters: [product],
      success: { '200': answer('The settings.', 'ProductShown', { one: examples.productShown }) },
    },
    serverProductChange: {
      parameters: [product],
      requestBody: body('ProductChange', examples.productChange),
      success: { '200': answer('The settings as they are now.', 'ProductChanged', { one: examples.productChanged }) },
    },
    serverGroups: {
      parameters: [product, ...paging],
      success: { '200': answer('A page of groups.', 'GroupPage', { one: examples.groupPage }) },
    },
    serverGroup: {
      parameters: [product],
      success: { '200': answer('The group.', 'GroupShown', { one: examples.groupShown }) },
    },
    serverGroupPut: {
      parameters: [product],
      requestBody: body('GroupRequest', examples.groupRequest),
      success: { '200': answer('The group as it is now.', 'GroupShown', { one: examples.groupShown }) },
    },
    serverGroupRemove: { parameters: [product], success: { '204': { description: 'It is removed.' } } },
    ...webhookShapes(answer),
  }
}

const body = (schema: string, value: object): JsonObject => ({
  required: true,
  content: { 'application/json': { schema: reference(schema), examples: { one: { value: value as Json } } } },
})

type WebhookEndpoint = Extract<ServerEndpoint, `serverWebhook${string}`>

function webhookShapes(answer: Answer): Readonly<Record<WebhookEndpoint, Shape>> {
  const status = query('status', 'Only these.', { type: 'string', enum: ['pending', 'delivered', 'failed'] }, 'failed')
  const queued = { '202': answer('It is sent.', 'WebhookQueued', { queued: examples.webhookQueued }) }
  const shown = { '200': answer('The endpoint.', 'Webhook', { one: examples.webhook }) }
  return {
    serverWebhooks: {
      parameters: [product],
      success: { '200': answer('The endpoints.', 'WebhookPage', { one: examples.webhookPage }) },
    },
    serverWebhookCreate: {
      parameters: [product],
      requestBody: body('WebhookRequest', examples.webhookRequest),
      success: { '201': answer('The endpoint, with its secret.', 'WebhookWithSecret', { one: examples.webhookMade }) },
    },
    serverWebhook: { parameters: [product], success: shown },
    serverWebhookChange: {
      parameters: [product],
      requestBody: body('WebhookChange', { enabled: false }),
      success: shown,
    },
    serverWebhookRemove: { parameters: [product], success: { '204': { description: 'It is removed.' } } },
    serverWebhookRotate: {
      parameters: [product],
      success: {
        '200': answer('The endpoint, with its new secret.', 'WebhookRotated', { one: examples.webhookRotated }),
      },
    },
    serverWebhookTest: { parameters: [product], success: queued },
    serverWebhookDeliveries: {
      parameters: [product, status, ...paging],
      success: { '200': answer('A page of deliveries.', 'DeliveryPage', { one: examples.deliveryPage }) },
    },
    serverWebhookRetry: { parameters: [product], success: queued },
  }
}

/** What stands in braces in a path. */
export function pathParameters(path: string): JsonObject[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
    ...(inPath[name] ?? {}),
  }))
}

const inPath: Readonly<Record<string, JsonObject>> = {
  id: { description: 'id of the webhook endpoint.', example: examples.webhook.id },
  delivery_id: { description: 'webhook-id of the delivery.', example: examples.webhookQueued.delivery_id },
  call_uuid: { description: 'Call identifier.', example: examples.callShown.call.call_uuid },
  role: { description: 'Role of the participant, percent-encoded.', example: 'customer' },
  group: { description: 'Name of the group, percent-encoded.', example: 'support' },
  user_id: { description: 'user_id of the participant, percent-encoded.', example: 'ann' },
}
