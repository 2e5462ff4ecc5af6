/**
 * The endpoints for application backends, for operators: `products/{product}/calls` is `/v1/server/calls` of that product
 * [ADM2]. The same code answers, so an operator sees what a backend sees.
 */
import { routeAt } from '@ringwire/protocol/routes'
import { failure } from '../http/replies.ts'
import type { AuditActor } from '../ports/audit.ts'
import { type Heard, type ProductEndpoint, readBody } from '../products/endpoint.ts'

/** By their names in the registry. */
export type ProductEndpoints = Readonly<Record<string, ProductEndpoint>>

/** `path`: what follows /v1/server/. `heard` hears of each request that was done or begun. */
export function createProductApi(endpoints: ProductEndpoints, heard: (name: string) => Heard) {
  return async (product: string, path: string, request: Request, actor: AuditActor): Promise<Response> => {
    const found = routeAt(`/v1/server/${path}`)
    if (found === undefined) return failure('NOT_FOUND')
    const method = request.method === 'HEAD' ? 'GET' : request.method
    const definition = found.route.endpoints.find((endpoint) => endpoint.method === method)
    const Allow = found.route.endpoints.map((endpoint) => endpoint.method).join(', ')
    if (definition === undefined) return failure('METHOD_NOT_ALLOWED', { headers: { Allow } })
    const endpoint = Object.hasOwn(endpoints, definition.name) ? endpoints[definition.name] : undefined
    if (endpoint === undefined) return failure('NOT_FOUND')
    const body = await readBody(request, definition.maxBodyBytes)
    if (body instanceof Response) return body
    const query = new URL(request.url).searchParams
    const asked = { actor, product, params: found.params, query, body, signal: request.signal }
    return endpoint.answer(asked, heard(definition.name))
  }
}
