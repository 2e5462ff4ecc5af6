import { createMessageParser } from '@ringwire/protocol/envelope'
import type { Audit } from './audit/audit.ts'
import { createRevoked, type Issued } from './auth/revoked.ts'
import type { RingTickets } from './auth/ring-ticket.ts'
import { createTokens } from './auth/tokens.ts'
import type { Backend } from './backend.ts'
import { type CallRef, sideOf } from './call/call.ts'
import type { Domain } from './calls/domain.ts'
import { createLeavingGroups } from './calls/leaving-groups.ts'
import type { Config, JwtSecret } from './config/config.ts'
import { createHistory } from './history/history.ts'
import { createSeenCalls } from './history/seen-calls.ts'
import { createClientAddress } from './http/client-address.ts'
import { createIceServers, turnExpiry } from './ice/ice-servers.ts'
import { createLocalLimits, type Limits } from './limits/limits.ts'
import type { Absences } from './observability/absences.ts'
import type { Descriptors } from './observability/descriptors.ts'
import { createHealth, type ServiceState } from './observability/health.ts'
import type { Journal } from './observability/journal.ts'
import type { Logger } from './observability/logger.ts'
import { createOperatorAnswers } from './operators/answers.ts'
import type { AddressGuard } from './outgoing/addresses.ts'
import { createParticipantExport } from './participants/export.ts'
import { createParticipants } from './participants/participants.ts'
import { newSessionId } from './ports/session-id.ts'
import { createOnline } from './presence/online.ts'
import { createPresence } from './presence/presence.ts'
import type { ProductPolicies } from './products/policies.ts'
import type { Sender } from './push/sender.ts'
import { createRest } from './rest.ts'
import { createDispatch } from './signaling/dispatch.ts'
import { createGateway } from './signaling/gateway.ts'
import { every } from './time/alarms.ts'
import { createSystemTimers } from './time/timers.ts'
import type { Recorder } from './timeline/recorder.ts'
import { createTimelines } from './timeline/timelines.ts'
import type { WebhookEndpoints } from './webhooks/endpoints.ts'

export interface FrontDeps {
  readonly config: Config
  readonly logger: Logger
  readonly backend: Backend
  readonly domain: Domain
  readonly recorder: Recorder
  readonly policies: ProductPolicies
  readonly sender: Sender
  readonly secrets: readonly JwtSecret[]
  readonly ringTickets: RingTickets
  readonly limits: Limits
  readonly audit: Audit
  readonly webhooks: WebhookEndpoints
  /** Where webhooks and questions may go [HOOK4]. */
  readonly guard: AddressGuard
  readonly hooked: () => ReadonlySet<string>
  readonly journal: Journal
  readonly absences: Absences
  readonly state: () => ServiceState
  readonly descriptors: Descriptors
}

/** What clients, backends and probes meet: sockets and the REST API. */
export function createFront(parts: FrontDeps) {
  const { config, logger, backend, policies, journal, absences, state, descriptors } = parts
  const { stores, clock } = backend
  const revoked = createRevoked({
    products: stores.products,
    now: clock.now,
    onRevoked: (participants) => gateway.closeRevoked(participants),
    onError: (error) => journal.failed(error, 'tokens that were taken back could not be read'),
  })
  const shared = createShared(parts, (token) => revoked.isRevoked(token) || policies.isDisabled(token.key))
  const watched = createWatched(parts)
  const gateway = createSockets(parts, { ...shared, ...watched })
  const health = createHealth({
    checks: {
      database: absences.watched(
        'database',
        journal.watched('database', () => stores.calls.tryWrite()),
      ),
      redis: absences.watched('redis', journal.watched('redis', backend.tryRedis)),
    },
    state,
    hasRoom: descriptors.admits,
  })
  const clientAddress = createClientAddress(config.trustProxy, logger)
  const api = createApi(parts, { ...shared, revoked, health, clientAddress })
  return { gateway, ...api, health, clientAddress, revoked, ...watched }
}

/** What sockets and the REST API both go by. */
function createShared(
  { config, backend, secrets, policies, journal }: FrontDeps,
  isRevoked: (token: Issued) => boolean,
) {
  const { clock } = backend
  return {
    config,
    clock,
    timers: createSystemTimers(),
    journal,
    isRevoked,
    tokens: createTokens({ secrets, ttlS: config.tokenTtlS, now: clock.now, isRevoked }),
    localLimits: createLocalLimits(config, backend.localCounters),
    iceServers: createIceServers(config),
    isRelayOnly: policies.isRelayOnly,
    turnExpiry: (now: number) => turnExpiry(config, now),
  }
}

type Shared = ReturnType<typeof createShared>

/** Who is there, for clients and for webhooks. */
function createWatched({ backend, policies, hooked, journal }: FrontDeps) {
  const { stores, clock, nodes } = backend
  const presence = createPresence({
    sessions: backend.sessions,
    calls: stores.calls,
    now: clock.monotonic,
    isOpen: policies.isPresenceOpen,
    onError: (error) => journal.failed(error, 'who is there could not be read'),
  })
  const online = createOnline({
    store: stores.online,
    self: nodes.self,
    isDead: nodes.isDead,
    hooked,
    now: clock.monotonic,
    wall: clock.now,
    every,
    onError: (error) => journal.failed(error, 'who is online could not be told'),
  })
  return { presence, online }
}

function createSockets(parts: FrontDeps, shared: Shared & ReturnType<typeof createWatched>) {
  const { backend, policies, recorder, journal, state, descriptors } = parts
  const { calls, relay, quality, arrivals } = parts.domain
  const dispatch = createDispatch({
    parse: createMessageParser(),
    calls,
    relay,
    presence: shared.presence,
    isPresenceOpen: policies.isPresenceOpen,
    quality,
    activeCalls: arrivals.activeCalls,
    verify: shared.tokens.verify,
    renew: (session, expiresAt) => {
      const done = arrivals.renew(session, expiresAt)
      done.catch((error) => journal.failed(error, 'a session could not go on with its new token'))
    },
    now: backend.clock.now,
    onError: (error, event) => journal.failed(error, 'a request failed', { event }),
    onAnswered: journal.request,
  })
  return createGateway({
    ...shared,
    node: backend.nodes.self,
    newSessionId,
    sessions: backend.sessions,
    save: backend.save,
    arrivals,
    recorder,
    dispatch,
    state,
    roomForNewcomer: descriptors.roomForNewcomer,
    loads: backend.nodes.loads,
    onError: (error) => journal.failed(error, 'a connection failed'),
  })
}

/** What only the REST API goes by. */
interface OfApi {
  readonly revoked: ReturnType<typeof createRevoked>
  readonly health: ReturnType<typeof createHealth>
  readonly clientAddress: ReturnType<typeof createClientAddress>
}

function createApi(parts: FrontDeps, shared: Shared & OfApi) {
  const { backend, recorder, secrets, ringTickets, sender, limits, webhooks } = parts
  const { calls, quality } = parts.domain
  const { stores, clock } = backend
  const seenCalls = createSeenCalls({ ...stores, flush: recorder.flushAll })
  const endCall = (ref: CallRef, note: string | null) => calls.run(ref, { type: 'stop', note })
  const timelines = createTimelines({ ...stores, flush: recorder.flushAll })
  const { revoked } = shared
  const leaving = createLeavingGroups({ store: stores.calls, run: calls.run })
  const participants = createParticipants({
    ...stores,
    sessions: backend.sessions,
    seenCalls,
    revoked,
    endCall: (call, participant) =>
      sideOf(call, participant) === undefined
        ? calls.run(call, { type: 'leave', userIds: [participant.userId] })
        : endCall(call, null),
    forgetMember: leaving.forget,
    flush: recorder.flushAll,
    hasOthers: () => backend.nodes.others().length > 0,
    now: clock.now,
    jumpedMs: parts.domain.jumpedMs,
  })
  const { app, ofProducts, heard } = createRest({
    ...shared,
    guard: parts.guard,
    secrets,
    products: stores.products,
    ringTickets,
    devices: stores.devices,
    groups: stores.groups,
    leaveCalls: leaving.leave,
    sender,
    store: stores.calls,
    calls,
    node: backend.nodes.self,
    limits,
    history: createHistory({ calls: stores.calls }),
    seenCalls,
    quality,
    timelines,
    participants,
    exportOf: createParticipantExport({ ...stores, participants, revoked, timelines, now: clock.now }),
    endCall,
    transferCall: calls.transferForBackend,
    webhooks,
    audit: parts.audit,
  })
  const { products } = stores
  const operate = createOperatorAnswers({
    ...{ endpoints: ofProducts, heard, seenCalls, products, auditStore: stores.audit, audit: parts.audit },
    webhooks: stores.webhooks,
    journal: shared.journal,
    now: clock.now,
  })
  return { app, operate }
}
