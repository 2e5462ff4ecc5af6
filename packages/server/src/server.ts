import { createDemo } from '@ringwire/demo/demo'
import { createMessageParser } from '@ringwire/protocol/envelope'
import { webSocketPath } from '@ringwire/protocol/subprotocol'
import type { Server } from 'bun'
import description from '../package.json' with { type: 'json' }
import { applyBootstrapKeys, ensureDemoKey } from './auth/bootstrap-keys.ts'
import { loadJwtSecrets } from './auth/jwt-secrets.ts'
import { createTokens } from './auth/tokens.ts'
import { type Backend, finalsMs, openBackend, type Stores } from './backend.ts'
import { type Call, isLive } from './call/call.ts'
import { absenceOf } from './call/peers.ts'
import { type Config, isLoopbackHost } from './config/config.ts'
import { localNetworks } from './config/lan.ts'
import { listenForAdmin } from './http/admin.ts'
import { createHttpApp } from './http/app.ts'
import { runtimeBodyBound } from './http/body.ts'
import { type ClientAddress, createClientAddress } from './http/client-address.ts'
import { failure } from './http/replies.ts'
import { targetOf } from './http/request-target.ts'
import { createIceServers, turnExpiry } from './ice/ice-servers.ts'
import { createJournal, type Journal } from './observability/journal.ts'
import type { Logger } from './observability/logger.ts'
import { watchLoop } from './observability/loop-delay.ts'
import { createMetrics, type Meter, type Present } from './observability/metrics.ts'
import type { Status } from './observability/status.ts'
import type { Clock } from './ports/clock.ts'
import { isWorkerOf } from './ports/node-name.ts'
import type { SessionIdentity } from './ports/sessions.ts'
import { type Arrivals, createArrivals } from './services/arrivals.ts'
import { type Calls, createCalls } from './services/calls.ts'
import { createDeadlines, type Deadlines } from './services/deadlines.ts'
import { createDelivery, type KnownCalls } from './services/delivery.ts'
import { createHealth, type ServiceState } from './services/health.ts'
import { createHistory } from './services/history.ts'
import { isHeldElsewhere } from './services/holders.ts'
import { createLimits, createLocalLimits, type Limits, type LocalCounters } from './services/limits.ts'
import { createRecovery, type Recovery } from './services/recovery.ts'
import { createRelay, type Relay } from './services/relay.ts'
import { createDispatch } from './signaling/dispatch.ts'
import { createGateway, type Gateway } from './signaling/gateway.ts'
import { createSteadyClock } from './time/steady-clock.ts'

export interface ServerDeps {
  readonly config: Config
  readonly logger: Logger
  /** The machine's, where it is not given. */
  readonly clock?: Clock
  /** This is a worker of a node: its others begin and stop with it, and its operators ask the process that started it. */
  readonly worker?: WorkerOf | undefined
}

export interface RingwireServer {
  /** Opens the stores, takes live calls over and listens. */
  start(): Promise<{ url: string }>
  /**
   * Tells every client to come back and closes; live calls stay in the store. Where other nodes serve, clients go there
   * within RINGWIRE_DRAIN_MS; `atOnce` takes no time for that, also where a stop is under way.
   */
  stop(atOnce?: boolean): Promise<void>
}

export interface WorkerOf {
  /** Its id. */
  readonly node: string
  /** Takes what operators are answered. */
  report(status: Status): void
}

/** The parts that know calls, wired together. */
interface Domain {
  readonly calls: Calls
  readonly relay: Relay
  readonly arrivals: Arrivals
  readonly recovery: Recovery
  readonly deadlines: Deadlines
  readonly known: KnownCalls
}

/** How often a small write to the stores is tried where nobody asks for it, in ms. */
const watchMs = 5_000

/** Of TLS 1.2: what is recorded today cannot be read with the key of tomorrow. Those of 1.3 are all so. */
const ciphers = 'ECDHE+AESGCM:ECDHE+CHACHA20'

/** The composition root: the parts, and who knows whom. */
export function createServer(deps: ServerDeps): RingwireServer {
  const { config, logger } = deps
  const meter = createMetrics({
    node: config.nodeId,
    version: description.version,
    stores: config.redisUrl === null ? ['database'] : ['database', 'redis'],
  })
  const journal = createJournal({ logger, isDebug: config.logLevel === 'debug', now: () => performance.now(), meter })
  let state: ServiceState = 'starting'
  let close: (atOnce: boolean) => Promise<void> = async () => {}
  let hurry: () => Promise<void> = async () => {}
  let stopped: Promise<void> | undefined

  async function start(): Promise<{ url: string }> {
    const heard: Heard = { logLost: () => {}, death: () => {}, call: () => {} }
    const backend = await openBackend({
      config,
      logger,
      meter,
      clock: deps.clock,
      onLogLost: (session, epoch, ringing) => heard.logLost(session, epoch, ringing),
      onDeath: (node, hasLeft) => heard.death(node, hasLeft),
      onCall: (call) => heard.call(call),
    })
    close = backend.close
    const { stores, clock } = backend
    await applyBootstrapKeys(stores.products, config, clock.now(), logger)
    const limits = createLimits(config, backend.counters)
    const localLimits = createLocalLimits(config, backend.localCounters)
    const domain = createDomain({ config, logger, journal, backend, limits, heard })
    // Whoever comes back finds a call with its whole time: nothing is due before all of them are taken over.
    await domain.recovery.recover(backend.isShared)
    domain.deadlines.start()

    const tokens = createTokens({ secrets: loadJwtSecrets(config), ttlS: config.tokenTtlS, now: clock.now })
    const iceServers = createIceServers(config)
    const gateway = createGateway({
      config,
      node: backend.nodes.self,
      tokens,
      localLimits,
      sessions: backend.sessions,
      arrivals: domain.arrivals,
      dispatch: createDispatch({
        parse: createMessageParser(),
        calls: domain.calls,
        relay: domain.relay,
        verify: tokens.verify,
        renew: (session, expiresAt) => {
          const done = domain.arrivals.renew(session, expiresAt)
          done.catch((error) => journal.failed(error, 'a session could not go on with its new token'))
        },
        now: clock.now,
        onError: (error, event) => journal.failed(error, 'a request failed', { event }),
        onAnswered: journal.request,
      }),
      iceServers,
      turnExpiry: (now) => turnExpiry(config, now),
      clock,
      state: () => state,
      leavesOnStop: backend.isShared,
      journal,
      onError: (error) => journal.failed(error, 'a connection failed'),
    })
    const health = createHealth({
      checks: {
        database: journal.watched('database', () => stores.calls.tryWrite()),
        redis: journal.watched('redis', backend.tryRedis),
      },
      state: () => state,
    })
    const clientAddress = createClientAddress(config.trustProxy, logger)
    const app = createHttpApp({
      config,
      clientAddress,
      journal,
      clock,
      products: stores.products,
      tokens,
      iceServers,
      turnExpiry: (now) => turnExpiry(config, now),
      limits,
      localLimits,
      history: createHistory({ calls: stores.calls }),
      health,
    })
    const status: Status = {
      families: () => meter.families(presentOf(gateway, domain, backend)),
      live: health.live,
      ready: health.ready,
    }
    const operators = startForOperators({ deps, status, journal, meter, counters: backend.localCounters })
    close = async () => {
      await operators.stop()
      await backend.close()
    }
    const demo = config.demo ? await mountDemo({ stores, config, clock, app, url: () => url }) : undefined
    const server = listen({ config, clientAddress, gateway, app, demo, journal })
    const url = urlOf(server, config)
    gateway.start()
    // Also where nobody asks, the log says that a store is lost [LOG2].
    const watch = setInterval(() => void health.ready(), watchMs)
    state = 'ready'
    hurry = () => gateway.closeAll(0)
    close = async (atOnce) => {
      clearInterval(watch)
      const durationMs = atOnce || isAlone(backend, deps.worker?.node) ? 0 : config.drainMs
      if (durationMs > 0) logger.info({ sockets: gateway.size(), durationMs }, 'clients are sent to other nodes')
      await gateway.closeAll(durationMs)
      await shutDown(server, gateway, domain, backend)
      await operators.stop()
    }
    return { url }
  }

  async function stop(atOnce = false): Promise<void> {
    state = 'draining'
    if (stopped !== undefined && atOnce) await hurry()
    stopped ??= close(atOnce)
    await stopped
  }

  return { start, stop }
}

/** What the backend has to say to parts that are made after it. */
interface Heard {
  logLost: (session: SessionIdentity, epoch: string, ringing: readonly string[]) => void
  death: (node: string, hasLeft: boolean) => void
  call: (call: Call) => void
}

interface DomainDeps {
  readonly config: Config
  readonly logger: Logger
  readonly journal: Journal
  readonly backend: Backend
  readonly limits: Limits
  readonly heard: Heard
}

function createDomain({ config, logger, journal, backend, limits, heard }: DomainDeps): Domain {
  const { sessions, nodes } = backend
  const store = backend.stores.calls
  const durations = {
    callerLostMs: config.callerLostMs,
    peerLostMs: config.peerLostMs,
    maxDurationMs: config.maxCallMs,
  }
  const clock = createSteadyClock(backend.clock)
  const onError = (error: unknown) => journal.failed(error, 'a call could not be looked after')
  const delivery = createDelivery({
    sessions,
    now: clock.now,
    stepsAfter: (ref, version) => store.stepsAfter(ref, version),
    isHeldElsewhere: (place) => isHeldElsewhere(place, nodes),
    tell: nodes.tell,
    onApplied: (call) => deadlines.watch(call),
    onError,
  })
  const calls = createCalls({
    store,
    products: backend.stores.products,
    sessions,
    nodes,
    delivery,
    limits,
    uptime: backend.uptime,
    clock,
    durations,
    ringTimeoutMs: config.ringTimeoutMs,
    maxRinging: config.maxRinging,
    onCommitted: journal.committed,
  })
  heard.death = (node, hasLeft) => {
    if (hasLeft) logger.info({ node }, 'a node has left')
    else logger.warn({ node }, 'a node is gone')
    deadlines.nodeDied()
  }
  const deadlines = createDeadlines({
    store,
    sessions,
    nodes,
    uptime: backend.uptime,
    clock,
    durations,
    run: calls.run,
    // A node that died may have left something that nobody was told.
    onPage: (live, isUrgent) => (isUrgent ? calls.makeUpFor(live) : Promise.resolve()),
    onRound(now, live) {
      for (const call of delivery.sweep(now, live)) deadlines.forget(call)
    },
    onDeath: calls.makeUpForEnds,
    onSweep: calls.reconcile,
    onError,
  })
  const arrivals = createArrivals({
    store,
    sessions,
    delivery,
    calls,
    clock,
    absenceOf: (call, side) => absenceOf(call, side, { ...durations, outages: backend.uptime.outages() }),
    onError,
  })
  const recovery = createRecovery({ store, sessions, nodes, delivery, calls, clock, durations, finalsMs })
  heard.call = (call) => {
    store.note(call)
    delivery.learn(call)
  }
  heard.logLost = (session, epoch, ringing) => void arrivals.reset(session, epoch, ringing).catch(onError)
  return {
    calls,
    relay: createRelay({ calls, delivery, sessions, onPassed: journal.relayed }),
    arrivals,
    recovery,
    deadlines,
    known: delivery.known,
  }
}

type Demo = ReturnType<typeof createDemo>

interface DemoDeps {
  readonly stores: Stores
  readonly config: Config
  readonly clock: Clock
  readonly app: ReturnType<typeof createHttpApp>
  readonly url: () => string
}

async function mountDemo({ stores, config, clock, app, url }: DemoDeps): Promise<Demo> {
  const isForLan = config.demo === 'lan'
  if (!isForLan && !isLoopbackHost(config.host))
    throw new Error('RINGWIRE_DEMO needs RINGWIRE_HOST to be a loopback address')
  const key = await ensureDemoKey(stores.products, config, clock.now())
  const options = { publicUrl: config.publicUrl, ...key }
  if (!isForLan) return createDemo({ ...options, serviceUrl: url })
  return createDemo({
    ...options,
    networks: localNetworks(),
    // ws_url is made from it: the page finds the service where it found itself.
    serviceUrl: (request) => new URL(request.url).origin,
    // Over the network, the certificate that this machine made would be refused.
    ask: (request) => app.fetch(request, '127.0.0.1'),
  })
}

interface Listening {
  readonly config: Config
  readonly clientAddress: ClientAddress
  readonly gateway: Gateway
  readonly app: ReturnType<typeof createHttpApp>
  readonly demo: Demo | undefined
  readonly journal: Journal
}

function listen({ config, clientAddress, gateway, app, demo, journal }: Listening): Server<unknown> {
  const { tlsCert, tlsKey } = config
  return Bun.serve({
    hostname: config.host,
    port: config.port,
    reusePort: config.workers > 1,
    ...(tlsCert === null || tlsKey === null
      ? {}
      : { tls: { cert: Bun.file(tlsCert), key: Bun.file(tlsKey), ciphers } }),
    maxRequestBodySize: runtimeBodyBound,
    websocket: gateway.websocket,
    // What nobody foresaw is not shown to whoever asked, with paths and lines.
    development: false,
    error(error) {
      journal.failed(error, 'a request failed')
      return failure('INTERNAL_ERROR')
    },
    fetch(request, server) {
      const address = () => server.requestIP(request)?.address
      const client = () => clientAddress(request.headers, address())
      const { path, query } = targetOf(request)
      if (path === webSocketPath && request.headers.get('upgrade')?.toLowerCase() === 'websocket') {
        return gateway.upgrade(request, query, server, client)
      }
      return answer(request, path, address(), client)
    },
  })

  async function answer(
    request: Request,
    path: string,
    address: string | undefined,
    client: () => string | undefined,
  ): Promise<Response> {
    const begin = performance.now()
    const response = (await demo?.fetch(request, address)) ?? (await app.fetch(request, address))
    journal.answered({ method: request.method, path, client }, response, performance.now() - begin)
    return response
  }
}

function urlOf(server: Server<unknown>, config: Config): string {
  const scheme = config.tlsCert === null ? 'http' : 'https'
  const host = config.host.includes(':') ? `[${config.host}]` : config.host
  return `${scheme}://${host}:${server.port}`
}

/** Whether no client could go on elsewhere: the workers of one node stop together. */
function isAlone({ isShared, nodes }: Backend, workerOf: string | undefined): boolean {
  return !isShared || nodes.others().every((name) => workerOf !== undefined && isWorkerOf(name, workerOf))
}

async function shutDown(server: Server<unknown>, gateway: Gateway, domain: Domain, backend: Backend): Promise<void> {
  gateway.stop()
  domain.deadlines.stop()
  await server.stop(true)
  await backend.close()
}

interface ForOperators {
  readonly deps: ServerDeps
  readonly status: Status
  readonly journal: Journal
  readonly meter: Meter
  readonly counters: LocalCounters
}

/** A worker has no listener of its own: it would tell of itself alone [ADM1]. */
function startForOperators({ deps, status, journal, meter, counters }: ForOperators): { stop(): Promise<void> } {
  const { config, logger, worker } = deps
  worker?.report(status)
  const admin = worker === undefined ? listenForAdmin({ config, status, journal, counters }) : undefined
  if (admin !== undefined) logger.info({ url: admin.url }, 'listening for operators')
  const unwatch = config.adminPort === null ? () => {} : watchLoop(meter.delayed)
  return {
    async stop() {
      unwatch()
      await admin?.stop()
    },
  }
}

/** Of several nodes each tells of the calls whose caller it holds, so that their sum is the number of calls. */
function presentOf(gateway: Gateway, { known }: Domain, { isShared, nodes, countAway }: Backend): Present {
  const calls = { ringing: 0, accepted: 0, connected: 0 }
  for (const call of known.values()) {
    if (isLive(call) && (!isShared || call.callerPlace.node === nodes.self)) calls[call.status]++
  }
  const away = countAway()
  const sessions = { connected: gateway.size(), ...(away !== undefined && { away }) }
  return { connections: gateway.size(), sessions, calls }
}
