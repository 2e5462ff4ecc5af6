/**
 * Endpoints that an application backend asks with its product credentials: `/v1/server/…` [SRV1].
 *
 *   createProductEndpoint(deps, ({ product, params, query, body }) => json(200, …))
 */
import type { PathParams } from '@ringwire/protocol/routes'
import { readJsonObject } from '../http/body.ts'
import { failure } from '../http/replies.ts'
import type { Limits } from '../limits/limits.ts'
import type { MaybePromise } from '../ports/maybe.ts'
import { type CredentialsDeps, createCredentialsCheck, productOf, refusedProduct } from './credentials.ts'

export interface ProductEndpointDeps extends CredentialsDeps {
  readonly limits: Limits
}

/** A request whose key may ask about the product. */
export interface ProductRequest {
  readonly product: string
  readonly params: PathParams
  readonly query: URLSearchParams
  /** What was sent; empty where nothing was, and for GET and DELETE. Each endpoint checks its fields itself. */
  readonly body: Readonly<Record<string, unknown>>
  /** Aborted when nobody waits for the answer any more. */
  readonly signal: AbortSignal
}

const nothing = {}

export function createProductEndpoint(
  deps: ProductEndpointDeps,
  answer: (asked: ProductRequest) => MaybePromise<Response>,
  /** The bound of a body, in bytes, where it is not that of all others. */
  maxBodyBytes?: number,
) {
  const { limits } = deps
  const check = createCredentialsCheck(deps, { ofAddress: limits.serverRequest, ofKey: limits.serverKey })

  return async (request: Request, address: string | undefined, params: PathParams): Promise<Response> => {
    const credentials = await check(request, address)
    if (!credentials.ok) return credentials.response
    const query = new URL(request.url).searchParams
    const hasBody = request.method !== 'GET' && request.method !== 'HEAD' && request.method !== 'DELETE'
    const read = hasBody ? await readJsonObject(request, nothing, maxBodyBytes) : { ok: true as const, value: nothing }
    if (!read.ok) return failure(read.code, 'message' in read ? { message: read.message } : {})
    const body: Readonly<Record<string, unknown>> = read.value
    const given = query.get('product') ?? body.product ?? ''
    if (typeof given !== 'string') return failure('INVALID_REQUEST_BODY', { message: 'product must be a string.' })
    const product = productOf(given.trim() === '' ? '' : given, credentials.key)
    const refused = refusedProduct(product, credentials.key)
    if (refused !== undefined) return refused
    return answer({ product, params, query, body, signal: request.signal })
  }
}
