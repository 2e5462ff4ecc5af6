import { randomBytes } from 'node:crypto'
import { callHookTypes, type HookType, hookTypes, type Webhook, type WebhookDelivery } from '@ringwire/protocol/backend'
import { hookBody } from '../call/hook.ts'
import type { AddressGuard } from '../outgoing/addresses.ts'
import { newWebhookSecret } from '../outgoing/signature.ts'
import { urlProblem } from '../outgoing/url.ts'
import {
  type DeliveryRecord,
  type EndpointChanges,
  newDeliveryId,
  type WebhookEndpoint,
  type WebhookStore,
} from '../ports/webhooks.ts'

/** What to do while an endpoint is developed on one machine. */
export const localHint =
  'To receive events on this machine while you develop, run: ringwire webhooks listen --product <name> --forward-to http://127.0.0.1:3000/webhooks'

/** The most endpoints that a product may have. */
export const maxEndpoints = 20
/** How long the previous secret signs, too [HOOK1]. In ms. */
const graceMs = 86_400_000
const maxDescriptionLength = 255

/** The fields of a request, as they were sent. */
export interface EndpointInput {
  readonly url?: unknown
  readonly events?: unknown
  readonly description?: unknown
  readonly enabled?: unknown
}

export type Refused = { readonly ok: false; readonly message: string }
export type Changed = { readonly ok: true; readonly endpoint: WebhookEndpoint } | Refused

export interface WebhookEndpointsOptions {
  readonly store: WebhookStore
  readonly guard: AddressGuard
  readonly now: () => number
  /** An endpoint was changed, or a delivery of it. */
  readonly onChanged: (endpointId: string) => Promise<void>
}

/** The endpoints of a product, as its backend and the command line change them [HOOK1]. */
export function createWebhookEndpoints(options: WebhookEndpointsOptions) {
  const { store, guard, now, onChanged } = options

  async function find(product: string, id: string): Promise<WebhookEndpoint | undefined> {
    return (await store.endpointsOf(product)).find((endpoint) => endpoint.id === id)
  }

  return {
    list: (product: string) => store.endpointsOf(product),
    find,
    async create(product: string, input: EndpointInput): Promise<Changed> {
      const read = readInput({ ...input, url: input.url ?? '' }, guard)
      if (!read.ok) return read
      if ((await store.endpointsOf(product)).length >= maxEndpoints) {
        return { ok: false, message: `A product has at most ${maxEndpoints} webhook endpoints.` }
      }
      const endpoint: WebhookEndpoint = {
        id: `we_${randomBytes(12).toString('hex')}`,
        product,
        url: '',
        events: null,
        description: null,
        enabled: true,
        ...read.changes,
        secret: newWebhookSecret(),
        oldSecret: null,
        oldSecretUntil: null,
        createdAt: now(),
      }
      await store.addEndpoint(endpoint)
      await onChanged(endpoint.id)
      return { ok: true, endpoint }
    },
    /** Undefined: there is none. */
    async change(product: string, id: string, input: EndpointInput): Promise<Changed | undefined> {
      const read = readInput(input, guard)
      if (!read.ok) return read
      const endpoint = await store.changeEndpoint(product, id, read.changes)
      if (endpoint === undefined) return undefined
      await onChanged(id)
      return { ok: true, endpoint }
    },
    /**
     * Gives it a new secret; undefined: there is none. While the secret before still signs, that one stays until its time
     * is over, and only the new one is replaced: a client that did not get the answer asks again, and receivers go on
     * with theirs [HOOK1].
     */
    async rotate(product: string, id: string): Promise<WebhookEndpoint | undefined> {
      const before = await find(product, id)
      if (before === undefined) return undefined
      const isAgain = before.oldSecretUntil !== null && before.oldSecretUntil > now()
      const endpoint = await store.changeEndpoint(product, id, {
        secret: newWebhookSecret(),
        ...(!isAgain && { oldSecret: before.secret, oldSecretUntil: now() + graceMs }),
      })
      if (endpoint !== undefined) await onChanged(id)
      return endpoint
    },
    async remove(product: string, id: string): Promise<boolean> {
      const isGone = await store.removeEndpoint(product, id)
      if (isGone) await onChanged(id)
      return isGone
    },
    ...createDeliveries(options, find),
  }
}

/** The deliveries to an endpoint of a product, sent and still to be sent. */
function createDeliveries(
  { store, now, onChanged }: WebhookEndpointsOptions,
  find: (product: string, id: string) => Promise<WebhookEndpoint | undefined>,
) {
  return {
    /** Sends a `webhook.test`, also to one that is disabled as soon as it is enabled; answers its `webhook-id`. */
    async test(product: string, id: string): Promise<string | undefined> {
      if ((await find(product, id)) === undefined) return undefined
      const createdAt = now()
      const deliveryId = newDeliveryId(createdAt)
      const body = hookBody('webhook.test', createdAt, { webhook_id: id })
      const delivery = {
        id: deliveryId,
        endpointId: id,
        subject: deliveryId,
        version: 1,
        type: 'webhook.test',
        body,
        createdAt,
      }
      await store.add([delivery])
      await onChanged(id)
      return deliveryId
    },
    async deliveries(
      product: string,
      id: string,
      query: { status: DeliveryRecord['status'] | undefined; limit: number; before: string | undefined },
    ): Promise<{ records: readonly DeliveryRecord[]; next: string | null } | undefined> {
      if ((await find(product, id)) === undefined) return undefined
      const found = await store.deliveries({ ...query, endpointId: id, limit: query.limit + 1 })
      const records = found.slice(0, query.limit)
      return { records, next: found.length > query.limit ? (records.at(-1)?.id ?? null) : null }
    },
    /** False: there is none that is over. */
    async retry(product: string, id: string, deliveryId: string): Promise<boolean> {
      if ((await find(product, id)) === undefined || !(await store.retry(id, deliveryId))) return false
      await onChanged(id)
      return true
    },
  }
}

export type WebhookEndpoints = ReturnType<typeof createWebhookEndpoints>

type Read = { readonly ok: true; readonly changes: EndpointChanges } | Refused

/** Null means what a new one has. */
function readInput({ url, events, description, enabled }: EndpointInput, guard: AddressGuard): Read {
  const bad = (message: string): Refused => ({ ok: false, message })
  if (url !== undefined) {
    const problem = urlProblem(url, guard, { name: 'url', hint: localHint })
    if (problem !== undefined) return bad(problem)
  }
  if (events != null && !isListOfTypes(events)) return bad(eventsRule)
  if (description != null && (typeof description !== 'string' || description.length > maxDescriptionLength)) {
    return bad(`description must be a text of at most ${maxDescriptionLength} characters.`)
  }
  if (enabled != null && typeof enabled !== 'boolean') return bad('enabled must be true or false.')
  const changes = {
    ...(url !== undefined && { url: new URL(url as string).href }),
    ...(events !== undefined && { events: events === null ? null : [...new Set(events as HookType[])] }),
    ...(description !== undefined && { description: description as string | null }),
    ...(enabled !== undefined && { enabled: (enabled as boolean | null) ?? true }),
  }
  return { ok: true, changes }
}

const eventsRule = `events must be a list of some of ${hookTypes.join(', ')}.`

/** Types as they are typed, with commas between them; null for `all` [HOOK1]. */
export function splitEvents(text: string): string[] | null {
  return text === 'all' ? null : text.split(',').map((type) => type.trim())
}

/** The same, where each has to be one that there is; all of calls where nothing is typed. */
export function readEvents(text = 'all'): { readonly ok: true; readonly types: HookType[] | null } | Refused {
  const types = splitEvents(text)
  if (types !== null && !isListOfTypes(types)) return { ok: false, message: eventsRule }
  return { ok: true, types: types as HookType[] | null }
}

function isListOfTypes(events: unknown): boolean {
  return Array.isArray(events) && events.length > 0 && events.every((type) => hookTypes.includes(type))
}

const iso = (at: number) => new Date(at).toISOString()
const isoOrNull = (at: number | null) => (at === null ? null : iso(at))

/** As it is shown; its secret only where it was made just now [HOOK1]. */
export function shownEndpoint({ id, url, events, description, enabled, createdAt }: WebhookEndpoint): Webhook {
  return { id, url, events: [...(events ?? callHookTypes)], description, enabled, created_at: iso(createdAt) }
}

export function shownDelivery(record: DeliveryRecord): WebhookDelivery {
  return {
    id: record.id,
    type: record.type,
    status: record.status,
    attempts: record.attempts,
    created_at: iso(record.createdAt),
    next_attempt_at: isoOrNull(record.dueAt === null ? null : Math.max(record.dueAt, record.createdAt)),
    ended_at: isoOrNull(record.endedAt),
    response_status: record.responseStatus,
    response: record.response,
  }
}
