/**
 * What the service counts [MET1]. The journal and the stores say what happened; here stands what it is counted as. No
 * label is anything that a client makes up, so no series is one person's or one call's.
 *
 *   const metrics = createMetrics({ node, version, stores: ['database'] })
 *   metrics.relayed('webrtc.offer', 'short', 4_200)
 *   textOf(metrics.families(now))
 */
import { clientEvents } from '@ringwire/protocol/client-events'
import { closeCodes } from '@ringwire/protocol/close-codes'
import { endingReasons } from '@ringwire/protocol/end-reasons'
import { endpoints } from '@ringwire/protocol/endpoints'
import { webSocketPath } from '@ringwire/protocol/subprotocol'
import { type Call, isLive, type LiveCall, wasJoined } from '../call/call.ts'
import type { Step } from '../call/effects.ts'
import type { AskResult } from '../invite-hook/invite-hook.ts'
import { StoreError } from '../ports/store-error.ts'
import { type Counts, createCounts } from './counts.ts'
import type { Family } from './families.ts'
import { gauge } from './series.ts'

/** The short road: a known call and the peer's log. The long one asks the store about the call first. */
export type Road = 'short' | 'long'

/** The names of the log. */
export type StoreName = 'database' | 'redis'

/** What is told to the metrics. Each is an addition or two, and nothing is kept of what it was about. */
export interface Meter {
  /** A `webrtc.*` message was passed on; its size is that of the text that the peer gets. */
  relayed(event: string, road: Road, bytes: number): void
  /** A message of a client was answered; without an event: it was not a request. */
  requested(event: string | undefined, result: string): void
  /** An HTTP request was answered. */
  answered(path: string, status: number): void
  /** So was one of an operator. */
  operator(status: number): void
  committed(step: Step): void
  /** A socket is closed by the service, for a cause that the service words, or by its client. */
  closed(code: number, cause: string): void
  resumed(isRecovered: boolean): void
  limited(limit: string): void
  /** A store has answered. */
  stored(store: StoreName, operation: string, seconds: number): void
  storeFailed(store: StoreName, error: unknown): void
  /** A push went to a push service, or was given up. */
  pushed(platform: string, result: string): void
  /** An attempt to deliver a webhook ended. */
  hooked(result: 'delivered' | 'repeated' | 'failed'): void
  /** A question about an invite went to a backend. */
  inviteAsked(result: AskResult): void
  /** The event loop was late for a timer. */
  delayed(seconds: number): void
}

/** The present values, read for each scrape. */
export interface Present {
  readonly connections: number
  /** Sessions with a socket, and those that wait for their client to come back, where this process knows them. */
  readonly sessions: { readonly connected: number; readonly away?: number }
  /** Live calls; of several nodes each counts those whose caller it holds. */
  readonly calls: Readonly<Record<'ringing' | 'accepted' | 'connected', number>>
  /** How long the oldest step has waited that may not have reached everybody, if this process knows it. */
  readonly outboxOldestSeconds?: number
}

/** The values of a process that serves nobody itself. */
export const nobody: Present = {
  connections: 0,
  sessions: { connected: 0 },
  calls: { ringing: 0, accepted: 0, connected: 0 },
}

export interface Metrics extends Meter {
  families(present: Present): Family[]
}

const endLabels = new Set<string>(endingReasons)
const paths = new Set<string>([...Object.values(endpoints).map(({ path }) => path), '/metrics'])
/** Those that a client's close frame, or its lack, comes to (RFC 6455 section 7.4.1), and ours. */
const codes = new Set([1000, 1002, 1003, 1005, 1006, 1007, 1008, ...Object.keys(closeCodes).map(Number)])

export interface MetricsOptions {
  readonly node: string
  readonly version: string
  /** Those that this process has. */
  readonly stores: readonly StoreName[]
}

export function createMetrics({ node, version, stores: storeNames }: MetricsOptions): Metrics {
  const counts = createCounts()
  const { limits, relays, relayBytes, requests } = counts
  expectCounts(counts, storeNames)

  return {
    relayed(event, road, bytes) {
      relays.add(1, event, road)
      relayBytes.add(bytes)
    },
    requested(event, result) {
      requests.add(1, event === undefined ? 'unknown' : eventOf(event), result)
    },
    answered(path, status) {
      requests.add(1, paths.has(path) ? path : 'other', String(status))
      if (status === 429) limits.add(1, path === webSocketPath ? 'connections' : 'rest')
    },
    operator(status) {
      counts.operators.add(1, String(status))
      if (status === 429) limits.add(1, 'operators')
    },
    committed({ call, event }) {
      countRung(counts, call, event.type)
      if (isLive(call)) observeSetup(counts.setup, call, event.type)
      else counts.ended.add(1, call.status, endLabels.has(call.endReason) ? call.endReason : 'other')
    },
    closed(code, cause) {
      counts.closes.add(1, codes.has(code) ? String(code) : 'other', cause)
      if (code === 4429) limits.add(1, cause === 'too many connections' ? 'connections' : 'messages')
    },
    resumed: (isRecovered) => counts.resumes.add(1, isRecovered ? 'recovered' : 'refused'),
    limited: (limit) => limits.add(1, limit),
    stored: (store, operation, seconds) => counts.stores.observe(seconds, store, operation),
    storeFailed: (store, error) => counts.storeErrors.add(1, store, kindOf(error)),
    pushed: (platform, result) => counts.pushes.add(1, platform, result),
    hooked: (result) => counts.hooks.add(1, result),
    inviteAsked: (result) => counts.inviteHooks.add(1, result),
    delayed: (seconds) => counts.delays.observe(seconds),
    families: (present) => [
      gauge('ringwire_build_info', ['version', 'node'], 'The version and the name of the node.', [[1, version, node]]),
      ...gaugesOf(present),
      ...Object.values(counts).map((metric) => metric.family()),
    ],
  }
}

/** A rate is known from the first one on where the series was there before: alerts ask for these, and people do. */
function expectCounts(counts: Counts, storeNames: readonly StoreName[]): void {
  const { limits, storeErrors, stores, requests, hooks, inviteHooks, transfers, groupCalls, resumes, operators } =
    counts
  for (const limit of [
    'messages',
    'invites',
    'pair_invites',
    'ringing',
    'connections',
    'rest',
    'operators',
    'descriptors',
  ]) {
    limits.add(0, limit)
  }
  for (const store of storeNames) {
    for (const kind of storeErrorKinds) storeErrors.add(0, store, kind)
    for (const operation of store === 'redis' ? ['check', 'save'] : ['check', 'commit']) stores.expect(store, operation)
  }
  for (const event of Object.keys(clientEvents)) {
    for (const result of ['ok', 'SERVICE_UNAVAILABLE', 'INTERNAL_ERROR']) requests.add(0, event, result)
  }
  for (const result of ['delivered', 'repeated', 'failed']) hooks.add(0, result)
  for (const result of ['allow', 'refuse', 'redirect', 'withdrawn', 'failed']) inviteHooks.add(0, result)
  for (const result of ['accepted', 'joined', 'rejected', 'missed', 'cancelled']) transfers.add(0, result)
  for (const result of ['accepted', 'rejected', 'missed', 'cancelled', 'busy']) groupCalls.add(0, result)
  for (const result of ['recovered', 'refused']) resumes.add(0, result)
  for (const status of [200, 401, 429]) operators.add(0, String(status))
}

/** What became of a call to a group, and of one that was transferred. */
function countRung({ transfers, groupCalls }: Counts, call: Call, what: Step['event']['type']): void {
  const isAccepted = what === 'accepted'
  if (!isAccepted && (isLive(call) || call.acceptedAt !== null)) return
  const result = isAccepted ? 'accepted' : call.status
  if (call.transferred !== undefined) transfers.add(1, wasJoined(call) ? 'joined' : result)
  if (call.group !== undefined) groupCalls.add(1, result)
}

function observeSetup(setup: Counts['setup'], call: LiveCall, what: Step['event']['type']): void {
  if (call.status === 'accepted' && what === 'accepted') {
    if (!wasJoined(call)) setup.observe(secondsBetween(call.startedAt, call.acceptedAt), 'ring')
  } else if (call.status === 'connected' && what === 'connected') {
    setup.observe(secondsBetween(call.acceptedAt, call.connectedAt ?? call.acceptedAt), 'connect')
  }
}

function gaugesOf({ connections, sessions, calls, outboxOldestSeconds: oldest }: Present): Family[] {
  const away = sessions.away === undefined ? [] : [[sessions.away, 'away'] as const]
  const byStatus = Object.entries(calls).map(([status, count]) => [count, status] as const)
  return [
    gauge('ringwire_connections', [], 'Open sockets.', [[connections]]),
    gauge(
      'ringwire_sessions',
      ['state'],
      'Sessions with a socket, and those that are away and may come back, if a single process serves.',
      [[sessions.connected, 'connected'], ...away],
    ),
    gauge('ringwire_calls', ['status'], 'Live calls; of several nodes each tells of its callers.', byStatus),
    {
      ...gauge(
        'ringwire_outbox_oldest_seconds',
        [],
        'How long the oldest step of a call has waited that has not reached everybody; of several nodes all say the same.',
        oldest === undefined ? [] : [[oldest]],
      ),
      isShared: true,
    },
  ]
}

const eventOf = (event: string) => (Object.hasOwn(clientEvents, event) ? event : 'unknown')

const storeErrorKinds = ['unavailable', 'unknown', 'full', 'refused'] as const

function kindOf(error: unknown): (typeof storeErrorKinds)[number] {
  if (!(error instanceof StoreError)) return 'refused'
  return isFull(error) ? 'full' : error.kind
}

/** SQLite, PostgreSQL (53100), Redis at its `maxmemory`, and the disk itself. */
export function isFull(error: StoreError): boolean {
  return /disk is full|no space left|SQLITE_FULL|ENOSPC|\(53100\)|\bOOM\b/i.test(
    `${error.message} ${String(error.cause)}`,
  )
}

function secondsBetween(from: number, to: number): number {
  return Math.max(0, to - from) / 1_000
}
