import type { Step } from '../../call/effects.ts'
import { callHookBody, type HookType, hookEventsOf } from '../../call/hook.ts'
import { type Delivery, newDeliveryId, type WebhookEndpoint } from '../../ports/webhooks.ts'
import type { RowValue } from './rows.ts'

/** Which endpoints hear of a step, as far as this process knows them. */
export interface Subscribers {
  replace(endpoints: readonly WebhookEndpoint[]): void
  /** The deliveries that a step writes with itself; nothing if no endpoint wants it. */
  deliveriesOf(step: Step): readonly Delivery[]
  /** The endpoints of a product that are enabled and want a type. */
  wanting(product: string, type: HookType): readonly WebhookEndpoint[]
}

const none: readonly Delivery[] = []

export function createSubscribers(): Subscribers {
  let byProduct = new Map<string, readonly WebhookEndpoint[]>()
  return {
    replace(endpoints) {
      byProduct = Map.groupBy(
        endpoints.filter(({ enabled }) => enabled),
        ({ product }) => product,
      )
    },
    wanting: (product, type) => (byProduct.get(product) ?? []).filter((endpoint) => wants(endpoint, type)),
    deliveriesOf(step) {
      const { call, event } = step
      const endpoints = byProduct.get(call.product)
      if (endpoints === undefined) return none
      return hookEventsOf(step).flatMap((told) => {
        const { type } = told
        const wanting = endpoints.filter((endpoint) => wants(endpoint, type))
        if (wanting.length === 0) return none
        const body = callHookBody(told, step)
        return wanting.map(({ id }) => ({
          id: newDeliveryId(event.at),
          endpointId: id,
          subject: call.callUuid,
          version: call.version,
          type,
          body,
          createdAt: event.at,
        }))
      })
    },
  }
}

/** Null: all types of calls. */
const wants = ({ events }: WebhookEndpoint, type: HookType) =>
  events === null ? type.startsWith('call.') : events.includes(type)

/** The columns of a delivery as it is written, in order. */
export const deliveryColumns = ['id', 'endpoint_id', 'subject', 'version', 'type', 'body', 'created_at']

export function deliveryValues({ id, endpointId, subject, version, type, body, createdAt }: Delivery): RowValue[] {
  return [id, endpointId, subject, version, type, body, createdAt]
}

export interface ClaimedRow {
  id: string
  endpoint_id: string
  subject: string
  version: number
  type: string
  body: string
  created_at: number
  attempts: number
  ended_at: number | null
}

export const claimedColumns = [...deliveryColumns, 'attempts', 'ended_at']

export function claimedOf(row: ClaimedRow) {
  const { id, subject, version, type, body, attempts } = row
  const [endpointId, createdAt] = [row.endpoint_id, row.created_at]
  // An end of a pending delivery means that somebody asked for it again.
  return { id, endpointId, subject, version, type, body, createdAt, attempts, isAskedFor: row.ended_at !== null }
}

export interface DeliveryRow {
  id: string
  endpoint_id: string
  type: string
  created_at: number
  status: 'pending' | 'delivered' | 'failed'
  attempts: number
  due_at: number | null
  ended_at: number | null
  response_status: number | null
  response: string | null
}

export const recordColumns = [
  'id',
  'endpoint_id',
  'type',
  'created_at',
  'status',
  'attempts',
  'due_at',
  'ended_at',
  'response_status',
  'response',
]

export function recordOf(row: DeliveryRow) {
  const { id, type, status, attempts, response } = row
  return {
    id,
    endpointId: row.endpoint_id,
    type,
    createdAt: row.created_at,
    status,
    attempts,
    dueAt: row.due_at,
    endedAt: status === 'pending' ? null : row.ended_at,
    responseStatus: row.response_status,
    response,
  }
}

export interface StuckRow extends DeliveryRow {
  product: string
  url: string
}

export const stuckOf = (row: StuckRow) => ({ ...recordOf(row), product: row.product, url: row.url })

/** A failed delivery is looked for among this number of pending deliveries of an endpoint, the oldest first. */
export const stuckLookedAt = 1_000

export interface EndpointRow {
  id: string
  product: string
  url: string
  events: string | null
  description: string | null
  /** SQLite has no booleans. */
  enabled: boolean | number
  secret: string
  old_secret: string | null
  old_secret_until: number | null
  created_at: number
}

export const endpointColumns = [
  'id',
  'product',
  'url',
  'events',
  'description',
  'enabled',
  'secret',
  'old_secret',
  'old_secret_until',
  'created_at',
]

export function endpointOf(row: EndpointRow): WebhookEndpoint {
  const { id, product, url, description, secret } = row
  return {
    id,
    product,
    url,
    events: row.events === null ? null : (JSON.parse(row.events) as HookType[]),
    description,
    enabled: Boolean(row.enabled),
    secret,
    oldSecret: row.old_secret,
    oldSecretUntil: row.old_secret_until,
    createdAt: row.created_at,
  }
}

/** The values of an endpoint by the names of its columns; of what is not given there is none. */
export function endpointValues(endpoint: Partial<WebhookEndpoint>): [column: string, value: RowValue | boolean][] {
  const values: Record<string, RowValue | boolean | undefined> = {
    id: endpoint.id,
    product: endpoint.product,
    url: endpoint.url,
    events: endpoint.events && JSON.stringify(endpoint.events),
    description: endpoint.description,
    enabled: endpoint.enabled,
    secret: endpoint.secret,
    old_secret: endpoint.oldSecret,
    old_secret_until: endpoint.oldSecretUntil,
    created_at: endpoint.createdAt,
  }
  return Object.entries(values).filter((entry): entry is [string, RowValue | boolean] => entry[1] !== undefined)
}
