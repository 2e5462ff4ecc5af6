import { createDemo } from '@ringwire/demo/demo'
import { createMessageParser } from '@ringwire/protocol/envelope'
import { webSocketPath } from '@ringwire/protocol/subprotocol'
import type { Server } from 'bun'
import { createMemoryCounters } from './adapters/memory/limits.ts'
import { createMemorySessions } from './adapters/memory/sessions.ts'
import { openPostgres } from './adapters/postgres/open.ts'
import { openSqlite } from './adapters/sqlite/open.ts'
import { type Arrivals, createArrivals } from './arrivals.ts'
import { applyBootstrapKeys, ensureDemoKey } from './auth/bootstrap-keys.ts'
import { loadJwtSecrets } from './auth/jwt-secrets.ts'
import { createTokens } from './auth/tokens.ts'
import { type Calls, createCalls } from './calls.ts'
import { createSystemClock } from './clock.ts'
import { type Config, isLoopbackHost } from './config.ts'
import { createDeadlines, type Deadlines } from './deadlines.ts'
import { createDelivery } from './delivery.ts'
import { createHealth, type ServiceState } from './health.ts'
import { createHistory } from './history.ts'
import { createHttpApp } from './http/app.ts'
import { type ClientAddress, createClientAddress } from './http/client-address.ts'
import { createIceServers, turnExpiry } from './ice/ice-servers.ts'
import { createLimits, type Limits } from './limits.ts'
import type { Logger } from './observability/logger.ts'
import type { CallStore, Clock, Nodes, ProductStore, Sessions } from './ports.ts'
import { createRelay, type Relay } from './relay.ts'
import { targetOf } from './request-target.ts'
import { createDispatch } from './signaling/dispatch.ts'
import { createGateway, type Gateway } from './signaling/gateway.ts'
import { createSteadyClock } from './steady-clock.ts'

export interface ServerDeps {
  readonly config: Config
  readonly logger: Logger
  /** The machine's, where it is not given. */
  readonly clock?: Clock
}

export interface RingwireServer {
  /** Opens the stores, takes live calls over and listens. */
  start(): Promise<{ url: string }>
  /** Tells every client to come back and closes; live calls stay in the store. */
  stop(): Promise<void>
}

/** What holds calls, keys and settings: a file of this machine, or a PostgreSQL database. */
interface Stores {
  readonly calls: CallStore
  readonly products: ProductStore
  close(): Promise<void>
}

type StoreConfig = Pick<Config, 'databaseUrl' | 'dataDir' | 'sqliteSynchronous'>

/** The stores, opened beside a running service: for the command line. */
export function openStore(config: StoreConfig): Promise<Stores> {
  const { databaseUrl, dataDir, sqliteSynchronous } = config
  if (databaseUrl !== null) return openPostgres({ url: databaseUrl, readers: 1, writers: 1 })
  return openSqlite({ dataDir, synchronous: sqliteSynchronous, exclusive: false })
}

/** The stores of the serving process. */
function openStores(config: Config, clock: Clock, logger: Logger): Promise<Stores> {
  const { databaseUrl, dataDir, sqliteSynchronous, retentionDays } = config
  if (databaseUrl === null) return openSqlite({ dataDir, synchronous: sqliteSynchronous, exclusive: true, clock })
  return openPostgres({
    url: databaseUrl,
    clock,
    retentionMs: retentionDays === null ? undefined : retentionDays * dayMs,
    onError: (error) => logger.error({ error }, 'calls that are old enough could not be removed'),
  })
}

const dayMs = 86_400_000

/** The parts that know calls, wired together. */
interface Domain {
  readonly sessions: Sessions
  readonly calls: Calls
  readonly relay: Relay
  readonly arrivals: Arrivals
  readonly deadlines: Deadlines
}

/** The composition root: adapters are chosen here and nowhere else. */
export function createServer(deps: ServerDeps): RingwireServer {
  const { config, logger } = deps
  const clock = deps.clock ?? createSystemClock()
  let state: ServiceState = 'starting'
  let close: () => Promise<void> = async () => {}

  async function start(): Promise<{ url: string }> {
    const stores = await openStores(config, clock, logger)
    close = stores.close
    await applyBootstrapKeys(stores.products, config, clock.now(), logger)
    const limits = createLimits(config, createMemoryCounters())
    const domain = createDomain({ config, logger, clock, stores, limits })
    domain.deadlines.start()
    await domain.arrivals.recover()

    const tokens = createTokens({ secrets: loadJwtSecrets(config), ttlS: config.tokenTtlS, now: clock.now })
    const iceServers = createIceServers(config)
    const gateway = createGateway({
      config,
      node: config.nodeId,
      tokens,
      limits,
      sessions: domain.sessions,
      arrivals: domain.arrivals,
      dispatch: createDispatch({
        parse: createMessageParser(),
        calls: domain.calls,
        relay: domain.relay,
        verify: tokens.verify,
        now: clock.now,
        onError: (error, event) => logger.error({ error, event }, 'a request failed'),
      }),
      iceServers,
      turnExpiry: (now) => turnExpiry(config, now),
      clock,
      state: () => state,
      onError: (error) => logger.error({ error }, 'a connection failed'),
    })
    const clientAddress = createClientAddress(config.trustProxy, logger)
    const app = createHttpApp({
      config,
      clientAddress,
      logger,
      clock,
      products: stores.products,
      tokens,
      iceServers,
      turnExpiry: (now) => turnExpiry(config, now),
      limits,
      history: createHistory({ calls: stores.calls }),
      health: createHealth({
        checks: { database: () => stores.calls.ping(), redis: async () => {} },
        state: () => state,
      }),
    })
    const demo = config.demo ? await mountDemo(stores, config, clock, () => url) : undefined
    const server = listen(config, clientAddress, gateway, app, demo)
    const url = urlOf(server, config)
    gateway.start()
    state = 'ready'
    close = () => shutDown(server, gateway, domain, stores)
    return { url }
  }

  async function stop(): Promise<void> {
    state = 'draining'
    await close()
  }

  return { start, stop }
}

interface DomainDeps {
  readonly config: Config
  readonly logger: Logger
  readonly clock: Clock
  readonly stores: Stores
  readonly limits: Limits
}

function createDomain({ config, logger, clock, stores, limits }: DomainDeps): Domain {
  const store = stores.calls
  const durations = {
    callerLostMs: config.callerLostMs,
    peerLostMs: config.peerLostMs,
    maxDurationMs: config.maxCallMs,
  }
  const steady = createSteadyClock(clock)
  const nodes: Nodes = { self: config.nodeId, isDead: (node) => node !== config.nodeId, others: () => [] }
  const sessions = createMemorySessions({
    windowMs: finalsMs,
    resumeWindowMs: config.resumeWindowMs,
    onLogLost: (session, epoch) => void arrivals.reset(session, epoch).catch(onError),
  })
  const onError = (error: unknown) => logger.error({ error }, 'a call could not be looked after')
  const delivery = createDelivery({
    sessions,
    stepsAfter: (ref, version) => store.stepsAfter(ref, version),
    onApplied: (call) => deadlines.watch(call),
    onError,
  })
  const calls = createCalls({
    store,
    products: stores.products,
    sessions,
    nodes,
    delivery,
    limits,
    clock: steady,
    durations,
    ringTimeoutMs: config.ringTimeoutMs,
    maxRinging: config.maxRinging,
  })
  const deadlines = createDeadlines({
    store,
    sessions,
    nodes,
    clock: steady,
    durations,
    run: calls.run,
    async onSweep(now) {
      delivery.sweep(now)
      await calls.reconcile(false)
    },
    onError,
  })
  const arrivals = createArrivals({ store, sessions, delivery, calls, clock: steady, finalsMs, onError })
  return { sessions, calls, relay: createRelay({ calls, delivery, sessions }), arrivals, deadlines }
}

/** Final notices are worth telling for this long [WS4], in ms. */
const finalsMs = 120_000

type Demo = ReturnType<typeof createDemo>

async function mountDemo(stores: Stores, config: Config, clock: Clock, url: () => string): Promise<Demo> {
  if (!isLoopbackHost(config.host)) throw new Error('RINGWIRE_DEMO needs RINGWIRE_HOST to be a loopback address')
  const key = await ensureDemoKey(stores.products, config, clock.now())
  return createDemo({ serviceUrl: url, ...key })
}

function listen(
  config: Config,
  clientAddress: ClientAddress,
  gateway: Gateway,
  app: ReturnType<typeof createHttpApp>,
  demo: Demo | undefined,
): Server<unknown> {
  const { tlsCert, tlsKey } = config
  return Bun.serve({
    hostname: config.host,
    port: config.port,
    ...(tlsCert === null || tlsKey === null ? {} : { tls: { cert: Bun.file(tlsCert), key: Bun.file(tlsKey) } }),
    // A body of the REST API is at most 16 KiB; what is much larger is refused before it is read.
    maxRequestBodySize: 1024 * 1024,
    websocket: gateway.websocket,
    fetch(request, server) {
      const address = () => server.requestIP(request)?.address
      if (request.headers.get('upgrade')?.toLowerCase() === 'websocket') {
        const { path, query } = targetOf(request)
        const client = () => clientAddress(request.headers, address())
        if (path === webSocketPath) return gateway.upgrade(request, query, server, client)
      }
      return answer(request, address())
    },
  })

  async function answer(request: Request, address: string | undefined): Promise<Response> {
    return (await demo?.fetch(request, address)) ?? app.fetch(request, address)
  }
}

function urlOf(server: Server<unknown>, config: Config): string {
  const scheme = config.tlsCert === null ? 'http' : 'https'
  const host = config.host.includes(':') ? `[${config.host}]` : config.host
  return `${scheme}://${host}:${server.port}`
}

async function shutDown(server: Server<unknown>, gateway: Gateway, domain: Domain, stores: Stores): Promise<void> {
  await gateway.closeAll()
  gateway.stop()
  domain.deadlines.stop()
  await server.stop(true)
  await stores.close()
}
