import { createDemo } from '@ringwire/demo/demo'
import description from '../package.json' with { type: 'json' }
import { listenForAdmin } from './admin.ts'
import { loadJwtSecrets } from './auth/jwt-secrets.ts'
import { createRingTickets } from './auth/ring-ticket.ts'
import { type Backend, finalsMs, openBackend, type Stores } from './backend.ts'
import { type CallRef, callKey, isLive } from './call/call.ts'
import { createDomain, type Domain } from './calls/domain.ts'
import { type Config, isLoopbackHost } from './config/config.ts'
import { localNetworks } from './config/lan.ts'
import { readTlsFiles, type TlsPaths } from './config/tls-files.ts'
import { watchDescriptors } from './descriptor-watch.ts'
import { createFront } from './front.ts'
import type { HttpApp } from './http/app.ts'
import { createLimits, type LocalCounters } from './limits/limits.ts'
import { type Listener, listen } from './listen.ts'
import { ownDescriptors } from './observability/descriptors.ts'
import type { ServiceState } from './observability/health.ts'
import { createJournal, type Journal } from './observability/journal.ts'
import type { Logger } from './observability/logger.ts'
import { watchLoop } from './observability/loop-delay.ts'
import { createMetrics, type Meter, type Present } from './observability/metrics.ts'
import { processFamilies } from './observability/process-metrics.ts'
import type { Status } from './observability/status.ts'
import { createAddressGuard } from './outgoing/addresses.ts'
import { createPost } from './outgoing/post.ts'
import type { Clock } from './ports/clock.ts'
import { isWorkerOf } from './ports/node-name.ts'
import { applyBootstrapKeys, ensureDemoKey } from './products/bootstrap-keys.ts'
import { createPolicies } from './products/policies.ts'
import { openSender } from './push/open.ts'
import type { Sender } from './push/sender.ts'
import { createWaking, type Waking } from './push/waking.ts'
import type { Gateway } from './signaling/gateway.ts'
import { createSystemTimers } from './time/timers.ts'
import { createObservers } from './timeline/observers.ts'
import { createRecorder, type Recorder } from './timeline/recorder.ts'
import { createTlsRenewal } from './tls-renewal.ts'
import { createWebhookEndpoints } from './webhooks/endpoints.ts'
import { createWakeHook } from './webhooks/wake-hook.ts'
import { createWebhooks, type Webhooks } from './webhooks/webhooks.ts'

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
  /** Looks at once whether there is a renewed certificate on the disk [TLS1]. */
  renewTls(): void
}

export interface WorkerOf {
  /** Its id. */
  readonly node: string
  /** Takes what operators are answered. */
  report(status: Status): void
}

const dayMs = 86_400_000
/** How often a small write to the stores is tried where nobody asks for it, in ms. */
const watchMs = 5_000

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
  let state: ServiceState = 'starting'
  let close: (atOnce: boolean) => Promise<void> = async () => {}
  let hurry: () => Promise<void> = async () => {}
  let renewTls: () => void = () => {}
  let stopped: Promise<void> | undefined

  async function start(): Promise<{ url: string }> {
    // What the backend has to say before the calls are there is of nobody here.
    let domain: Domain | undefined
    let front: ReturnType<typeof createFront> | undefined
    const backend = await openBackend({
      config,
      logger,
      meter,
      clock: deps.clock,
      onDeath({ node, hasLeft, isPast }) {
        // The database knows each run of the last day: those that were over before this start are no news.
        if (!isPast) logger[hasLeft ? 'info' : 'warn']({ node }, hasLeft ? 'a node has left' : 'a node is gone')
        domain?.deadlines.nodeDied()
        front?.online.died(node, hasLeft)
      },
      sockets: () => (state === 'ready' ? (front?.gateway.size() ?? null) : null),
      onCall: (call) => domain?.onCall(call),
      onTold: (call, version) => domain?.onTold(call, version),
    })
    close = backend.close
    const { stores, clock } = backend
    await applyBootstrapKeys(stores.products, config, clock.now(), logger)
    const limits = createLimits(config, backend.counters)
    const secrets = loadJwtSecrets(config)
    const ringTickets = createRingTickets({ secrets, now: clock.now })
    const onError = (error: unknown) => journal.failed(error, 'a device could not be woken')
    const recorder = createRecorder({
      store: stores.timeline,
      now: clock.now,
      retentionMs: config.retentionDays === null ? null : config.retentionDays * dayMs,
      onDropped: journal.unwritten,
      onError: (error) => journal.failed(error, 'timelines could not be written'),
    })
    const observers = createObservers(recorder)
    const sender = openSender({
      config,
      devices: stores.devices,
      now: clock.now,
      onSent(platform, result, reason, sent) {
        journal.pushed(platform, result, reason)
        observers.pushed(result, reason, sent)
      },
      onRepeated: (platform) => meter.pushed(platform, 'repeated'),
      onError,
    })
    const waker = {
      devices: stores.devices,
      sessions: backend.sessions,
      sender,
      tickets: ringTickets,
      now: clock.now,
    }
    const known = (ref: CallRef) => domain?.delivery.known.get(callKey(ref))
    const waking = createWaking({
      ...waker,
      wakes: backend.wakes,
      known,
      load: (ref) => stores.calls.load(ref),
      hearsWakes: (product) => webhooks.hearsWakes(product),
      onNoDevice: observers.noDevice,
      onWokenAgain: (call, devices) => webhooks.wokenAgain(call, devices),
      onError,
    })
    const guard = createAddressGuard(config.webhookAllow)
    const webhooks = createWebhooks({
      store: stores.webhooks,
      post: createPost({ guard }),
      postHere: createPost({ guard: createAddressGuard(['127.0.0.1']) }),
      wakeHook: createWakeHook(waker),
      now: clock.now,
      onResult(result, attempt) {
        meter.hooked(result)
        observers.hooked(result, attempt)
      },
      onFailed: journal.webhookFailed,
      onError: (error) => journal.failed(error, 'webhooks could not be looked after'),
    })
    // Whatever is committed from now on is told to who asked for it.
    await webhooks.start()
    close = async () => {
      await webhooks.stop()
      await backend.close()
    }
    const policies = createPolicies({
      products: stores.products,
      onDisabled: () => front?.gateway.closeRevoked(),
      onError: (error) => journal.failed(error, 'settings of products could not be read'),
    })
    domain = createDomain({
      config,
      backend,
      limits,
      isRelayOnly: policies.isRelayOnly,
      finalsMs,
      onCommitted(step) {
        journal.committed(step)
        waking.committed(step)
        webhooks.committed(step)
      },
      onLeft: waking.committed,
      onDoubt: waking.doubt,
      onNodeDied: waking.nodeDied,
      onQuiet: waking.isQuiet,
      onPassed: journal.relayed,
      recorder,
      hearsEnds: webhooks.hearsEnds,
      onError: (error) => journal.failed(error, 'a call could not be looked after'),
      timers: createSystemTimers(),
      newUuid: () => crypto.randomUUID(),
    })
    await domain.recovery.recover(backend.hasSessions)
    recorder.start()

    front = createFront({
      config,
      logger,
      backend,
      policies,
      domain,
      recorder,
      sender,
      secrets,
      ringTickets,
      limits,
      webhooks: createWebhookEndpoints({
        store: stores.webhooks,
        guard,
        now: clock.now,
        onChanged: webhooks.changed,
      }),
      hooked: webhooks.hearingPresence,
      journal,
      state: () => state,
      descriptors,
    })
    const { gateway, app, health, clientAddress, revoked } = front
    const status: Status = {
      families: () => [...meter.families(presentOf(gateway, domain, backend)), ...processFamilies(descriptors)],
      live: health.live,
      ready: health.ready,
    }
    const operators = startForOperators({ deps, status, journal, meter, counters: backend.localCounters })
    close = async () => {
      await operators.stop()
      await webhooks.stop()
      await backend.close()
    }
    const demo = config.demo ? await mountDemo({ stores, config, clock, app, url: () => url }) : undefined
    // Nobody is let in before it is known whose tokens were taken back, and what products and keys there are.
    await Promise.all([revoked.start(), policies.start()])
    // Whoever comes back finds a call with its whole time: no lost clock runs before, and nothing is due [END3].
    await backend.serve()
    const tls = tlsPathsOf(config)
    const pair = tls && readTlsFiles(tls)
    const keepsIdle = () => descriptors.room() === 'free'
    const listener = listen({ config, tls: pair, clientAddress, gateway, app, demo, journal, keepsIdle })
    const { url } = listener
    const renewal = tls && pair && createTlsRenewal({ paths: tls, pair, renew: listener.renew, logger })
    renewTls = () => renewal?.look()
    const unwatch = watchDescriptors(descriptors, listener, logger)
    domain.deadlines.start()
    gateway.start()
    front.presence.start()
    front.online.start()
    // Also where nobody asks, the log says that a store is lost [LOG2].
    const watch = setInterval(() => void health.ready(), watchMs)
    state = 'ready'
    hurry = () => gateway.closeAll(0)
    close = async (atOnce) => {
      clearInterval(watch)
      renewal?.stop()
      unwatch()
      revoked.stop()
      policies.stop()
      front?.presence.stop()
      front?.online.stop()
      const isLast = isAlone(backend, deps.worker?.node)
      // Where nobody can come back, nobody's time runs out [END3].
      if (isLast) domain?.deadlines.stop()
      const durationMs = atOnce || isLast ? 0 : config.drainMs
      if (durationMs > 0) logger.info({ sockets: gateway.size(), durationMs }, 'clients are sent to other nodes')
      await gateway.closeAll(durationMs)
      await shutDown({ listener, gateway, domain, waking, sender, webhooks, recorder, backend })
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

  return { start, stop, renewTls: () => renewTls() }
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

interface Running {
  readonly listener: Listener
  readonly gateway: Gateway
  readonly domain: Domain
  readonly waking: Waking
  readonly sender: Sender
  readonly webhooks: Webhooks
  readonly recorder: Recorder
  readonly backend: Backend
}

async function shutDown(running: Running): Promise<void> {
  const { listener, gateway, domain, waking, sender, webhooks, recorder, backend } = running
  gateway.stop()
  domain.deadlines.stop()
  await listener.stop()
  await Promise.all([domain.outbox.flush(), webhooks.stop(), waking.stop()])
  sender.close()
  await recorder.stop()
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
function presentOf(gateway: Gateway, { delivery, outbox }: Domain, { isShared, nodes, countAway }: Backend): Present {
  const calls = { ringing: 0, accepted: 0, connected: 0 }
  for (const call of delivery.known.values()) {
    if (isLive(call) && (!isShared || call.callerPlace.node === nodes.self)) calls[call.status]++
  }
  const away = countAway()
  const sessions = { connected: gateway.size(), ...(away !== undefined && { away }) }
  return { connections: gateway.size(), sessions, calls, outboxOldestSeconds: outbox.oldestMs() / 1_000 }
}
