// biome-ignore-all lint/performance/noBarrelFile: the one face of the package
/**
 * Ringwire for application backends, on Node 20 and newer and on Bun.
 *
 *   const ringwire = createRingwire()                          RINGWIRE_URL, RINGWIRE_KEY_ID and RINGWIRE_KEY_SECRET, or options
 *   await ringwire.token({ user_id, role, display_name, … })   → a session token for a client
 *   await ringwire.calls.end(call_uuid)
 *   await ringwire.webhooks.create({ url })                    → an endpoint, and its secret
 *   webhooks.verify({ payload, headers, secret })              → the event, or an error
 */
import { RingwireError } from './error.ts'
import { checkOptions, type RingwireOptions } from './options.ts'
import { createSend, type Query, textOf } from './send.ts'
import type {
  Call,
  CallFilter,
  CallPage,
  DeliveryFilter,
  DeliveryPage,
  Group,
  GroupName,
  GroupPage,
  GroupRequest,
  GroupSummary,
  Participant,
  ParticipantErased,
  ParticipantExport,
  ParticipantState,
  ProductChange,
  ProductChanged,
  ProductSettings,
  SessionToken,
  Timeline,
  TokenRequest,
  TransferRequest,
  Webhook,
  WebhookChange,
  WebhookDelivery,
  WebhookRequest,
  WebhookRotated,
  WebhookWithSecret,
} from './types.ts'
import { verify, verifyInvite } from './webhooks.ts'

export { RingwireError } from './error.ts'
export type { RingwireOptions } from './options.ts'
export type * from './types.ts'
export type * from './webhook-events.ts'
export { type VerifyOptions, WebhookVerificationError } from './webhooks.ts'
export const webhooks = { verify, verifyInvite } as const

/** Every method rejects with a `RingwireError`. */
export interface Ringwire {
  /** A session token for a client of a participant that the backend has authenticated. */
  token(request: TokenRequest): Promise<SessionToken>
  readonly calls: {
    /** One page, newest first. */
    list(filter?: CallFilter): Promise<CallPage>
    /** Every call, page after page, newest first. */
    all(filter?: Omit<CallFilter, 'cursor' | 'refused'>): AsyncIterableIterator<Call>
    /** Undefined where the product has no such call. */
    get(callUuid: string): Promise<Call | undefined>
    /** Its events and sightings, and why a phone did not ring; undefined if nothing is known of it. */
    timeline(callUuid: string): Promise<Timeline | undefined>
    /** Ends it, and tells both sides; one that is over stays as it is. `reason` stays with the call's events. */
    end(callUuid: string, options?: { reason?: string }): Promise<Call>
    /**
     * Has it ring at the target. The side `by` leaves the call when that answers, and the other one goes on with the target.
     * Answers the uuid of the call that rings.
     */
    transfer(callUuid: string, transfer: TransferRequest): Promise<string>
  }
  readonly participants: {
    get(participant: Participant): Promise<ParticipantState>
    /**
     * Closes its sockets, and takes its tokens back: those that were issued before now, or before `until` where that is
     * later. Answers from when on tokens count.
     */
    disconnect(participant: Participant, options?: { until?: string | Date }): Promise<Date>
    /**
     * Erases what is kept of it: its sockets are closed, its live calls end, and nothing names it any more. May take a minute,
     * unless `timeoutMs` says otherwise. If it fails, ask again.
     */
    erase(participant: Participant, options?: { timeoutMs?: number }): Promise<ParticipantErased>
    /** Everything that is kept of it, in memory; of very much ask the service itself, and read it as it comes. */
    export(participant: Participant, options?: { timeoutMs?: number }): Promise<ParticipantExport>
  }
  /** Participants of one role who can be called together. */
  readonly groups: {
    /** One page, by role and name, without the members. `limit` is 1 to 100. */
    list(filter?: { limit?: number; cursor?: string }): Promise<GroupPage>
    /** Every group, page after page. */
    all(): AsyncIterableIterator<GroupSummary>
    /** Undefined where the product has no such group. */
    get(name: GroupName): Promise<Group | undefined>
    /** Makes it, or replaces it whole. */
    put(name: GroupName, group: GroupRequest): Promise<Group>
    /** A group that the product does not have is `NOT_FOUND`. */
    delete(name: GroupName): Promise<void>
  }
  /** The settings of the product. */
  readonly product: {
    get(): Promise<ProductSettings>
    /**
     * Settings that are not given stay as they are. A bad setting is `INVALID_REQUEST_BODY`, and the message says which
     * one.
     */
    change(changes: ProductChange): Promise<ProductChanged>
  }
  /** The endpoints for webhooks. Of an endpoint that the product does not have all but `get` reject with `NOT_FOUND`. */
  readonly webhooks: {
    /** All endpoints of the product: 20 at the most. */
    list(): Promise<Webhook[]>
    /** Undefined where the product has no such endpoint. */
    get(id: string): Promise<Webhook | undefined>
    /**
     * Only this answer has its secret. A bad field is `INVALID_REQUEST_BODY`, and the message says which one.
     */
    create(request: WebhookRequest): Promise<WebhookWithSecret>
    change(id: string, changes: WebhookChange): Promise<Webhook>
    /** With all of its deliveries. */
    delete(id: string): Promise<void>
    /** Makes a new secret, which only the answer has. For 24 h the previous one signs, too. */
    rotate(id: string): Promise<WebhookRotated>
    /** Has a `webhook.test` sent; answers the id of its delivery. */
    test(id: string): Promise<string>
    /** One page of what was sent, and of what is to be; newest first. */
    deliveries(id: string, filter?: DeliveryFilter): Promise<DeliveryPage>
    /** Every delivery, page after page, newest first. */
    allDeliveries(id: string, filter?: Omit<DeliveryFilter, 'cursor'>): AsyncIterableIterator<WebhookDelivery>
    /** Has a delivery that is over sent once more, under the same id; one that is pending is `NOT_FOUND`. */
    retry(id: string, deliveryId: string): Promise<void>
  }
}

/** Throws a `RingwireError` (INVALID_ARGUMENT) that names the option that is missing or wrong, and its environment variable. */
export function createRingwire(options: RingwireOptions = {}): Ringwire {
  const checked = checkOptions(options)
  const { product } = checked
  const send = createSend(checked)
  const server = <T>(method: string, path: string, query: Query = {}, body?: object, limitMs?: number) =>
    send<T>(method, `/v1/server/${path}`, { ...query, product }, body, limitMs)

  return {
    token: (request) =>
      send('POST', '/v1/call/session-token', {}, { ...request, ...(product !== undefined && { product }) }),
    calls: callsOf(server),
    participants: participantsOf(server),
    groups: groupsOf(server),
    product: { get: () => server('GET', 'product'), change: (changes) => server('PATCH', 'product', {}, changes) },
    webhooks: webhooksOf(server),
  }
}

type Server = <T>(method: string, path: string, query?: Query, body?: object, limitMs?: number) => Promise<T>

function callsOf(server: Server): Ringwire['calls'] {
  const pathOf = (callUuid: string) => `calls/${encodeURIComponent(callUuid)}`
  return {
    async list({ refused: withRefused = false, ...filter } = {}) {
      const query = { ...filter, ...(withRefused && { refused: 1 }) }
      const { data, refused, next_cursor } = await server<CallPage>('GET', 'calls', query)
      return { data, ...(refused !== undefined && { refused }), next_cursor }
    },
    all: (filter = {}) => all(server, 'calls', { ...filter }),
    get: (callUuid) => found(server<{ call: Call }>('GET', pathOf(callUuid)).then(({ call }) => call)),
    timeline: (callUuid) =>
      found(
        server<Timeline>('GET', `${pathOf(callUuid)}/timeline`).then(({ call, entries, summary }) => ({
          ...{ call, entries, summary },
        })),
      ),
    async end(callUuid, more = {}) {
      return (await server<{ call: Call }>('POST', `${pathOf(callUuid)}/end`, {}, more)).call
    },
    async transfer(callUuid, transfer) {
      const begun = await server<{ new_call_uuid: string }>('POST', `${pathOf(callUuid)}/transfer`, {}, transfer)
      return begun.new_call_uuid
    },
  }
}

function participantsOf(server: Server): Ringwire['participants'] {
  /** A participant in the path, or in the query if a path cannot carry its name. */
  function of<T>(method: string, who: Participant, below = '', body?: object, limitMs?: number): Promise<T> {
    const { role, user_id } = who
    const query = isDotSegment(role) || isDotSegment(user_id) ? { role, user_id } : undefined
    const name = query === undefined ? `/${encodeURIComponent(role)}/${encodeURIComponent(user_id)}` : ''
    return server<T>(method, `participants${name}${below}`, query, body, limitMs)
  }

  return {
    async get(participant) {
      const state = await of<ParticipantState>('GET', participant)
      const { online, sessions, devices, live_calls } = state
      return { online, sessions, devices, live_calls }
    },
    async disconnect(participant, { until } = {}) {
      const body = until === undefined ? {} : { until: textOf(until) }
      return new Date((await of<{ tokens_from: string }>('POST', participant, '/disconnect', body)).tokens_from)
    },
    async erase(participant, { timeoutMs: limitMs = longMs } = {}) {
      const deadline = Date.now() + limitMs
      for (;;) {
        try {
          const leftMs = Math.max(1, deadline - Date.now())
          const answer = await of<Answer<ParticipantErased>>('DELETE', participant, '', undefined, leftMs)
          return withoutSuccess(answer)
        } catch (error) {
          // Of very much it says that it goes on, and when to ask again.
          const askedMs = error instanceof RingwireError && error.status === 503 ? error.retryAfterMs : undefined
          const againMs = Math.max(minPauseMs, askedMs ?? Number.POSITIVE_INFINITY)
          if (Date.now() + againMs >= deadline) throw error
          await new Promise((resolve) => setTimeout(resolve, againMs))
        }
      }
    },
    async export(participant, { timeoutMs: limitMs = longMs } = {}) {
      const answer = await of<Answer<ParticipantExport>>('GET', participant, '/export', undefined, limitMs)
      return withoutSuccess(answer)
    },
  }
}

function groupsOf(server: Server): Ringwire['groups'] {
  const pathOf = ({ role, group }: GroupName) => `groups/${encodeURIComponent(role)}/${encodeURIComponent(group)}`
  return {
    list: (filter = {}) => page(server, 'groups', { ...filter }),
    all: () => all(server, 'groups', {}),
    get: (name) => found(server('GET', pathOf(name))),
    put: (name, group) => server('PUT', pathOf(name), {}, group),
    async delete(name) {
      await server('DELETE', pathOf(name))
    },
  }
}

function webhooksOf(server: Server): Ringwire['webhooks'] {
  const pathOf = (id: string) => `webhooks/${encodeURIComponent(id)}`
  return {
    list: async () => (await page<Webhook>(server, 'webhooks', {})).data,
    get: (id) => found(server('GET', pathOf(id))),
    create: (request) => server('POST', 'webhooks', {}, request),
    change: (id, changes) => server('PATCH', pathOf(id), {}, changes),
    async delete(id) {
      await server('DELETE', pathOf(id))
    },
    rotate: (id) => server('POST', `${pathOf(id)}/rotate`),
    async test(id) {
      return (await server<{ delivery_id: string }>('POST', `${pathOf(id)}/test`)).delivery_id
    },
    deliveries: (id, filter = {}) => page(server, `${pathOf(id)}/deliveries`, { ...filter }),
    allDeliveries: (id, filter = {}) => all(server, `${pathOf(id)}/deliveries`, { ...filter }),
    async retry(id, deliveryId) {
      await server('POST', `${pathOf(id)}/deliveries/${encodeURIComponent(deliveryId)}/retry`)
    },
  }
}

async function page<T>(server: Server, path: string, filter: Query): Promise<Page<T>> {
  const { data, next_cursor } = await server<Page<T>>('GET', path, filter)
  return { data, next_cursor }
}

async function* all<T>(server: Server, path: string, filter: Query): AsyncGenerator<T> {
  for (let cursor: string | undefined, isLast = false; !isLast; ) {
    const { data, next_cursor }: Page<T> = await page(server, path, {
      ...filter,
      ...(cursor !== undefined && { cursor }),
    })
    yield* data
    cursor = next_cursor ?? undefined
    isLast = cursor === undefined
  }
}

function isDotSegment(name: string): boolean {
  return name === '.' || name === '..'
}

/** Time limit of requests that go over all records of a participant, in ms. */
const longMs = 60_000
/** A `Retry-After: 0` is no reason to ask without a pause. */
const minPauseMs = 250

interface Page<T> {
  data: T[]
  next_cursor: string | null
}

type Answer<T> = T & { success: true }
function withoutSuccess<T>({ success: _, ...answer }: Answer<T>): Omit<Answer<T>, 'success'> {
  return answer
}

async function found<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer
  } catch (error) {
    if (error instanceof RingwireError && error.code === 'NOT_FOUND') return undefined
    throw error
  }
}
