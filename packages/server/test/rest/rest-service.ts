/** The REST endpoints over real HTTP, on the real SQLite store, with a clock that tests can move. */

import { expect } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TokenResponse } from '@ringwire/protocol/rest'
import { createValidator } from '@ringwire/protocol/validate'
import type { TSchema } from 'typebox'
import { createAudit } from '../../src/audit/audit.ts'
import { createRingTickets, type RingTickets } from '../../src/auth/ring-ticket.ts'
import { createTokens, type TokenInput, type Tokens } from '../../src/auth/tokens.ts'
import { createDomain } from '../../src/calls/domain.ts'
import { createLeavingGroups } from '../../src/calls/leaving-groups.ts'
import { type Config, loadConfig } from '../../src/config/config.ts'
import { createHistory } from '../../src/history/history.ts'
import { createSeenCalls } from '../../src/history/seen-calls.ts'
import { runtimeBodyBound } from '../../src/http/body.ts'
import { createClientAddress } from '../../src/http/client-address.ts'
import { createIceServers, turnExpiry } from '../../src/ice/ice-servers.ts'
import { createLimits, createLocalLimits, type Limits } from '../../src/limits/limits.ts'
import { createHealth, type ServiceState } from '../../src/observability/health.ts'
import { createJournal } from '../../src/observability/journal.ts'
import { createLogger } from '../../src/observability/logger.ts'
import { createMetrics } from '../../src/observability/metrics.ts'
import { createAddressGuard } from '../../src/outgoing/addresses.ts'
import type { Participants } from '../../src/participants/participants.ts'
import { hashSecret } from '../../src/products/product-auth.ts'
import { createRest } from '../../src/rest.ts'
import { createMemoryCounters } from '../../src/stores/memory/limits.ts'
import { createMemorySessions } from '../../src/stores/memory/sessions.ts'
import { openSqlite, type SqliteStores } from '../../src/stores/sqlite/open.ts'
import { createSystemTimers } from '../../src/time/timers.ts'
import { createRecorder } from '../../src/timeline/recorder.ts'
import { createTimelines } from '../../src/timeline/timelines.ts'
import { createWebhookEndpoints } from '../../src/webhooks/endpoints.ts'

export const jwtKey = Buffer.alloc(32, 5)
export const keys = {
  shop: { id: 'shop-key', secret: 'the secret of the shop: 0123456789', products: ['shop'] },
  both: { id: 'both-key', secret: 'the secret of both, 0123456789', products: ['shop', 'clinic'] },
  off: { id: 'off-key', secret: 'the secret of nobody 0123456789', products: ['shop'] },
} as const

export const goodBody = {
  context_type: 'order',
  context_id: '17',
  user_id: 'ann',
  role: 'customer',
  display_name: 'Ann',
  allowed_peer_role: 'agent',
}

export const credentials = (key: { id: string; secret: string } = keys.shop) => ({
  'X-SVC-Product-Key-ID': key.id,
  'X-SVC-Product-Secret': key.secret,
})

/** The store, shared by the cases of one file: it keeps no limits. */
export async function openStores(): Promise<{ stores: SqliteStores; dataDir: string; close(): Promise<void> }> {
  const dataDir = mkdtempSync(join(tmpdir(), 'ringwire-rest-'))
  const stores = await openSqlite({ dataDir, synchronous: 'NORMAL', exclusive: true })
  for (const { id, secret, products } of Object.values(keys)) {
    await stores.products.putKey({ keyId: id, secretHash: hashSecret(secret), products, origin: 'cli' }, 0)
  }
  await stores.products.setDisabled(keys.off.id, true, 0)
  const close = async () => {
    await stores.close()
    rmSync(dataDir, { recursive: true, force: true })
  }
  return { stores, dataDir, close }
}

export interface RestOptions {
  readonly stores: SqliteStores
  /** Nobody is sent away or erased without it. */
  readonly participants?: Participants
  readonly env?: Record<string, string>
  readonly now?: number
}

export interface RestService {
  readonly url: string
  readonly config: Config
  readonly clock: { at: number }
  readonly tokens: Tokens
  readonly ringTickets: RingTickets
  readonly limits: Limits
  readonly log: string[]
  state: ServiceState
  get(path: string, init?: RequestInit): Promise<Response>
  /** POST of the token endpoint; a body that is no text or bytes goes out as JSON. */
  ask(body: unknown, headers?: Record<string, string>): Promise<Response>
  /** A session token without the endpoint. */
  token(wish?: Partial<TokenInput>): string
  /** Sends bytes as they are and gives all that comes back until the service closes, or has answered as often. */
  raw(request: string | Uint8Array, answers?: number): Promise<string>
  stop(): Promise<void>
}

const nobodyErased: Participants = {
  show: async () => ({ online: false, sessions: [], devices: [], live_calls: [] }),
  disconnect: async (_, until = 0) => until,
  erase: async () => {
    throw new Error('nobody is erased here')
  },
  isErasing: () => false,
  erasureHeard: async () => {},
}

export function startRest(options: RestOptions): RestService {
  const { stores } = options
  const loaded = loadConfig({ ...options.env })
  if (!loaded.ok) throw new Error(loaded.problems.join('\n'))
  const { config } = loaded
  const log: string[] = []
  const logger = createLogger({ level: 'debug', destination: { write: (line) => void log.push(line) } })
  const meter = createMetrics({ node: 'test', version: '1', stores: ['database'] })
  const time = { at: options.now ?? Date.UTC(2026, 0, 1) }
  const clock = { now: () => time.at, monotonic: () => performance.now() }
  const secrets = config.jwtSecrets ?? [{ kid: 'k', key: jwtKey }]
  const tokens = createTokens({ secrets, ttlS: config.tokenTtlS, now: clock.now })
  const ringTickets = createRingTickets({ secrets, now: clock.now })
  const limits = createLimits(config, createMemoryCounters())
  const recorder = createRecorder({
    store: stores.timeline,
    now: clock.now,
    retentionMs: null,
    onDropped() {},
    onError(error) {
      throw error
    },
  })
  const { calls, quality } = createDomain({
    config,
    backend: {
      stores,
      sessions: createMemorySessions({ windowMs: 120_000, resumeWindowMs: 120_000 }),
      nodes: {
        self: 'test',
        isDead: () => false,
        isStillDead: async () => false,
        others: () => [],
        loads: () => [],
        tell() {},
        told() {},
      },
      uptime: { outages: () => [], doubt() {} },
      clock,
      isShared: false,
    },
    limits,
    finalsMs: 120_000,
    onCommitted() {},
    timers: createSystemTimers(),
    newUuid: () => crypto.randomUUID(),
    onLeft() {},
    onQuiet() {},
    onRingsOn() {},
    onRangNowhere() {},
    onDoubt: () => {},
    onNodeDied: () => {},
    isRelayOnly: () => false,
    mayTake: () => true,
    inviteHook: { ask: () => Promise.reject(new Error('no product has an invite hook')) },
    onPassed() {},
    recorder,
    hearsEnds: () => false,
    onError(error) {
      throw error
    },
  })
  const localLimits = createLocalLimits(config, createMemoryCounters())
  const guard = createAddressGuard(config.webhookAllow)
  const { app } = createRest({
    audit: createAudit({
      ...{ store: stores.audit, now: clock.now, retentionMs: null },
      onError(error) {
        throw error
      },
    }),
    clientAddress: createClientAddress(config.trustProxy, logger),
    config,
    journal: createJournal({ logger, isDebug: true, now: () => performance.now(), meter }),
    clock,
    tokens,
    secrets,
    limits,
    localLimits,
    products: stores.products,
    guard,
    ringTickets,
    isRevoked: () => false,
    revoked: { look: async () => {} },
    devices: stores.devices,
    groups: stores.groups,
    leaveCalls: createLeavingGroups({ store: stores.calls, run: calls.run }).leave,
    sender: { serves: () => false },
    store: stores.calls,
    calls,
    node: 'test',
    iceServers: createIceServers(config),
    isRelayOnly: (product) => product === 'clinic',
    turnExpiry: (now) => turnExpiry(config, now),
    history: createHistory({ calls: stores.calls }),
    seenCalls: createSeenCalls(stores),
    quality,
    timelines: createTimelines({ ...stores, flush: recorder.flush }),
    participants: options.participants ?? nobodyErased,
    exportOf: () => {
      throw new Error('nobody is exported here')
    },
    endCall: async () => {
      throw new Error('nobody ends a call here')
    },
    transferCall: async () => {
      throw new Error('nobody transfers a call here')
    },
    webhooks: createWebhookEndpoints({
      store: stores.webhooks,
      guard,
      now: clock.now,
      onChanged: async () => {},
    }),
    health: createHealth({
      checks: { database: () => stores.calls.tryWrite(), redis: async () => {} },
      state: () => service.state,
    }),
  })
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    maxRequestBodySize: runtimeBodyBound,
    fetch: (request, bun) => app.fetch(request, bun.requestIP(request)?.address),
  })
  const url = `http://127.0.0.1:${server.port}`
  const service: RestService = {
    url,
    config,
    clock: time,
    tokens,
    ringTickets,
    limits,
    log,
    state: 'ready',
    get: (path, init) => fetch(url + path, init),
    ask(body, headers = credentials()) {
      const raw = typeof body === 'string' || body instanceof Uint8Array || body === undefined
      return fetch(`${url}/v1/call/session-token`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', ...headers },
        body: raw ? ((body ?? null) as string | null) : JSON.stringify(body),
      })
    },
    token: (wish) =>
      tokens.issue({
        participant: { product: 'shop', role: 'customer', userId: 'ann' },
        displayName: 'Ann',
        contextType: 'order',
        contextId: '17',
        allowedPeerRoles: ['agent'],
        ...wish,
      }).token,
    raw: (request, answers = 1) => exchange(server.port ?? 0, request, answers),
    stop: () => server.stop(true),
  }
  return service
}

/** How long is waited for an answer. A bound for failures, never a pace. */
const patienceMs = 30_000

function exchange(port: number, request: string | Uint8Array, answers: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1')
    let text = ''
    const end = () => {
      socket.destroy()
      resolve(text)
    }
    const timer = setTimeout(() => reject(new Error(`no answer; so far: ${text}`)), patienceMs)
    socket.on('data', (bytes) => {
      text += bytes.toString('latin1')
      if (text.split('HTTP/1.1 ').length - 1 >= answers && /\r\n\r\n[^\r]*$/.test(text)) end()
    })
    socket.on('close', () => {
      clearTimeout(timer)
      end()
    })
    socket.on('error', end)
    socket.write(request)
  })
}

export interface Failure {
  status: number
  code: string
  message: string
}

/** Reads a REST error body, which has exactly these members. */
export async function failureOf(response: Response): Promise<Failure> {
  const body = (await response.json()) as { success: boolean; error: { code: string; message: string } }
  const members = [Object.keys(body), Object.keys(body.error), body.success]
  if (JSON.stringify(members) !== '[["success","error"],["code","message"],false]') {
    throw new Error(`not the REST error body: ${JSON.stringify(body)}`)
  }
  return { status: response.status, ...body.error }
}

/** Asks a route below `path` with a product key; a body goes out as JSON. */
export const asker =
  (service: () => RestService, path: string) =>
  (method: string, below = '', body?: unknown, headers = credentials()): Promise<Response> =>
    service().get(path + below, { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) })

/** The body of an answer that fits its schema, and that nobody may keep. */
// biome-ignore lint/suspicious/noExplicitAny: what it is was validated.
export async function read(schema: TSchema, asked: Promise<Response>, status = 200): Promise<any> {
  const response = await asked
  expect([response.status, response.headers.get('cache-control')]).toEqual([status, 'no-store'])
  const body = await response.json()
  expect(createValidator(schema)(body).ok).toBe(true)
  return body
}

export async function tokenOf(response: Response): Promise<TokenResponse> {
  if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`)
  return (await response.json()) as TokenResponse
}
