import { CallQuality } from '@ringwire/protocol/backend'
import {
  WakeDevice,
  WebhookCall,
  type WebhookEventType,
  webhookEvents,
  webhookEventTypes,
  webhookHeaders,
} from '@ringwire/protocol/webhook-events'
import type { TSchema } from 'typebox'
import { type Json, type JsonObject, plainSchema, reference } from './schemas.ts'
import { webhookHeaders as exampleHeaders, webhookBodies } from './webhook-examples.ts'

/** What OpenAPI shows of the requests that the service makes itself [HOOK2]. */

/** `call.wake_cancelled` is `WebhookCallWakeCancelled`. */
const schemaName = (type: WebhookEventType) =>
  `Webhook${type.replaceAll(/(?:^|[._])(\w)/g, (_, letter: string) => letter.toUpperCase())}`

export const webhookSchemas: Readonly<Record<string, TSchema>> = {
  CallQuality,
  WakeDevice,
  WebhookCall,
  ...Object.fromEntries(webhookEventTypes.map((type) => [schemaName(type), webhookEvents[type]])),
}

const headerNames = Object.keys(webhookHeaders) as (keyof typeof webhookHeaders)[]
const parameters: JsonObject[] = headerNames.map((name) => {
  const { description = '', ...schema } = plainSchema(webhookHeaders[name])
  return { name, in: 'header', required: true, description, schema, example: exampleHeaders[name] }
})

/** What an endpoint answers [HOOK3]. Its body may be anything. */
const responses: JsonObject = {
  '2XX': { description: 'It is delivered. The answer is waited for for 10 s.' },
  '410': { description: 'It has failed, and the endpoint is disabled.' },
  default: { description: 'The attempt has failed, and is made again.' },
}

function webhookOf(type: WebhookEventType): JsonObject {
  const schema = schemaName(type)
  return {
    post: {
      operationId: `receive${schema.slice('Webhook'.length)}`,
      summary: plainSchema(webhookEvents[type]).description ?? '',
      tags: ['webhooks'],
      parameters,
      requestBody: {
        required: true,
        content: {
          'application/json': {
            schema: reference(schema),
            examples: { one: { value: webhookBodies[type] as unknown as Json } },
          },
        },
      },
      responses,
    },
  }
}

/** Each type is a request of its own, to whichever URL an endpoint has. */
export function createWebhooks(): JsonObject {
  return Object.fromEntries(webhookEventTypes.map((type) => [type, webhookOf(type)]))
}
