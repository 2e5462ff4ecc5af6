import { createMessageParser } from '@ringwire/protocol/envelope'
import type { SessionClaims } from '../../src/auth/tokens.ts'
import { createDomain, type Domain, type DomainOptions } from '../../src/calls/domain.ts'
import { defaultProductSettings } from '../../src/ports/product-store.ts'
import { participantHash, tagOfHash } from '../../src/ports/session-id.ts'
import { type Admission, admissionOf } from '../../src/signaling/admission.ts'
import { createDispatch } from '../../src/signaling/dispatch.ts'
import { createGateway, type Gateway } from '../../src/signaling/gateway.ts'
import type { GatewayOptions } from '../../src/signaling/gateway-options.ts'
import type { Random } from '../fuzz/random.ts'
import { type BackendOptions, createBackend, type SimulatedBackend } from './backend.ts'
import { type DecidingBackend, decidingSettings } from './deciding-backend.ts'
import { uuidOf } from './names.ts'
import type { Host } from './scheduler.ts'

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
/** It takes 5 ms to make, and knows nothing of a node. */
const parse = createMessageParser()

export type NodeOptions = Pick<BackendOptions, 'name' | 'scheduler' | 'random' | 'redis' | 'database' | 'onError'> & {
  /** Who decides on invites; nobody where it is not given. */
  readonly hook: DecidingBackend | undefined
}

/** One run of a node: all of the service but HTTP, tokens and what no call waits for, on simulated time and stores. */
export class SimulatedNode {
  readonly backend: SimulatedBackend
  private gateway: Gateway | undefined
  private domain: Domain | undefined
  private state: 'starting' | 'ready' | 'draining' = 'starting'
  private readonly options: NodeOptions
  private readonly names: Random

  constructor(options: NodeOptions) {
    this.options = options
    this.names = options.random.fork()
    this.backend = createBackend({
      ...options,
      ...{ keptMs: times.maxCallMs, windowMs: finalsMs, resumeWindowMs: times.resumeWindowMs },
      sockets: () => this.gateway?.size() ?? null,
      onDeath: () => this.domain?.deadlines.nodeDied(),
      onCall: (call) => this.domain?.onCall(call),
      onTold: (key, version) => this.domain?.onTold(key, version),
      newEpoch: () => this.newName(),
    })
  }

  get host(): Host {
    return this.backend.host
  }

  private newName(): string {
    return this.names.bytes(16).toString('base64url')
  }

  /** In the order of `openShared` in `backend.ts`, and of `server.ts`. */
  async start(): Promise<void> {
    await this.backend.start()
    const domain = this.openDomain()
    this.domain = domain
    await domain.recovery.recover(this.backend.cluster.missing)
    this.gateway = this.openGateway(domain)
    await this.backend.members.serve()
    this.state = 'ready'
    domain.deadlines.start()
    this.gateway.start()
  }

  private openDomain(): Domain {
    const { cluster, members, nodes, stores } = this.backend
    const { timers } = this.host
    const { uptime, clock, jumps } = members
    const { hook } = this.options
    const settings = { ...defaultProductSettings, ...(hook !== undefined && decidingSettings) }
    const backend = {
      stores: { ...stores, products: { settings: () => settings }, devices: noDevices, timeline: {} },
      sessions: cluster.sessions,
      ...{ nodes, uptime, clock, jumps, isShared: true },
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
      onRingsOn() {},
      onRangNowhere() {},
      onPassed() {},
      recorder,
      hearsEnds: () => false,
      isRelayOnly: () => false,
      mayTake: () => true,
      inviteHook: hook?.askedBy(timers, this.names.fork(), clock.now) ?? noHook,
      onError: this.options.onError,
      timers,
      newUuid: () => uuidOf(this.names),
    })
  }

  private openGateway(domain: Domain): Gateway {
    const { cluster, members } = this.backend
    const { name, onError } = this.options
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
        parse,
        ...{ calls: domain.calls, relay: domain.relay, quality: domain.quality },
        presence: presence as never,
        activeCalls: domain.arrivals.activeCalls,
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
    await this.backend.close()
    this.host.kill()
  }

  /** What the socket of a client says to this process. */
  get sockets(): Partial<Pick<Gateway['websocket'], 'open' | 'message' | 'pong' | 'close'>> {
    return this.gateway?.websocket ?? {}
  }
}

/** Nobody has registered a device that could be woken. */
const noDevices = { ofMembers: () => [] }
const noHook = { ask: () => Promise.reject(new Error('no product has an invite hook')) }
const silent = {
  record() {},
  replace: () => '',
  settled() {},
  relayed() {},
  flush: async () => {},
  flushAll: async () => {},
}
/** What no call waits for says nothing here. */
const recorder = { ...silent, start() {}, stop: async () => {} }
const presence = { watch: async () => ({ ok: false }), restrict() {}, end() {} }
const quiet = { closing() {}, turnedAway() {}, full() {}, left() {}, resumed() {} }
const journal = { ...quiet, answered() {}, request() {}, rebalancing() {} }

/** What the upgrade of a connection comes to. */
export function admitted(claims: SessionClaims, query: string): Admission {
  return admissionOf(claims, new URLSearchParams(query))
}
