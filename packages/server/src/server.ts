import { createDemo } from '@ringwire/demo/demo'
import description from '../package.json' with { type: 'json' }
import { type AdminListener, type AdminOptions, listenForAdmin } from './admin.ts'
import { type Backend, openBackend, type Stores } from './backend.ts'
import { isLive, type LiveCall } from './call/call.ts'
import type { Domain } from './calls/domain.ts'
import { removeAddress, writeAddress } from './config/address-file.ts'
import { type Config, isLoopbackHost } from './config/config.ts'
import { localNetworks } from './config/lan.ts'
import { readTlsFiles, type TlsPaths } from './config/tls-files.ts'
import { type Core, createCore } from './core.ts'
import { watchDescriptors } from './descriptor-watch.ts'
import { createFront } from './front.ts'
import type { HttpApp } from './http/app.ts'
import type { LocalCounters } from './limits/limits.ts'
import { type Listener, listen } from './listen.ts'
import { type Absences, createAbsences } from './observability/absences.ts'
import { agesOf } from './observability/ages.ts'
import { type Descriptors, ownDescriptors } from './observability/descriptors.ts'
import type { ServiceState } from './observability/health.ts'
import { createJournal, type Journal } from './observability/journal.ts'
import type { Logger } from './observability/logger.ts'
import { watchLoop } from './observability/loop-delay.ts'
import { createMetrics, type Meter, type Present } from './observability/metrics.ts'
import { processFamilies } from './observability/process-metrics.ts'
import type { ProcessPresent, Status } from './observability/status.ts'
import { createParts, type Part } from './parts.ts'
import type { Clock } from './ports/clock.ts'
import { isWorkerOf } from './ports/node-name.ts'
import { applyBootstrapKeys, ensureDemoKey } from './products/bootstrap-keys.ts'
import type { Gateway } from './signaling/gateway.ts'
import { createTlsRenewal, type TlsRenewal } from './tls-renewal.ts'
import { openTraces } from './traces/open.ts'
import type { Traces } from './traces/traces.ts'

export interface ServerDeps {
  readonly config: Config
  readonly logger: Logger
  /** The machine's, where it is not given. */
  readonly clock?: Clock
  /** This is a worker of a node: its others begin and stop with it, and its operators ask the process that started it. */
  readonly worker?: WorkerOf | undefined
  /** What it was started with, for operators: without secrets. */
  readonly settings?: AdminOptions['settings']
}

export interface RingwireServer {
  /** Opens the stores, takes live calls over and listens. */
  start(): Promise<{ url: string }>
  /**
   * Tells every client to come back and closes; live calls stay in the store. If other nodes serve, clients go there
   * within RINGWIRE_DRAIN_MS; `atOnce` takes no time for that, also if a stop is under way.
   */
  stop(atOnce?: boolean): Promise<void>
  /** Looks at once whether there is a renewed certificate on the disk [TLS1]. */
  renewTls(): void
}

export interface WorkerOf {
  /** Its id. */
  readonly node: string
  /** Takes what operators are answered. */
  report(status: Status): void
}

/** How often a small write to the stores is tried where nobody asks for it, in ms. */
const watchMs = 10_000

/** The composition root: the parts, and who knows whom. */
export function createServer(deps: ServerDeps): RingwireServer {
  const { config, logger } = deps
  const meter = createMetrics({
    node: config.nodeId,
    version: description.version,
    stores: config.redisUrl === null ? ['database'] : ['database', 'redis'],
  })
  const descriptors = ownDescriptors()
  const journal = createJournal({ logger, isDebug: config.logLevel === 'debug', now: () => performance.now(), meter })
  const absences = createAbsences(Date.now)
  const parts = createParts((name, error) => journal.failed(error, `${name} could not be stopped`))
  let state: ServiceState = 'starting'
  let hurry: () => Promise<void> = async () => {}
  let renewTls: () => void = () => {}
  let stopped: Promise<void> | undefined

  async function start(): Promise<{ url: string }> {
    // Changes in the backend before the calls are there concern nobody here.
    let core: Core | undefined
    let front: ReturnType<typeof createFront> | undefined
    const backend = await openBackend({
      config,
      logger,
      meter,
      clock: deps.clock,
      onDeath(death) {
        const { node, hasLeft, isPast } = death
        absences.died(death)
        // The database knows each run of the last day: runs that were over before this start are no news.
        if (!isPast) logger[hasLeft ? 'info' : 'warn']({ node }, hasLeft ? 'a node has left' : 'a node is gone')
        core?.domain.deadlines.nodeDied()
        front?.online.died(node, hasLeft)
      },
      sockets: () => (state === 'ready' ? (front?.gateway.size() ?? null) : null),
      onCall: (call) => core?.domain.onCall(call),
      onTold: (call, version) => core?.domain.onTold(call, version),
    })
    const traces = await openTraces({ config, version: description.version, logger, now: backend.clock.now })
    await parts.begin([
      { name: 'the stores', stop: backend.close },
      // Spans that end after them may still be a part of a trace.
      { name: 'traces', stop: (atOnce) => traces?.stop(atOnce) },
    ])
    core = createCore({ config, backend, journal, meter, traces, onDisabled: () => front?.gateway.closeRevoked() })
    front = createFront({
      ...core,
      webhooks: core.endpoints,
      hooked: core.webhooks.hearingPresence,
      ...{ config, logger, backend, journal, absences, descriptors, state: () => state },
    })
    const { gateway } = front
    const running: Running = { deps, meter, traces, journal, absences, descriptors, backend, core, front }
    const port = createPort(running)
    await parts.begin([...partsOfCalls(running), ...port.parts, ...partsOfClients(running)])
    renewTls = port.renewTls
    hurry = () => gateway.closeAll(0)
    state = 'ready'
    return { url: port.url() }
  }

  async function stop(atOnce = false): Promise<void> {
    state = 'draining'
    if (stopped !== undefined && atOnce) await hurry()
    stopped ??= parts.stop(atOnce)
    await stopped
  }

  return { start, stop, renewTls: () => renewTls() }
}

/** What the parts are made of. */
interface Running {
  readonly deps: ServerDeps
  readonly meter: ReturnType<typeof createMetrics>
  readonly traces: Traces | undefined
  readonly journal: Journal
  readonly absences: Absences
  readonly descriptors: Descriptors
  readonly backend: Backend
  readonly core: Core
  readonly front: ReturnType<typeof createFront>
}

/** From the stores to calls: every commit is delivered from then on, and no client gets in yet. */
function partsOfCalls(running: Running): readonly Part[] {
  const { deps, meter, traces, journal, absences, descriptors, backend, core, front } = running
  const { config, logger } = deps
  const { stores, clock } = backend
  const { audit, recorder, sender, webhooks, waking, domain, policies } = core
  const status: Status = {
    families: () => [
      ...meter.families(presentOf(front.gateway, domain, backend)),
      ...processFamilies(descriptors),
      ...(traces?.families() ?? []),
    ],
    live: front.health.live,
    ready: front.health.ready,
    present: () => [{ ...processOf(front.gateway, domain, backend), absent: absences.known() }],
    operate: front.operate,
  }
  const operators = createForOperators({ deps, status, journal, meter, counters: backend.localCounters })
  return [
    { name: 'product keys', start: () => applyBootstrapKeys(stores.products, config, clock.now(), logger) },
    { name: 'the audit log', start: audit.start, stop: audit.stop },
    { name: 'timelines', start: recorder.start, stop: recorder.stop },
    { name: 'pushes', stop: sender.close },
    {
      name: 'webhooks and waking',
      start: webhooks.start,
      stop: () => Promise.all([domain.outbox.flush(), webhooks.stop(), waking.stop()]),
    },
    { name: 'calls', start: () => domain.recovery.recover(backend.missing) },
    { name: 'the listener for operators', ...operators },
    // Nobody is let in before it is known whose tokens were taken back, and what products and keys there are.
    { name: 'tokens that were taken back', start: front.revoked.start, stop: front.revoked.stop },
    { name: 'settings of products', start: policies.start, stop: policies.stop },
    // Clients that come back find a call with its whole time: no lost clock runs before, and nothing is due [END3].
    { name: 'the uptime', start: backend.serve },
  ]
}

/** The port, and what it shows. */
function createPort({ deps, journal, descriptors, backend, front }: Running) {
  const { config, logger } = deps
  const { gateway, app, clientAddress } = front
  const keepsIdle = () => descriptors.room() === 'free'
  // With a database several processes may share a data directory, or none may be written to.
  const hasDirectory = config.databaseUrl === null
  let demo: Demo | undefined
  let listener: Listener | undefined
  let renewal: TlsRenewal | undefined
  let unwatch: () => void = () => {}
  const url = () => listener?.url ?? ''
  const mount = () => mountDemo({ stores: backend.stores, config, clock: backend.clock, app, url })
  const parts: readonly Part[] = [
    {
      name: 'the port',
      async start() {
        if (config.demo) demo = await mount()
        const paths = tlsPathsOf(config)
        const pair = paths && readTlsFiles(paths)
        listener = listen({ config, tls: pair, clientAddress, gateway, app, demo, journal, keepsIdle })
        renewal = paths && pair && createTlsRenewal({ paths, pair, renew: listener.renew, logger })
        unwatch = watchDescriptors(descriptors, listener, logger)
        if (hasDirectory) writeAddress(config.dataDir, listener.url)
      },
      async stop() {
        if (hasDirectory) removeAddress(config.dataDir)
        renewal?.stop()
        unwatch()
        await listener?.stop()
      },
    },
  ]
  return { parts, url, renewTls: () => renewal?.look() }
}

/** What begins with the first client, and ends with the last. */
function partsOfClients({ deps, backend, core, front }: Running): readonly Part[] {
  const { config, logger, worker } = deps
  const { deadlines } = core.domain
  const { gateway, presence, online, health } = front
  let watch: Timer | undefined
  return [
    { name: 'deadlines', start: deadlines.start, stop: deadlines.stop },
    {
      name: 'sockets',
      start: gateway.start,
      async stop(atOnce) {
        const isLast = isAlone(backend, worker?.node)
        // If nobody can come back, nobody's time runs out [END3].
        if (isLast) deadlines.stop()
        const durationMs = atOnce || isLast ? 0 : config.drainMs
        if (durationMs > 0) logger.info({ sockets: gateway.size(), durationMs }, 'clients are sent to other nodes')
        await gateway.closeAll(durationMs)
        gateway.stop()
      },
    },
    { name: 'presence', start: presence.start, stop: presence.stop },
    { name: 'who is online', start: online.start, stop: online.stop },
    {
      // Also where nobody asks, the log says that a store is lost [LOG2].
      name: 'the watch over stores',
      start() {
        watch = setInterval(() => void health.ready(), watchMs)
      },
      stop: () => clearInterval(watch),
    },
  ]
}

function tlsPathsOf({ tlsCert, tlsKey }: Config): TlsPaths | undefined {
  return tlsCert === null || tlsKey === null ? undefined : { cert: tlsCert, key: tlsKey }
}

type Demo = ReturnType<typeof createDemo>

interface DemoDeps {
  readonly stores: Stores
  readonly config: Config
  readonly clock: Clock
  readonly app: HttpApp
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

/** Whether no client could go on elsewhere: the workers of one node stop together. */
function isAlone({ isShared, nodes }: Backend, workerOf: string | undefined): boolean {
  return !isShared || nodes.others().every((name) => workerOf !== undefined && isWorkerOf(name, workerOf))
}

interface ForOperators {
  readonly deps: ServerDeps
  readonly status: Status
  readonly journal: Journal
  readonly meter: Meter
  readonly counters: LocalCounters
}

/** A worker has no listener of its own: it would only show itself [ADM1]. */
function createForOperators({ deps, status, journal, meter, counters }: ForOperators): Omit<Part, 'name'> {
  const { config, logger, worker, settings } = deps
  let admin: AdminListener | undefined
  let unwatch: () => void = () => {}
  return {
    start() {
      worker?.report(status)
      if (worker === undefined) admin = listenForAdmin({ config, status, journal, counters, settings })
      if (admin !== undefined) logger.info({ url: admin.url }, 'listening for operators')
      if (config.adminPort !== null) unwatch = watchLoop(meter.delayed)
    },
    async stop() {
      unwatch()
      await admin?.stop()
    },
  }
}

/** Of several nodes each tells of the calls whose caller it holds, so that their sum is the number of calls. */
function presentOf(gateway: Gateway, domain: Domain, backend: Backend): Present {
  const calls = { ringing: 0, accepted: 0, connected: 0 }
  for (const call of ownCalls(domain, backend)) calls[call.status]++
  const away = backend.countAway()
  const sessions = { connected: gateway.size(), ...(away !== undefined && { away }) }
  return { connections: gateway.size(), sessions, calls, outboxOldestSeconds: domain.outbox.oldestMs() / 1_000 }
}

/** The same for the operator's page. */
function processOf(gateway: Gateway, domain: Domain, backend: Backend): Omit<ProcessPresent, 'absent'> {
  const calls = agesOf(ownCalls(domain, backend), backend.clock.now())
  return { node: backend.nodes.self, sockets: gateway.size(), calls, others: backend.peers() }
}

function* ownCalls({ delivery }: Domain, { isShared, nodes }: Backend): Generator<LiveCall> {
  for (const call of delivery.known.values())
    if (isLive(call) && (!isShared || call.callerPlace.node === nodes.self)) yield call
}
