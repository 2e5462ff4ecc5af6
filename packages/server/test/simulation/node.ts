import { createMessageParser } from '@ringwire/protocol/envelope'
import type { SessionClaims } from '../../src/auth/tokens.ts'
import { createDomain, type Domain, type DomainOptions } from '../../src/calls/domain.ts'
import { createMembers, type Members } from '../../src/cluster/members.ts'
import { type Cluster, createCluster } from '../../src/cluster/sessions.ts'
import type { Nodes } from '../../src/ports/nodes.ts'
import { defaultProductSettings } from '../../src/ports/product-store.ts'
import { participantHash, tagOfHash } from '../../src/ports/session-id.ts'
import type { Admission } from '../../src/signaling/admission.ts'
import { createDispatch } from '../../src/signaling/dispatch.ts'
import { readExtendedQuery } from '../../src/signaling/extended-query.ts'
import { createGateway, type Gateway, type GatewayOptions } from '../../src/signaling/gateway.ts'
import type { Random } from '../fuzz/random.ts'
import type { Database } from './database.ts'
import { uuidOf } from './names.ts'
import { type RedisWorld, redisPorts } from './redis.ts'
import { Host, type Scheduler } from './scheduler.ts'
import { databasePorts } from './stores.ts'
import { createWay, type Link, type Way } from './way.ts'

export const times = {
  ringTimeoutMs: 2_500,
  callerLostMs: 4_000,
  peerLostMs: 10_000,
  maxCallMs: 86_400_000,
  resumeWindowMs: 30_000,
  pingIntervalMs: 5_000,
  pongTimeoutMs: 4_000,
  probeTimeoutMs: 3_000,
} as const
const finalsMs = 120_000
const lookMs = 500

export interface NodeOptions {
  /** Names this run of the node: no other has had the name. */
  readonly name: string
  readonly scheduler: Scheduler
  readonly random: Random
  readonly redis: RedisWorld
  readonly database: Database
  readonly onError: (error: unknown) => void
}

/** One run of a node: all of the service but HTTP, tokens and what no call waits for, on simulated time and stores. */
export class SimulatedNode {
  readonly name: string
  readonly host: Host
  readonly redisLink: Link = { isUp: true, lossPerMille: 0, latencyMs: 2 }
  readonly databaseLink: Link = { isUp: true, lossPerMille: 0, latencyMs: 4 }
  readonly ways: readonly Way[]
  private gateway: Gateway | undefined
  private domain: Domain | undefined
  private state: 'starting' | 'ready' | 'draining' = 'starting'
  private readonly options: NodeOptions
  private readonly names: Random
  private readonly stores: ReturnType<typeof databasePorts>
  private readonly members: Members
  private readonly cluster: Cluster

  constructor(options: NodeOptions) {
    const { name, scheduler, random, redis, database, onError } = options
    this.options = options
    this.name = name
    this.host = new Host(scheduler, random.fork())
    this.names = random.fork()
    const { timers } = this.host
    const toRedis = () => createWay(scheduler, this.host, random.fork(), this.redisLink, redis)
    const [commands, reading] = [toRedis(), toRedis()]
    const statements = createWay(scheduler, this.host, random.fork(), this.databaseLink, database)
    this.ways = [commands, reading, statements]
    this.stores = databasePorts(database, statements, timers)
    this.members = createMembers({
      heartbeats: this.stores.heartbeats,
      self: name,
      timers,
      isGone: (node) => this.cluster.isGone(node),
      saysItLives: (node) => this.cluster.saysItLives(node),
      isReady: () => this.cluster.isReady(),
      sockets: () => this.gateway?.size() ?? null,
      keptMs: times.maxCallMs,
      onDeath: () => this.domain?.deadlines.nodeDied(),
      onError,
    })
    this.cluster = createCluster({
      ...redisPorts(redis, name, this.host, commands, reading),
      node: name,
      windowMs: finalsMs,
      resumeWindowMs: times.resumeWindowMs,
      isDead: (node) => this.members.isDead(node),
      owners: () => this.members.owners(),
      onCall: (call) => this.domain?.onCall(call),
      onTold: (key, version) => this.domain?.onTold(key, version),
      onError,
      timers,
      newEpoch: () => this.newName(),
    })
  }

  private newName(): string {
    return this.names.bytes(16).toString('base64url')
  }

  /** In the order of `openShared` in `backend.ts`, and of `server.ts`. */
  async start(): Promise<void> {
    const { cluster, members } = this
    const hasSessions = await cluster.start()
    await members.start()
    await cluster.sessions.sweep(members.clock.now())
    const domain = this.openDomain()
    this.domain = domain
    await domain.recovery.recover(hasSessions)
    this.gateway = this.openGateway(domain)
    await members.serve()
    this.state = 'ready'
    domain.deadlines.start()
    this.gateway.start()
  }

  private openDomain(): Domain {
    const { cluster, members, stores } = this
    const { timers } = this.host
    const { self, others, loads, uptime, clock } = members
    const isDead = (node: string) => members.isDead(node)
    const nodes: Nodes = {
      ...{ self, isDead, others, loads, tell: cluster.tell, told: cluster.told },
      async isStillDead(node) {
        if (isDead(node)) await Promise.race([cluster.lookForNodes().catch(() => {}), timers.sleep(lookMs)])
        return isDead(node)
      },
    }
    const backend = {
      stores: { ...stores, products: { settings: () => defaultProductSettings }, timeline: {} },
      sessions: cluster.sessions,
      ...{ nodes, uptime, clock, isShared: true },
    } as unknown as DomainOptions['backend']
    return createDomain({
      config: { ...times, maxRinging: 1_000 },
      backend,
      limits: { invite: async () => ({ ok: true }), refundInvite: async () => {} },
      finalsMs,
      onCommitted() {},
      onLeft() {},
      onDoubt() {},
      onNodeDied() {},
      onQuiet() {},
      onPassed() {},
      recorder,
      hearsEnds: () => false,
      isRelayOnly: () => false,
      onError: this.options.onError,
      timers,
      newUuid: () => uuidOf(this.names),
    })
  }

  private openGateway(domain: Domain): Gateway {
    const { cluster, members, name } = this
    const { onError } = this.options
    const { clock, loads } = members
    return createGateway({
      config: {
        ...times,
        ...{ allowedOrigins: null, maxSockets: 1_000, maxUnsentMib: 1_000, rebalancePerSecond: 0 },
        ...{ tokenTtlS: 86_400, tokenGraceMs: 0, wsRate: null },
      },
      node: name,
      newSessionId: (participant) => tagOfHash(participantHash(participant)) + this.newName(),
      tokens: undefined as never,
      isRevoked: () => false,
      localLimits: { refundConnection() {} } as never,
      sessions: cluster.sessions,
      save: cluster.save,
      arrivals: domain.arrivals,
      dispatch: createDispatch({
        parse: createMessageParser(),
        ...{ calls: domain.calls, relay: domain.relay, quality: domain.quality },
        presence: presence as never,
        isPresenceOpen: () => false,
        verify: () => ({ ok: false }) as never,
        renew() {},
        now: clock.now,
        onError,
        onAnswered() {},
      }),
      presence,
      online: { opened() {}, closed() {} },
      recorder,
      iceServers: () => [] as never,
      isRelayOnly: () => false,
      turnExpiry: () => null,
      clock,
      timers: this.host.timers,
      state: () => this.state,
      roomForNewcomer: () => 'free',
      loads,
      journal,
      onError,
    } satisfies GatewayOptions)
  }

  get isReady(): boolean {
    return this.state === 'ready' && this.host.isAlive
  }

  /** SIGTERM: it ends by itself. */
  async terminate(): Promise<void> {
    this.state = 'draining'
    await this.gateway?.closeAll(0)
    this.gateway?.stop()
    this.domain?.deadlines.stop()
    await this.cluster.close()
    await this.members.stop()
    this.host.kill()
  }

  /** What the socket of a client says to this process. */
  get sockets(): Partial<Pick<Gateway['websocket'], 'open' | 'message' | 'pong' | 'close'>> {
    return this.gateway?.websocket ?? {}
  }
}

const silent = { record() {}, replace: () => '', relayed() {}, flush: async () => {}, flushAll: async () => {} }
/** What no call waits for says nothing here. */
const recorder = { ...silent, start() {}, stop: async () => {} }
const presence = { watch: async () => ({ ok: false }), restrict() {}, end() {} }
const quiet = { closing() {}, turnedAway() {}, full() {}, left() {}, resumed() {} }
const journal = { ...quiet, answered() {}, request() {}, rebalancing() {} }

/** What the upgrade of a connection comes to. */
export function admitted(claims: SessionClaims, query: string): Admission {
  const extended = readExtendedQuery(new URLSearchParams(query))
  return {
    kind: 'session',
    claims,
    extended,
    connection: undefined,
    isIn: false,
    arrival: undefined,
    inCallAt: 0,
    iceDueAt: 0,
  }
}
