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
import type {
  Call,
  CallFilter,
  CallPage,
  DeliveryFilter,
  DeliveryPage,
  Participant,
  ParticipantErased,
  ParticipantExport,
  ParticipantState,
  SessionToken,
  Timeline,
  TokenRequest,
  Webhook,
  WebhookChange,
  WebhookDelivery,
  WebhookRequest,
  WebhookRotated,
  WebhookWithSecret,
} from './types.ts'
import { verify } from './webhooks.ts'

export { RingwireError } from './error.ts'
export type { RingwireOptions } from './options.ts'
export type * from './types.ts'
export type * from './webhook-events.ts'
export { type VerifyOptions, WebhookVerificationError } from './webhooks.ts'
export const webhooks = { verify } as const

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
    /** What happened to it, and why a phone did not ring; undefined where nothing is known of it. */
    timeline(callUuid: string): Promise<Timeline | undefined>
    /** Ends it, and tells both sides; one that is over stays as it is. `reason` stays with the call's events. */
    end(callUuid: string, options?: { reason?: string }): Promise<Call>
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
     * unless `timeoutMs` says otherwise. Where it fails, ask again.
     */
    erase(participant: Participant, options?: { timeoutMs?: number }): Promise<ParticipantErased>
    /** Everything that is kept of it, in memory; of very much ask the service itself, and read it as it comes. */
    export(participant: Participant, options?: { timeoutMs?: number }): Promise<ParticipantExport>
  }
  /** Where webhooks are sent. Of an endpoint that the product does not have all but `get` reject with `NOT_FOUND`. */
  readonly webhooks: {
    /** All endpoints of the product: 20 at the most. */
    list(): Promise<Webhook[]>
    /** Undefined where the product has no such endpoint. */
    get(id: string): Promise<Webhook | undefined>
    /** The answer alone has its secret. What an endpoint may not be is `INVALID_REQUEST_BODY`, and the message says which field. */
    create(request: WebhookRequest): Promise<WebhookWithSecret>
    change(id: string, changes: WebhookChange): Promise<Webhook>
    /** With all of its deliveries. */
    delete(id: string): Promise<void>
    /** Makes a new secret, which the answer alone has. For 24 h the one before signs, too. */
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
  const { base, keyId, secret, product, timeoutMs, ask } = checkOptions(options)
  const headers = { 'X-SVC-Product-Key-ID': keyId, 'X-SVC-Product-Secret': secret, 'Content-Type': 'application/json' }

  async function send<T>(
    method: string,
    path: string,
    query: Query = {},
    body?: object,
    limitMs = timeoutMs,
  ): Promise<T> {
    const init: RequestInit = {
      method,
      headers,
      redirect: 'error',
      signal: AbortSignal.timeout(limitMs),
      ...(body !== undefined && { body: JSON.stringify(body) }),
    }
    let response: Response
    let text: string
    try {
      response = await ask(`${base}${path}${queryText(query)}`, init)
      text = await response.text()
    } catch (cause) {
      throw new RingwireError('NETWORK', noAnswer(base, cause, limitMs), { cause })
    }
    const answer = method === 'DELETE' && response.status === 204 ? {} : read(text)
    if (response.ok && answer !== undefined) return answer as T
    throw errorOf(base, response, answer)
  }

  const server = <T>(method: string, path: string, query: Query = {}, body?: object, limitMs?: number) =>
    send<T>(method, `/v1/server/${path}`, { ...query, product }, body, limitMs)

  async function page<T>(path: string, filter: Query): Promise<Page<T>> {
    const { data, next_cursor } = await server<Page<T>>('GET', path, filter)
    return { data, next_cursor }
  }

  async function* all<T>(path: string, filter: Query): AsyncGenerator<T> {
    for (let cursor: string | undefined, isLast = false; !isLast; ) {
      const { data, next_cursor }: Page<T> = await page(path, { ...filter, ...(cursor !== undefined && { cursor }) })
      yield* data
      cursor = next_cursor ?? undefined
      isLast = cursor === undefined
    }
  }

  const callPath = (callUuid: string) => `calls/${encodeURIComponent(callUuid)}`
  /** A participant in the path, or in the query if a path cannot carry its name. */
  function ofParticipant<T>(method: string, who: Participant, below = '', body?: object, limitMs?: number): Promise<T> {
    const { role, user_id } = who
    const query = isDotSegment(role) || isDotSegment(user_id) ? { role, user_id } : undefined
    const name = query === undefined ? `/${encodeURIComponent(role)}/${encodeURIComponent(user_id)}` : ''
    return server<T>(method, `participants${name}${below}`, query, body, limitMs)
  }
  const webhookPath = (id: string) => `webhooks/${encodeURIComponent(id)}`

  return {
    token: (request) =>
      send('POST', '/v1/call/session-token', {}, { ...request, ...(product !== undefined && { product }) }),
    calls: {
      async list({ refused: withRefused = false, ...filter } = {}) {
        const query = { ...filter, ...(withRefused && { refused: 1 }) }
        const { data, refused, next_cursor } = await server<CallPage>('GET', 'calls', query)
        return { data, ...(refused !== undefined && { refused }), next_cursor }
      },
      all: (filter = {}) => all('calls', { ...filter }),
      get: (callUuid) => found(server<{ call: Call }>('GET', callPath(callUuid)).then(({ call }) => call)),
      timeline: (callUuid) =>
        found(
          server<Timeline>('GET', `${callPath(callUuid)}/timeline`).then(({ call, entries, summary }) => ({
            ...{ call, entries, summary },
          })),
        ),
      async end(callUuid, more = {}) {
        return (await server<{ call: Call }>('POST', `${callPath(callUuid)}/end`, {}, more)).call
      },
    },
    participants: {
      async get(participant) {
        const state = await ofParticipant<ParticipantState>('GET', participant)
        const { online, sessions, devices, live_calls } = state
        return { online, sessions, devices, live_calls }
      },
      async disconnect(participant, { until } = {}) {
        const body = until === undefined ? {} : { until: textOf(until) }
        return new Date(
          (await ofParticipant<{ tokens_from: string }>('POST', participant, '/disconnect', body)).tokens_from,
        )
      },
      async erase(participant, { timeoutMs: limitMs = longMs } = {}) {
        const deadline = Date.now() + limitMs
        for (;;) {
          try {
            const leftMs = Math.max(1, deadline - Date.now())
            const answer = await ofParticipant<Answer<ParticipantErased>>('DELETE', participant, '', undefined, leftMs)
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
        const answer = await ofParticipant<Answer<ParticipantExport>>('GET', participant, '/export', undefined, limitMs)
        return withoutSuccess(answer)
      },
    },
    webhooks: {
      list: async () => (await page<Webhook>('webhooks', {})).data,
      get: (id) => found(server('GET', webhookPath(id))),
      create: (request) => server('POST', 'webhooks', {}, request),
      change: (id, changes) => server('PATCH', webhookPath(id), {}, changes),
      async delete(id) {
        await server('DELETE', webhookPath(id))
      },
      rotate: (id) => server('POST', `${webhookPath(id)}/rotate`),
      async test(id) {
        return (await server<{ delivery_id: string }>('POST', `${webhookPath(id)}/test`)).delivery_id
      },
      deliveries: (id, filter = {}) => page(`${webhookPath(id)}/deliveries`, { ...filter }),
      allDeliveries: (id, filter = {}) => all(`${webhookPath(id)}/deliveries`, { ...filter }),
      async retry(id, deliveryId) {
        await server('POST', `${webhookPath(id)}/deliveries/${encodeURIComponent(deliveryId)}/retry`)
      },
    },
  }
}

function isDotSegment(name: string): boolean {
  return name === '.' || name === '..'
}

/** What takes time with what there is of a participant, in ms. */
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

type Query = Readonly<Record<string, string | number | Date | undefined>>

const textOf = (value: string | number | Date) => (value instanceof Date ? value.toISOString() : String(value))

function queryText(query: Query): string {
  const given = Object.entries(query).flatMap(([name, value]): [string, string][] =>
    value === undefined ? [] : [[name, textOf(value)]],
  )
  return given.length === 0 ? '' : `?${new URLSearchParams(given)}`
}

function read(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}

function noAnswer(base: string, cause: unknown, limitMs: number): string {
  const { origin } = new URL(base)
  if (cause instanceof Error && cause.name === 'TimeoutError') return `${origin} did not answer within ${limitMs} ms.`
  // Node has the reason in the cause of its error, and Bun in the error itself.
  const codes = [cause, (cause as { cause?: unknown } | undefined)?.cause].map(
    (one) => (one as { code?: unknown })?.code,
  )
  const code = codes.find((one) => typeof one === 'string')
  return `No service answers at ${origin}${code === undefined ? '' : ` (${code})`}. Start it, or give another url (RINGWIRE_URL).`
}

function errorOf(base: string, response: Response, answer: object | undefined): RingwireError {
  const { status } = response
  const { code, message } = (answer as { error?: { code?: unknown; message?: unknown } } | undefined)?.error ?? {}
  const seconds = Number(response.headers.get('retry-after') ?? Number.NaN)
  const retryAfterMs = Number.isFinite(seconds) ? seconds * 1000 : undefined
  if (typeof code !== 'string' || typeof message !== 'string')
    return new RingwireError(
      'UNEXPECTED_ANSWER',
      `${new URL(base).origin} answered ${status}, but not as Ringwire does. Look whether url (RINGWIRE_URL) names the service.`,
      { status },
    )
  return new RingwireError(code, message, { status, retryAfterMs })
}
