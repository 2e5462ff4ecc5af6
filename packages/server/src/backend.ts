// Over 350 lines: it is the one file that knows each adapter, so no other has to.
import { jwtSecretsFile } from './auth/jwt-secrets.ts'
import type { Call } from './call/call.ts'
import { type Cluster, createCluster } from './cluster/cluster.ts'
import { createDeaths } from './cluster/deaths.ts'
import { createFallen } from './cluster/fallen.ts'
import { createMembers, type Members, type MembersOptions } from './cluster/members.ts'
import type { Config } from './config/config.ts'
import type { Counters } from './limits/counters.port.ts'
import type { LocalCounters } from './limits/limits.ts'
import type { Logger } from './observability/logger.ts'
import type { Meter } from './observability/metrics.ts'
import { createTimed, timedCalls, timedOutbox } from './observability/timed.ts'
import type { Erasures } from './participants/erasures.port.ts'
import type { AuditStore } from './ports/audit.ts'
import type { CallStore } from './ports/call-store.ts'
import type { Clock, Jumps } from './ports/clock.ts'
import type { Devices } from './ports/devices.ts'
import type { Groups } from './ports/groups.ts'
import type { Migrated, MigrationOptions } from './ports/migration.ts'
import { allMissing, type MissingSessions } from './ports/missing-sessions.ts'
import { newNodeName } from './ports/node-name.ts'
import type { NodeDeath, Nodes, PeerNode, Uptime } from './ports/nodes.ts'
import type { OnlineStore } from './ports/online.ts'
import type { Outbox } from './ports/outbox.ts'
import type { ProductStore } from './ports/product-store.ts'
import { newEpoch } from './ports/session-id.ts'
import type { Sessions } from './ports/sessions.ts'
import type { CheckedStore } from './ports/store-check.ts'
import { StoreError } from './ports/store-error.ts'
import type { TimelineStore } from './ports/timeline.ts'
import type { WebhookStore } from './ports/webhooks.ts'
import { demoKeyFile } from './products/bootstrap-keys.ts'
import type { Wakes } from './push/wakes.port.ts'
import { createMemoryCounters } from './stores/memory/limits.ts'
import { createMemorySessions } from './stores/memory/sessions.ts'
import { createLocalUptime } from './stores/memory/uptime.ts'
import { createMemoryWakes } from './stores/memory/wakes.ts'
import { migrateToPostgres } from './stores/migration.ts'
import { checkPostgres } from './stores/postgres/check.ts'
import { createPostgresEphemerals } from './stores/postgres/ephemerals.ts'
import { openPostgresHeartbeats, type PostgresHeartbeats } from './stores/postgres/heartbeats.ts'
import { openPostgres } from './stores/postgres/open.ts'
import type { RedisOptions } from './stores/redis/open.ts'
import { type BackedUp, backUpSqlite } from './stores/sqlite/backup.ts'
import { checkSqlite } from './stores/sqlite/check.ts'
import { openSqlite } from './stores/sqlite/open.ts'
import { createSystemClock } from './time/clock.ts'
import { createSystemTimers } from './time/timers.ts'

/** What holds calls, keys and settings: a file of this machine, or a PostgreSQL database. */
export interface Stores {
  readonly calls: CallStore
  readonly outbox: Outbox
  readonly products: ProductStore
  readonly devices: Devices
  readonly groups: Groups
  readonly webhooks: WebhookStore
  readonly timeline: TimelineStore
  readonly online: OnlineStore
  readonly erasures: Erasures
  readonly audit: AuditStore
  close(): Promise<void>
}

/** Everything that a node keeps, and with whom it serves. */
export interface Backend {
  readonly stores: Stores
  readonly sessions: Sessions
  readonly wakes: Wakes
  /**
   * Resolves when everything that has changed in sessions until now is saved; undefined where there is nothing to wait for.
   */
  readonly save: () => Promise<void> | undefined
  readonly counters: Counters
  /** Counters of only this process, which answer at once. */
  readonly localCounters: LocalCounters
  readonly nodes: Nodes
  readonly uptime: Uptime
  readonly clock: Clock
  /** What that clock jumped, where several nodes go by it. */
  readonly jumps?: Jumps
  /**
   * Whether sessions outlive this process, and other processes serve as well. If they do not, sessions that had a socket
   * before the start are made up from the calls.
   */
  readonly isShared: boolean
  /** Sessions from before this start of which nothing is known. */
  readonly missing: MissingSessions
  /** Resolves when Redis would take a write; at once where there is none [HEALTH1]. */
  tryRedis(): Promise<void>
  /** The other nodes that serve, for operators. */
  peers(): readonly PeerNode[]
  /** Sessions without a socket that may come back; undefined where no process knows all of them. */
  countAway(): number | undefined
  /** People can come back from now on: just before the service listens [END3]. */
  serve(): Promise<void>
  /** Sockets are gone: hands over what other nodes need, and lets go of the stores. */
  close(): Promise<void>
}

export interface BackendOptions {
  readonly config: Config
  readonly logger: Logger
  /** Is told how long the stores take, and what they refuse. */
  readonly meter: Meter
  /** The machine's, where it is not given; several nodes go by the clock of their database. */
  readonly clock?: Clock | undefined
  /** Another node is known to be dead. */
  readonly onDeath: (death: NodeDeath) => void
  /** How many sockets this node has; null while it takes no clients [BAL1]. */
  readonly sockets: () => number | null
  /** What another node has just committed to a call. */
  readonly onCall: (call: Call) => void
  /** Another node has told everybody of a call up to this version. */
  readonly onTold: (call: string, version: number) => void
  /** How long after the start old calls are removed for the first time, in ms; tests do not wait for it. */
  readonly retentionDelayMs?: number | undefined
}

/** Final notices are worth telling for this long [WS4], in ms. */
export const finalsMs = 120_000
const dayMs = 86_400_000
/** Nothing that sweeps do waits longer for another look at who lives, in ms. */
const lookMs = 500

/** An outage may matter for as long as a call that it was in goes on, in ms [END3]. */
const outagesKeptMs = ({ maxCallMs }: Config) => Math.max(dayMs, maxCallMs)

/** A copy of the data directory, made beside a running service. */
export function backUp({ dataDir }: Pick<Config, 'dataDir'>, target: string): Promise<BackedUp> {
  return backUpSqlite({ dataDir, target, files: [jwtSecretsFile, demoKeyFile] })
}

/** All of a data directory, copied into a database. */
export function migrate(options: MigrationOptions): Promise<Migrated> {
  return migrateToPostgres(options)
}

/** A store of the configuration, and what was found there. */
export interface NamedCheck extends CheckedStore {
  readonly store: 'SQLite' | 'PostgreSQL' | 'Redis'
}

/** The time that each store may take, in ms [CONF1]. */
const checkMs = 3_000

/** Looks at every store that the configuration names, and changes nothing. */
export async function checkStores(config: Config): Promise<readonly NamedCheck[]> {
  const { databaseUrl, redisUrl, redisPrefix: prefix, dataDir } = config
  if (databaseUrl === null) return [{ store: 'SQLite', ...checkSqlite(dataDir) }]
  const { deployment, ...postgres } = await checkPostgres(databaseUrl, checkMs)
  const checked: NamedCheck[] = [{ store: 'PostgreSQL', ...postgres }]
  if (redisUrl !== null) {
    const { checkRedis } = await import('./stores/redis/check.ts')
    checked.push({ store: 'Redis', ...(await checkRedis(redisUrl, { prefix, deployment, ms: checkMs })) })
  }
  return checked
}

type StoreConfig = Pick<Config, 'databaseUrl' | 'dataDir' | 'sqliteSynchronous'>

/** The stores, opened beside a running service: for the command line. */
export function openStore(config: StoreConfig): Promise<Stores> {
  const { databaseUrl, dataDir, sqliteSynchronous } = config
  if (databaseUrl !== null) return openPostgres({ url: databaseUrl, readers: 1, writers: 1 })
  return openSqlite({ dataDir, synchronous: sqliteSynchronous, exclusive: false })
}

/** The stores that the configuration asks for: this is the one place that knows them. */
export async function openBackend(options: BackendOptions): Promise<Backend> {
  const { databaseUrl, redisUrl } = options.config
  return databaseUrl !== null && redisUrl !== null ? openShared(options, databaseUrl, redisUrl) : openEmbedded(options)
}

/** The stores of the serving process. */
async function openStores(options: BackendOptions, clock: Clock): Promise<Stores> {
  const { calls, outbox, ...others } = await openUntimed(options, clock)
  const timed = createTimed(options.meter, 'database')
  return { ...others, calls: timedCalls(calls, timed), outbox: timedOutbox(outbox, timed) }
}

function openUntimed({ config, logger, retentionDelayMs }: BackendOptions, clock: Clock): Promise<Stores> {
  const { databaseUrl, dataDir, sqliteSynchronous, retentionDays, nodeId } = config
  const retention = {
    retentionMs: retentionDays === null ? undefined : retentionDays * dayMs,
    retentionDelayMs,
    onRemoved: (count: number) => logger.info({ count }, 'calls that were old enough are removed'),
    onError: (error: unknown) => {
      const isAway = error instanceof StoreError
      logger[isAway ? 'warn' : 'error']({ error }, 'calls that are old enough could not be removed')
    },
  }
  if (databaseUrl !== null) return openPostgres({ ...retention, url: databaseUrl, nodeId, clock })
  return openSqlite({ ...retention, dataDir, synchronous: sqliteSynchronous, exclusive: true, clock })
}

/** One process: sessions and limits are in its memory. */
async function openEmbedded(options: BackendOptions): Promise<Backend> {
  const { config } = options
  const clock = options.clock ?? createSystemClock()
  const stores = await openStores(options, clock)
  const self = newNodeName(config.nodeId, clock.now())
  const sessions = createMemorySessions({ windowMs: finalsMs, resumeWindowMs: config.resumeWindowMs })
  // Every read before the first sweep uses this time.
  sessions.sweep(clock.now())
  const counters = createMemoryCounters()
  const uptime = createLocalUptime(() => stores.calls.tryWrite(), outagesKeptMs(config), clock)
  return {
    stores,
    sessions,
    wakes: createMemoryWakes(clock.now),
    save: () => undefined,
    counters,
    localCounters: counters,
    nodes: {
      self,
      isDead: (node) => node !== self,
      isStillDead: async (node) => node !== self,
      others: () => [],
      loads: () => [],
      tell: () => {},
      told: () => {},
    },
    uptime,
    clock,
    isShared: false,
    missing: allMissing(),
    tryRedis: async () => {},
    peers: () => [],
    countAway: sessions.countAway,
    serve: async () => uptime.serve(),
    async close() {
      uptime.stop()
      await stores.close()
    },
  }
}

/** For a process that serves nobody itself. */
export const countersOfProcess = (): LocalCounters => createMemoryCounters()

/** Any number of processes: calls and heartbeats in PostgreSQL, what others need of sessions, and limits, in Redis. */
async function openShared(options: BackendOptions, databaseUrl: string, redisUrl: string): Promise<Backend> {
  const { config, logger, onCall, onTold } = options
  const stores = await openStores(options, createSystemClock())
  const heartbeats = await openPostgresHeartbeats(databaseUrl, config.nodeId)
  const timers = createSystemTimers()
  const deaths = createDeaths(timers)
  const members = joinMembers(options, { heartbeats, deaths, timers }, () => cluster)
  const localCounters = createMemoryCounters()
  const { deployment } = heartbeats
  const redis = await openRedis(options, members, { url: redisUrl, deployment, fallback: localCounters })
  const onError = (error: unknown) => logger.warn({ error }, 'Redis')
  const cluster = createCluster({
    ...{ ...redis, deaths, onCall, onTold, onError, timers, newEpoch },
    node: members.self,
    windowMs: finalsMs,
    resumeWindowMs: config.resumeWindowMs,
    isDead: members.isDead,
    owners: members.owners,
    onWaiting: (node) => fallen.suspect(node),
  })
  const locks = createPostgresEphemerals(databaseUrl, config.nodeId)
  const fallen = createFallen({
    ...{ node: members.self, stores: [locks, redis.ephemerals], onError, timers },
    others: () => new Set([...cluster.knownNodes(), ...members.others()]),
    onFallen(node) {
      logger.warn({ node }, 'both stores let go of the connections of a node: its process is dead')
      cluster.fell(node)
      members.fell(node)
    },
    onDoubted: cluster.doubt,
  })
  async function close(): Promise<void> {
    fallen.stop()
    await cluster.close()
    redis.close()
    await Promise.all([members.stop(), locks.close()])
    await stores.close()
  }
  try {
    await redis.ready()
    await cluster.start()
    await members.start()
    fallen.start()
    // Every read before the first sweep uses this time.
    await cluster.sessions.sweep(members.clock.now() - members.jumps.sum())
  } catch (error) {
    await close()
    throw error
  }
  async function tryRedis(): Promise<void> {
    await redis.tryWrite()
    // It is back, and what waited for it is not written yet: nobody could come in.
    if (!cluster.canSave()) throw new StoreError('unavailable', 'sessions are not saved yet')
  }
  const { sessions, missing, save } = cluster
  const { counters, wakes } = redis
  const { uptime, clock, jumps, serve, peers } = members
  const shared = { isShared: true, missing, tryRedis, countAway: () => undefined, peers, serve, close }
  const nodes = nodesOf(members, cluster)
  return { stores, sessions, wakes, save, counters, localCounters, nodes, uptime, clock, jumps, ...shared }
}

/** The nodes on the database. The cluster, which comes later, says what is known of them in Redis. */
function joinMembers(
  { config, logger, onDeath, sockets }: BackendOptions,
  parts: Pick<MembersOptions, 'deaths' | 'timers'> & { readonly heartbeats: PostgresHeartbeats },
  cluster: () => Cluster,
): Members {
  return createMembers({
    ...parts,
    self: newNodeName(config.nodeId, parts.heartbeats.openedAt),
    isGone: (node) => cluster().isGone(node),
    saysItLives: (node) => cluster().saysItLives(node),
    isReady: () => cluster().isReady(),
    sockets,
    keptMs: outagesKeptMs(config),
    onDeath,
    onError: (error) => logger.warn({ error }, 'the database did not take a heartbeat'),
  })
}

type RedisParts = Pick<RedisOptions, 'url' | 'deployment' | 'fallback'>

async function openRedis({ config, logger, meter }: BackendOptions, members: Members, parts: RedisParts) {
  // One process has no Redis, and starts sooner without its client.
  const { createRedisBackend } = await import('./stores/redis/open.ts')
  return createRedisBackend({
    ...parts,
    prefix: config.redisPrefix,
    node: members.self,
    isDead: members.isDead,
    ownWakes: createMemoryWakes(members.clock.now),
    now: members.clock.now,
    onLimitsAway: (error) => logger.warn({ error }, 'Redis is away: limits are counted by this node alone'),
    onLimitsBack: () => logger.info({}, 'Redis is back: limits are counted over all nodes'),
    onError: (error) => logger.warn({ error }, 'Redis'),
    timed: createTimed(meter, 'redis'),
  })
}

function nodesOf({ self, isDead, others, loads }: Members, { tell, told, lookForNodes }: Cluster): Nodes {
  return {
    ...{ self, isDead, others, loads, tell, told },
    async isStillDead(node) {
      // If Redis does not answer at once, the last look counts: rings wait for this [RING1].
      if (isDead(node)) await Promise.race([lookForNodes().catch(() => {}), Bun.sleep(lookMs)])
      return isDead(node)
    },
  }
}
