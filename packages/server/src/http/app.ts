/**
 * The REST endpoints. The only place that knows the HTTP framework.
 *
 *   const app = createHttpApp({ config, clientAddress, journal, clock, products, tokens, iceServers, limits, history, health })
 *   app.fetch(request, socketAddress) → Response | Promise<Response>
 *
 * A WebSocket upgrade never comes here: the gateway takes it. What still asks for its path is told to upgrade.
 */
import { webSocketPath } from '@ringwire/protocol/subprotocol'
import { type Context, Hono } from 'hono'
import { createProductAuth } from '../auth/product-auth.ts'
import type { Tokens } from '../auth/tokens.ts'
import type { Config } from '../config.ts'
import type { HealthChecks, HealthReport } from '../health.ts'
import type { History } from '../history.ts'
import type { IceServersOf } from '../ice/ice-servers.ts'
import type { Limits } from '../limits.ts'
import type { Journal } from '../observability/journal.ts'
import { type Clock, type ProductStore, StoreError } from '../ports.ts'
import { createWsUrl } from '../ws-url.ts'
import { createCallHistoryEndpoint } from './call-history.ts'
import type { ClientAddress } from './client-address.ts'
import { createCors } from './cors.ts'
import { createIceServersEndpoint } from './ice-servers.ts'
import { empty, failure, json, retryAfter } from './replies.ts'
import { createSessionTokenEndpoint } from './session-token.ts'

export interface HttpDeps {
  readonly config: Pick<Config, 'host' | 'port' | 'publicUrl' | 'trustProxy' | 'allowedOrigins' | 'demo'>
  readonly journal: Pick<Journal, 'failed'>
  readonly clock: Clock
  readonly products: Pick<ProductStore, 'findKey'>
  readonly tokens: Tokens
  readonly iceServers: IceServersOf
  readonly turnExpiry: (now: number) => number | null
  readonly limits: Limits
  readonly history: History
  readonly health: HealthChecks
  /** The gateway's too, so that its one warning is one. */
  readonly clientAddress: ClientAddress
}

export interface HttpApp {
  fetch(request: Request, socketAddress: string | undefined): Response | Promise<Response>
}

type Env = { Bindings: { socketAddress: string | undefined } }
type Endpoint = (request: Request, address: string | undefined) => Response | Promise<Response>

interface Route {
  readonly path: string
  readonly method: 'GET' | 'POST'
  readonly endpoint: Endpoint
  /** Whether web pages may read the answer [HIST2]; never of the token endpoint [TOK3]. */
  readonly cors: boolean
}

export function createHttpApp(deps: HttpDeps): HttpApp {
  const { config, journal, clock, health, clientAddress } = deps
  const authenticate = createProductAuth({ products: deps.products, now: clock.now, demo: config.demo })
  const cors = createCors(config.allowedOrigins)
  const routes: Route[] = [
    {
      path: '/v1/call/session-token',
      method: 'POST',
      endpoint: createSessionTokenEndpoint({ ...deps, authenticate, wsUrl: createWsUrl(config) }),
      cors: false,
    },
    { path: '/v1/calls/history', method: 'GET', endpoint: createCallHistoryEndpoint(deps), cors: true },
    { path: '/v1/call/ice-servers', method: 'POST', endpoint: createIceServersEndpoint(deps), cors: true },
    { path: '/healthz', method: 'GET', endpoint: () => healthReply(health.live()), cors: false },
    { path: '/readyz', method: 'GET', endpoint: async () => healthReply(await health.ready()), cors: false },
    { path: webSocketPath, method: 'GET', endpoint: upgradeRequired, cors: false },
  ]

  const app = new Hono<Env>()
  for (const { path, method, endpoint, cors: readable } of routes) {
    // Hono answers HEAD with what GET would say, without the body.
    const allow = method === 'GET' ? 'GET, HEAD, OPTIONS' : `${method}, OPTIONS`
    const grants = (c: Context<Env>) => (readable ? cors.grants(c.req.raw.headers) : {})
    app.on(method, path, async (c) => {
      const response = await endpoint(c.req.raw, clientAddress(c.req.raw.headers, c.env.socketAddress))
      for (const [name, value] of Object.entries(grants(c))) response.headers.set(name, value)
      return response
    })
    app.options(path, (c) => empty(204, { Allow: allow, ...(readable ? cors.preflight(c.req.raw.headers) : {}) }))
    app.all(path, (c) => failure('METHOD_NOT_ALLOWED', { headers: { Allow: allow, ...grants(c) } }))
  }
  app.notFound(() => failure('NOT_FOUND'))
  app.onError((error, c) => unexpected(error, c, journal))
  const base = `http://${config.host.includes(':') ? `[${config.host}]` : config.host}:${config.port}`
  return { fetch: (request, socketAddress) => app.fetch(withWholeUrl(request, base), { socketAddress }) }
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

function healthReply(report: HealthReport): Response {
  return json(report.status, report.body, report.status === 503 ? retryAfter(1000) : {})
}

function upgradeRequired(): Response {
  return failure('UPGRADE_REQUIRED', { headers: { Upgrade: 'websocket', Connection: 'Upgrade' } })
}
