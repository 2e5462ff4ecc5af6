/** What a process with stores answers operators: everything below /admin/api/ that is about more than the process [ADM2]. */

import { auditPage } from '../audit/page.ts'
import { readLimit } from '../history/history.ts'
import type { SeenCalls } from '../history/seen-calls.ts'
import { failure, json, retryAfter } from '../http/replies.ts'
import type { Journal } from '../observability/journal.ts'
import type { OperatorAsk } from '../observability/status.ts'
import type { AuditStore } from '../ports/audit.ts'
import type { ProductStore } from '../ports/product-store.ts'
import { StoreError } from '../ports/store-error.ts'
import type { Heard } from '../products/endpoint.ts'
import { createProductApi, type ProductEndpoints } from './product-api.ts'
import { searchCalls } from './search.ts'

export interface OperatorAnswersOptions {
  readonly endpoints: ProductEndpoints
  /** Hears of what is done to products, by the name of the endpoint. */
  readonly heard: (name: string) => Heard
  readonly audit: Pick<AuditStore, 'list'>
  readonly seenCalls: SeenCalls
  readonly products: Pick<ProductStore, 'listKeys' | 'listSettings'>
  readonly journal: Pick<Journal, 'failed'>
  readonly now: () => number
}

export type OperatorAnswers = (asked: OperatorAsk) => Promise<Response>

export function createOperatorAnswers(options: OperatorAnswersOptions): OperatorAnswers {
  const { seenCalls, products, journal, now } = options
  const askProduct = createProductApi(options.endpoints, options.heard)

  async function search(product: string, query: URLSearchParams): Promise<Response> {
    const text = (name: string) => query.get(name) ?? undefined
    const filter = { status: text('status'), since: text('since'), cursor: text('cursor') }
    const found = await searchCalls(seenCalls, product, text('q') ?? '', filter)
    if (!found.ok) return failure('INVALID_QUERY', { message: `${found.field} ${found.message}.` })
    const { ok: _, ...page } = found
    return json(200, { success: true, ...page })
  }

  async function listAudit(query: URLSearchParams): Promise<Response> {
    const page = await auditPage(options.audit, {
      product: query.get('product') || undefined,
      limit: readLimit(query.get('limit') ?? undefined),
      cursor: query.get('cursor') || undefined,
    })
    return json(200, { success: true, ...page })
  }

  async function answer(asked: OperatorAsk): Promise<Response> {
    const request = requestOf(asked)
    const [first = '', product = '', ...rest] = asked.path.split('/')
    const isRead = request.method === 'GET' || request.method === 'HEAD'
    if (asked.path === 'audit') return isRead ? listAudit(new URL(request.url).searchParams) : readsOnly()
    if (first !== 'products') return failure('NOT_FOUND')
    if (product !== '') {
      const name = decoded(product)
      if (name === undefined) return failure('NOT_FOUND')
      const path = rest.join('/')
      if (path === 'search') return isRead ? search(name, new URL(request.url).searchParams) : readsOnly()
      return askProduct(name, path, request, { kind: 'operator', name: asked.operator })
    }
    return isRead ? json(200, { success: true, data: await productNames(products, now()) }) : readsOnly()
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

const readsOnly = () => failure('METHOD_NOT_ALLOWED', { headers: { Allow: 'GET, HEAD' } })

/** Of all that have a key, or settings of their own. */
async function productNames(
  products: OperatorAnswersOptions['products'],
  now: number,
): Promise<readonly { readonly product: string }[]> {
  const [keys, settings] = [await products.listKeys(now), await products.listSettings()]
  const names = new Set([...keys.flatMap((key) => key.products), ...settings.map(({ product }) => product)])
  return [...names].sort().map((product) => ({ product }))
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/** Subjects read requests: this one has no address, and nobody who might go away. */
function requestOf({ method, path, query, body }: OperatorAsk): Request {
  const hasBody = method !== 'GET' && method !== 'HEAD' && body !== ''
  return new Request(`http://operator/${path}?${query}`, { method, ...(hasBody && { body }) })
}
