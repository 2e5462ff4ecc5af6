import type { Audit } from './audit/audit.ts'
import { changeOf } from './audit/changes.ts'
import { createJwksEndpoint } from './auth/routes.ts'
import type { Tokens } from './auth/tokens.ts'
import { createRingEndpoints, type RingDeps } from './calls/routes.ts'
import type { Config, JwtSecret } from './config/config.ts'
import { createWsUrl } from './config/ws-url.ts'
import type { History } from './history/history.ts'
import { createCallHistoryEndpoint } from './history/routes.ts'
import type { SeenCalls } from './history/seen-calls.ts'
import { createServerCallsEndpoints, type ServerCallsDeps } from './history/server-routes.ts'
import { createHttpApp, type Handlers, type HttpApp } from './http/app.ts'
import type { ClientAddress } from './http/client-address.ts'
import { refuseHandshake } from './http/handshake.ts'
import { healthReply } from './http/replies.ts'
import type { IceServersOf } from './ice/ice-servers.ts'
import { createIceServersEndpoint } from './ice/routes.ts'
import type { Limits, LocalLimits } from './limits/limits.ts'
import type { HealthChecks } from './observability/health.ts'
import type { Journal } from './observability/journal.ts'
import type { ExportOf } from './participants/export.ts'
import type { Participants } from './participants/participants.ts'
import { createServerParticipantsEndpoints } from './participants/server-routes.ts'
import type { Clock } from './ports/clock.ts'
import type { ProductStore } from './ports/product-store.ts'
import type { Heard } from './products/endpoint.ts'
import { createServerGroupEndpoints, type ServerGroupDeps } from './products/group-routes.ts'
import { createProductAuth } from './products/product-auth.ts'
import { createServerProductEndpoints, type ServerProductDeps } from './products/server-routes.ts'
import { createSessionTokenEndpoint } from './products/session-token.ts'
import { createDeviceEndpoints, type DeviceDeps } from './push/routes.ts'
import type { Timelines } from './timeline/timelines.ts'
import { createServerWebhooksEndpoints, type ServerWebhooksDeps } from './webhooks/server-routes.ts'

export interface RestDeps extends RingDeps, DeviceDeps {
  readonly config: Pick<Config, 'host' | 'port' | 'publicUrl' | 'trustProxy' | 'allowedOrigins' | 'demo'>
  readonly journal: Pick<Journal, 'failed'>
  readonly clock: Clock
  readonly products: Pick<ProductStore, 'findKey' | 'settings' | 'changeSettings'>
  readonly guard: ServerProductDeps['guard']
  readonly groups: ServerGroupDeps['groups']
  readonly leaveCalls: ServerGroupDeps['leaveCalls']
  readonly tokens: Tokens
  /** The secrets that sign them. */
  readonly secrets: readonly JwtSecret[]
  readonly iceServers: IceServersOf
  readonly isRelayOnly: (product: string) => boolean
  readonly turnExpiry: (now: number) => number | null
  readonly limits: Limits
  readonly localLimits: LocalLimits
  readonly history: History
  readonly seenCalls: SeenCalls
  readonly timelines: Timelines
  readonly quality: ServerCallsDeps['quality']
  readonly participants: Participants
  readonly exportOf: ExportOf
  readonly endCall: ServerCallsDeps['endCall']
  readonly transferCall: ServerCallsDeps['transferCall']
  readonly webhooks: ServerWebhooksDeps['webhooks']
  readonly health: HealthChecks
  readonly audit: Pick<Audit, 'record'>
  readonly clientAddress: ClientAddress
}

export interface Rest {
  readonly app: HttpApp
  /** The endpoints for application backends, for operators [ADM2]. */
  readonly ofProducts: ProductEndpoints
  /** The audit log of an endpoint for backends. */
  readonly heard: (name: string) => Heard
}

/** The REST API: which subject answers at which endpoint. */
export function createRest(deps: RestDeps): Rest {
  const ofProducts = productEndpointsOf(deps)
  const heard =
    (name: string): Heard =>
    async (asked, outcome) => {
      const change = changeOf({ endpoint: name, outcome, ...asked })
      if (change !== undefined) await deps.audit.record(change)
    }
  const handlers = handlersOf(deps, heardBy(ofProducts, heard))
  return { app: createHttpApp({ ...deps, handlers }), ofProducts, heard }
}

export type ProductEndpoints = ReturnType<typeof productEndpointsOf>

function productEndpointsOf(deps: RestDeps) {
  const given = { ...deps, authenticate: authenticatorOf(deps), now: deps.clock.now }
  return {
    ...createServerCallsEndpoints(given),
    ...createServerProductEndpoints(given),
    ...createServerGroupEndpoints(given),
    ...createServerWebhooksEndpoints(given),
    ...createServerParticipantsEndpoints(given),
  }
}

/** The endpoints, as backends reach them. */
function heardBy(endpoints: ProductEndpoints, heard: Rest['heard']): Pick<Handlers, keyof ProductEndpoints> {
  const handlers = Object.entries(endpoints).map(([name, endpoint]) => {
    const handler: ProductHandler = (request, address, params) => endpoint(request, address, params, heard(name))
    return [name, handler] as const
  })
  return Object.fromEntries(handlers) as Record<keyof ProductEndpoints, ProductHandler>
}

type ProductHandler = Handlers[keyof ProductEndpoints]

const authenticatorOf = ({ config, clock, products }: RestDeps) =>
  createProductAuth({ products, now: clock.now, demo: config.demo !== false })

/** What answers at each endpoint of the registry. */
function handlersOf(deps: RestDeps, ofProducts: Pick<Handlers, keyof ProductEndpoints>): Handlers {
  const { config, health } = deps
  const authenticate = authenticatorOf(deps)
  return {
    sessionToken: createSessionTokenEndpoint({ ...deps, authenticate, wsUrl: createWsUrl(config) }),
    jwks: createJwksEndpoint(deps),
    callHistory: createCallHistoryEndpoint(deps),
    iceServers: createIceServersEndpoint(deps),
    ...ofProducts,
    ...createRingEndpoints(deps),
    ...createDeviceEndpoints(deps),
    liveness: () => healthReply(health.live()),
    readiness: async () => healthReply(await health.ready()),
    webSocket: refuseHandshake,
  }
}
