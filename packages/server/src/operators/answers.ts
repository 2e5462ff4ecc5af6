/**
 * The answers for operators of a process with stores: everything below /admin/api/ that is about more than the process
 * [ADM2].
 */

import type { Audit } from '../audit/audit.ts'
import { auditPage } from '../audit/page.ts'
import { readLimit } from '../history/history.ts'
import type { SeenCalls } from '../history/seen-calls.ts'
import { failure, json, retryAfter } from '../http/replies.ts'
import type { Journal } from '../observability/journal.ts'
import type { OperatorAsk } from '../observability/status.ts'
import type { AuditStore } from '../ports/audit.ts'
import type { KeyStore, ProductStore } from '../ports/product-store.ts'
import { StoreError } from '../ports/store-error.ts'
import type { WebhookStore } from '../ports/webhooks.ts'
import type { Heard } from '../products/endpoint.ts'
import { createKeyApi } from './keys.ts'
import { createProductApi, type ProductEndpoints } from './product-api.ts'
import { searchCalls } from './search.ts'
import { webhookTroubles } from './troubles.ts'

export interface OperatorAnswersOptions {
  readonly endpoints: ProductEndpoints
  /** Hears of what is done to products, by the name of the endpoint. */
  readonly heard: (name: string) => Heard
  readonly auditStore: Pick<AuditStore, 'list'>
  readonly audit: Pick<Audit, 'record'>
  readonly seenCalls: SeenCalls
  readonly products: Pick<ProductStore, 'listSettings'> & KeyStore
  readonly webhooks: Pick<WebhookStore, 'stuck'>
  readonly journal: Pick<Journal, 'failed'>
  readonly now: () => number
}

export type OperatorAnswers = (asked: OperatorAsk) => Promise<Response>

export function createOperatorAnswers(options: OperatorAnswersOptions): OperatorAnswers {
  const { products, journal, now } = options
  const askKeys = createKeyApi(options)
  const askProduct = createProductApi(options.endpoints, options.heard)

  async function answer({ operator, ...asked }: OperatorAsk): Promise<Response> {
    const request = requestOf(asked)
    const actor = { kind: 'operator', name: operator } as const
    const [first, ...encoded] = asked.path.split('/')
    const [name, ...more] = encoded
    const query = new URL(request.url).searchParams
    if (first === 'keys') {
      const parts = encoded.map(decoded)
      return parts.every((part) => part !== undefined) ? askKeys(request, parts, actor) : failure('NOT_FOUND')
    }
    if (first === 'products' && name !== undefined && more.join('/') !== 'search') {
      const product = decoded(name)
      return product === undefined ? failure('NOT_FOUND') : askProduct(product, more.join('/'), request, actor)
    }
    const isList = name === undefined
    const isOther = isList && (first === 'audit' || first === 'failing-webhooks')
    if (first !== 'products' && !isOther) return failure('NOT_FOUND')
    if (request.method !== 'GET' && request.method !== 'HEAD')
      return failure('METHOD_NOT_ALLOWED', { headers: { Allow: 'GET, HEAD' } })
    if (first === 'failing-webhooks')
      return json(200, { success: true, data: webhookTroubles(await options.webhooks.stuck()) })
    if (first === 'audit') return listAudit(options.auditStore, query)
    return isList ? listProducts(products, now()) : searchProduct(options.seenCalls, decoded(name) ?? '', query)
  }

  return async (asked) => {
    try {
      return await answer(asked)
    } catch (error) {
      journal.failed(error, 'a request of an operator failed')
      if (error instanceof StoreError) return failure('SERVICE_UNAVAILABLE', { headers: retryAfter(1_000) })
      return failure('INTERNAL_ERROR')
    }
  }
}

async function searchProduct(seenCalls: SeenCalls, product: string, query: URLSearchParams): Promise<Response> {
  const text = (name: string) => query.get(name) ?? undefined
  const filter = { status: text('status'), since: text('since'), cursor: text('cursor') }
  const found = await searchCalls(seenCalls, product, text('q') ?? '', filter)
  if (!found.ok) return failure('INVALID_QUERY', { message: `${found.field} ${found.message}.` })
  const { ok: _, ...page } = found
  return json(200, { success: true, ...page })
}

async function listAudit(store: Pick<AuditStore, 'list'>, query: URLSearchParams): Promise<Response> {
  const page = await auditPage(store, {
    product: query.get('product') || undefined,
    limit: readLimit(query.get('limit') ?? undefined),
    cursor: query.get('cursor') || undefined,
  })
  return json(200, { success: true, ...page })
}

/** Those that have a key, or settings of their own. */
async function listProducts(products: OperatorAnswersOptions['products'], now: number): Promise<Response> {
  const [keys, settings] = [await products.listKeys(now), await products.listSettings()]
  const names = new Set([...keys.flatMap((key) => key.products), ...settings.map(({ product }) => product)])
  return json(200, { success: true, data: [...names].sort().map((product) => ({ product })) })
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/** Subjects read requests: this one has no address, and nobody who might go away. */
function requestOf({ method, path, query, body }: Omit<OperatorAsk, 'operator'>): Request {
  const hasBody = method !== 'GET' && method !== 'HEAD' && body !== ''
  return new Request(`http://operator/${path}?${query}`, { method, ...(hasBody && { body }) })
}
