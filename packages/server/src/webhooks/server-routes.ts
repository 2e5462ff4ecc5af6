/** Webhook endpoints of a product, for its backend: /v1/server/webhooks and what is below it [HOOK1]. */
import type {
  DeliveryPage,
  WebhookPage,
  WebhookQueued,
  WebhookRotated,
  WebhookWithSecret,
} from '@ringwire/protocol/backend'
import { empty, failure, json, shortened } from '../http/replies.ts'
import { isDeliveryId } from '../ports/webhooks.ts'
import { createProductEndpoint, type ProductEndpointDeps, type ProductRequest } from '../products/endpoint.ts'
import { type Changed, shownDelivery, shownEndpoint, type WebhookEndpoints } from './endpoints.ts'

export interface ServerWebhooksDeps extends ProductEndpointDeps {
  readonly webhooks: WebhookEndpoints
}

const statuses = ['pending', 'delivered', 'failed'] as const
const limits = { min: 1, default: 50, max: 100 }

export function createServerWebhooksEndpoints(deps: ServerWebhooksDeps) {
  const { webhooks } = deps
  const idOf = ({ params }: ProductRequest) => params.id ?? ''

  return {
    serverWebhooks: createProductEndpoint(deps, async ({ product }) => {
      const data = (await webhooks.list(product)).map(shownEndpoint)
      return json(200, { success: true, data, next_cursor: null } satisfies WebhookPage)
    }),
    serverWebhookCreate: createProductEndpoint(deps, async ({ product, body }) => {
      const created = await webhooks.create(product, body)
      if (!created.ok) return refusal(created)
      const { endpoint } = created
      return json(201, { ...shownEndpoint(endpoint), secret: endpoint.secret } satisfies WebhookWithSecret)
    }),
    serverWebhook: createProductEndpoint(deps, async (asked) => {
      const endpoint = await webhooks.find(asked.product, idOf(asked))
      return endpoint === undefined ? noSuchWebhook(asked) : json(200, shownEndpoint(endpoint))
    }),
    serverWebhookChange: createProductEndpoint(deps, async (asked) => {
      const changed = await webhooks.change(asked.product, idOf(asked), asked.body)
      if (changed === undefined) return noSuchWebhook(asked)
      return changed.ok ? json(200, shownEndpoint(changed.endpoint)) : refusal(changed)
    }),
    serverWebhookRemove: createProductEndpoint(deps, async (asked) =>
      (await webhooks.remove(asked.product, idOf(asked))) ? empty(204) : noSuchWebhook(asked),
    ),
    serverWebhookRotate: createProductEndpoint(deps, async (asked) => {
      const endpoint = await webhooks.rotate(asked.product, idOf(asked))
      if (endpoint === undefined) return noSuchWebhook(asked)
      const until = new Date(endpoint.oldSecretUntil ?? 0).toISOString()
      const { secret } = endpoint
      return json(200, { ...shownEndpoint(endpoint), secret, old_secret_valid_until: until } satisfies WebhookRotated)
    }),
    serverWebhookTest: createProductEndpoint(deps, async (asked) =>
      queued(asked, await webhooks.test(asked.product, idOf(asked))),
    ),
    serverWebhookDeliveries: createProductEndpoint(deps, async (asked) => {
      const { query } = asked
      const status = query.get('status') ?? undefined
      if (status !== undefined && !isStatus(status)) {
        return failure('INVALID_QUERY', { message: `status must be one of ${statuses.join(', ')}.` })
      }
      const limit = limitOf(query.get('limit'))
      const page = await webhooks.deliveries(asked.product, idOf(asked), { status, limit, before: beforeOf(query) })
      if (page === undefined) return noSuchWebhook(asked)
      const data = page.records.map(shownDelivery)
      return json(200, { success: true, data, next_cursor: page.next } satisfies DeliveryPage)
    }),
    serverWebhookRetry: createProductEndpoint(deps, async (asked) => {
      const deliveryId = asked.params.delivery_id ?? ''
      const isThere = await webhooks.retry(asked.product, idOf(asked), deliveryId)
      return isThere ? queued(asked, deliveryId) : noSuchDelivery(asked)
    }),
  }
}

const isStatus = (text: string): text is (typeof statuses)[number] => statuses.some((status) => status === text)

/** A text that is not a number of records means the default, as in the history [HIST1]. */
function limitOf(text: string | null): number {
  const limit = Math.floor(Number(text ?? ''))
  return text === null || !(limit >= limits.min) ? limits.default : Math.min(limit, limits.max)
}

/** A text that is not a cursor means the first page. */
function beforeOf(query: URLSearchParams): string | undefined {
  const cursor = query.get('cursor')
  return cursor !== null && isDeliveryId(cursor) ? cursor : undefined
}

const refusal = ({ message }: Extract<Changed, { ok: false }>) => failure('INVALID_REQUEST_BODY', { message })
const noSuchWebhook = ({ product, params }: ProductRequest) =>
  failure('NOT_FOUND', { message: `The product ${product} has no webhook endpoint ${shortened(params.id ?? '')}.` })
const noSuchDelivery = ({ params }: ProductRequest) =>
  failure('NOT_FOUND', {
    message: `The endpoint ${shortened(params.id ?? '')} has no delivery ${shortened(params.delivery_id ?? '')} that is over.`,
  })

function queued(asked: ProductRequest, deliveryId: string | undefined): Response {
  return deliveryId === undefined
    ? noSuchWebhook(asked)
    : json(202, { delivery_id: deliveryId } satisfies WebhookQueued)
}
