/**
 * Endpoints that an application backend asks with its product credentials: `/v1/server/…` [SRV1].
 *
 *   createProductEndpoint(deps, ({ product, params, query, body }) => json(200, …))
 */
import type { PathParams } from '@ringwire/protocol/routes'
import { readJsonObject } from '../http/body.ts'
import { failure } from '../http/replies.ts'
import type { Limits } from '../limits/limits.ts'
import type { AuditActor } from '../ports/audit.ts'
import type { MaybePromise } from '../ports/maybe.ts'
import { type CredentialsDeps, createCredentialsCheck, productOf, refusedProduct } from './credentials.ts'

export interface ProductEndpointDeps extends CredentialsDeps {
  readonly limits: Limits
}

/** A request of somebody who may ask about the product. */
export interface ProductRequest {
  /** Whom the audit log names where something is changed. */
  readonly actor: AuditActor
  readonly product: string
  readonly params: PathParams
  readonly query: URLSearchParams
  /** The body that was sent; empty if there was none, and for GET and DELETE. Each endpoint checks its fields itself. */
  readonly body: Readonly<Record<string, unknown>>
  /** Aborted when nobody waits for the answer any more. */
  readonly signal: AbortSignal
}

const nothing = {}

/** `begun`: it may have been done, in part or later. */
export type Outcome = 'done' | 'begun'

/** Hears of each request that was done or begun, before its answer goes out. */
export type Heard = (asked: ProductRequest, outcome: Outcome) => Promise<void>

export interface ProductEndpoint {
  (request: Request, address: string | undefined, params: PathParams, heard?: Heard): Promise<Response>
  /** Answers operators, who may ask about the product by other means [ADM2]. */
  readonly answer: (asked: ProductRequest, heard?: Heard) => Promise<Response>
}

/** Answers a request. An answer calls `begun` if the change goes on after it: nobody may ask again when it is done. */
export type Answer = (asked: ProductRequest, begun: () => Promise<void>) => MaybePromise<Response>

export function createProductEndpoint(
  deps: ProductEndpointDeps,
  answer: Answer,
  /** The bound of a body, in bytes, where it is not that of all others. */
  maxBodyBytes?: number,
): ProductEndpoint {
  const { limits } = deps
  const check = createCredentialsCheck(deps, { ofAddress: limits.serverRequest, ofKey: limits.serverKey })

  async function answerHeard(asked: ProductRequest, heard: Heard = async () => {}): Promise<Response> {
    try {
      const response = await answer(asked, () => heard(asked, 'begun'))
      if (response.ok) await heard(asked, 'done')
      return response
    } catch (error) {
      // It may have done a part before it failed. A request that repeats it may find nothing left to do [ADM3].
      await heard(asked, 'begun')
      throw error
    }
  }

  async function endpoint(
    request: Request,
    address: string | undefined,
    params: PathParams,
    heard?: Heard,
  ): Promise<Response> {
    const credentials = await check(request, address)
    if (!credentials.ok) return credentials.response
    const query = new URL(request.url).searchParams
    const body = await readBody(request, maxBodyBytes)
    if (body instanceof Response) return body
    const given = query.get('product') ?? body.product ?? ''
    if (typeof given !== 'string') return failure('INVALID_REQUEST_BODY', { message: 'product must be a string.' })
    const product = productOf(given.trim() === '' ? '' : given, credentials.key)
    const refused = refusedProduct(product, credentials.key)
    if (refused !== undefined) return refused
    const actor = { kind: 'key', name: credentials.key.keyId } as const
    return answerHeard({ actor, product, params, query, body, signal: request.signal }, heard)
  }
  return Object.assign(endpoint, { answer: answerHeard })
}

/** What was sent as JSON, or the refusal. Empty for GET, HEAD and DELETE, which have no body. */
export async function readBody(
  request: Request,
  maxBodyBytes?: number,
): Promise<Readonly<Record<string, unknown>> | Response> {
  const hasBody = request.method !== 'GET' && request.method !== 'HEAD' && request.method !== 'DELETE'
  if (!hasBody) return nothing
  const read = await readJsonObject(request, nothing, maxBodyBytes)
  return read.ok ? read.value : failure(read.code, 'message' in read ? { message: read.message } : {})
}
