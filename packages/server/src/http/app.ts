/**
 * The REST endpoints, whatever answers there. The only place that knows the HTTP framework.
 *
 *   const app = createHttpApp({ config, clientAddress, journal, localLimits, handlers })
 *   app.fetch(request, socketAddress) → Response | Promise<Response>
 *
 * The gateway takes every upgrade that is in order. Any other request for its path gets an error that says what is wrong.
 */
import type { EndpointName } from '@ringwire/protocol/endpoints'
import { type PathParams, type Route, routeAt, routes } from '@ringwire/protocol/routes'
import { type Context, Hono } from 'hono'
import type { Config } from '../config/config.ts'
import { allowed, type LocalLimits } from '../limits/limits.ts'
import type { Journal } from '../observability/journal.ts'
import { andThen } from '../ports/maybe.ts'
import { StoreError } from '../ports/store-error.ts'
import { saysTooLarge } from './body.ts'
import type { ClientAddress } from './client-address.ts'
import { createCors } from './cors.ts'
import { empty, failure, retryAfter } from './replies.ts'
import { targetOf } from './request-target.ts'

export interface HttpDeps {
  readonly config: Pick<Config, 'host' | 'port' | 'allowedOrigins'>
  readonly journal: Pick<Journal, 'failed'>
  readonly localLimits: Pick<LocalLimits, 'request'>
  readonly clientAddress: ClientAddress
  readonly handlers: Handlers
}

/** What answers at each endpoint of the registry. */
export type Handlers = Readonly<Record<EndpointName, Handler>>
export interface HttpApp {
  fetch(request: Request, socketAddress: string | undefined): Response | Promise<Response>
}

type Env = { Bindings: { address: string | undefined } }
type Handler = (request: Request, address: string | undefined, params: PathParams) => Response | Promise<Response>

export function createHttpApp(deps: HttpDeps): HttpApp {
  const { config, journal, localLimits, clientAddress, handlers } = deps
  const cors = createCors(config.allowedOrigins)

  const app = new Hono<Env>()
  for (const route of routes) {
    const path = route.path.replaceAll(/\{(\w+)\}/g, ':$1')
    const allow = allowOf(route)
    const grants = (c: Context<Env>) => (isReadable(route) ? cors.grants(c.req.raw.headers) : {})
    for (const { name, method } of route.endpoints) {
      app.on(method, path, async (c) => {
        const params = routeAt(targetOf(c.req.raw).path)?.params
        if (params === undefined) return failure('NOT_FOUND')
        const response = await handlers[name](c.req.raw, c.env.address, params)
        for (const [header, value] of Object.entries(grants(c))) response.headers.set(header, value)
        return response
      })
    }
    const preflight = (c: Context<Env>) => (isReadable(route) ? cors.preflight(c.req.raw.headers) : {})
    app.options(path, (c) => empty(204, { Allow: allow, ...preflight(c) }))
    app.all(path, (c) =>
      failure('METHOD_NOT_ALLOWED', {
        message: `This path does not answer ${c.req.method}. It answers ${allow}.`,
        headers: { Allow: allow, ...grants(c) },
      }),
    )
  }
  app.notFound(({ req }) => failure('NOT_FOUND', { message: nothingAt(targetOf(req.raw).path) }))
  app.onError((error, c) => unexpected(error, c, journal))
  const base = `http://${config.host.includes(':') ? `[${config.host}]` : config.host}:${config.port}`

  /** Requests that cost more to answer than to refuse are refused here, before anything else is looked at [HTTP1]. */
  function fetch(request: Request, socketAddress: string | undefined): Response | Promise<Response> {
    const address = clientAddress(request.headers, socketAddress)
    const route = routeAt(targetOf(request).path)?.route
    const counts = route?.endpoints[0]?.counts ?? 'address'
    const headers = route !== undefined && isReadable(route) ? cors.grants(request.headers) : {}
    const limit = counts === 'own' && isEndpoint(route, request.method) ? allowed : localLimits.request(address)
    if (!limit.ok && counts !== 'close') {
      return failure('RATE_LIMITED', { headers: { ...headers, ...retryAfter(limit.retryAfterMs) } })
    }
    if (saysTooLarge(request.headers, bodyBoundOf(route, request.method)))
      return failure('REQUEST_BODY_TOO_LARGE', { headers })
    const answer = app.fetch(withWholeUrl(request, base), { address })
    return limit.ok ? answer : andThen(answer, closing)
  }

  return { fetch }
}

/** A path that somebody typed, or that a proxy has changed. */
function nothingAt(path: string): string {
  const where = /^\/[\w./-]{0,80}$/.test(path) ? path : 'this path'
  return `There is nothing at ${where}. docs/generated/openapi.json lists the paths.`
}

/** Web pages of allowed origins may read what a path answers, whatever the method. */
function isReadable({ endpoints }: Route): boolean {
  return endpoints.some(({ cors }) => cors)
}

/** Only an endpoint asks limits of its own: no other method of its path gets that far. HEAD is answered as GET. */
function isEndpoint(route: Route | undefined, method: string): boolean {
  return route?.endpoints.some((it) => it.method === (method === 'HEAD' ? 'GET' : method)) ?? false
}

/** Hono answers HEAD with what GET would say, without the body. */
function allowOf({ endpoints }: Route): string {
  return [...endpoints.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method])), 'OPTIONS'].join(', ')
}

/** Undefined: that of every body. */
function bodyBoundOf(route: Route | undefined, method: string): number | undefined {
  return route?.endpoints.find((it) => it.method === method)?.maxBodyBytes
}

function closing(response: Response): Response {
  response.headers.set('Connection', 'close')
  return response
}

/** HTTP/1.0, as health probes still speak it, has no Host header, and one may be rubbish: then only the path is known. */
function withWholeUrl(request: Request, base: string): Request {
  if (URL.canParse(request.url)) return request
  const path = request.url.replace(/^https?:\/\/[^/?#]*/, '')
  return new Request(base + (path.startsWith('/') ? path : `/${path}`), request)
}

/** A store that is away is not the service's mistake, and passes; anything else is a bug. */
function unexpected(error: Error, c: Context<Env>, journal: Pick<Journal, 'failed'>): Response {
  journal.failed(error, 'a request failed', { method: c.req.method, path: c.req.path })
  if (error instanceof StoreError) return failure('SERVICE_UNAVAILABLE', { headers: retryAfter(1000) })
  return failure('INTERNAL_ERROR')
}
