import { afterEach } from 'bun:test'
import { createMemorySessions } from '../../src/adapters/memory/sessions.ts'
import type { Call, Participant } from '../../src/call/call.ts'
import { absenceOf } from '../../src/call/peers.ts'
import type { CallStore } from '../../src/ports/call-store.ts'
import type { Nodes } from '../../src/ports/nodes.ts'
import type { Sessions } from '../../src/ports/sessions.ts'
import { type Arrivals, createArrivals } from '../../src/services/arrivals.ts'
import { type Calls, type ClientSession, createCalls, type Outcome } from '../../src/services/calls.ts'
import { createDelivery, type Delivery } from '../../src/services/delivery.ts'
import { createRelay, type Relay } from '../../src/services/relay.ts'
import { createSystemClock } from '../../src/time/clock.ts'
import { createSteadyClock } from '../../src/time/steady-clock.ts'
import { openReady, type Seen } from '../contracts/session-parts.ts'
import { openHarness } from '../contracts/sqlite-harness.ts'

export interface DomainOptions {
  /** What of the adapter is to answer otherwise now and then. */
  readonly sessions?: (real: Sessions) => Partial<Sessions>
  readonly store?: (real: CallStore) => Partial<CallStore>
  readonly isHeldElsewhere?: () => boolean
}

/** The parts that know calls, over SQLite and memory, wired as the server does it; without sockets and without time. */
export interface Domain {
  readonly sessions: Sessions
  readonly store: CallStore
  readonly delivery: Delivery
  readonly calls: Calls
  readonly relay: Relay
  readonly arrivals: Arrivals
  close(): Promise<void>
}

/** A session with its socket, as it asks for something. */
export interface Peer extends Seen {
  readonly actor: ClientSession
}

const self = 'one'
const durations = { callerLostMs: 20_000, peerLostMs: 120_000, maxDurationMs: 3_600_000 }

/** Domains that are closed after each test of the file that calls this. */
export function openDomains(): (options?: DomainOptions) => Promise<Domain> {
  const opened: Domain[] = []
  afterEach(async () => {
    for (const domain of opened.splice(0)) await domain.close()
  })
  return async (options) => {
    const domain = await openDomain(options)
    opened.push(domain)
    return domain
  }
}

export async function openDomain(options: DomainOptions = {}): Promise<Domain> {
  const harness = await openHarness()
  const stored = harness.store()
  const memory = createMemorySessions({ windowMs: 120_000, resumeWindowMs: 120_000, onLogLost: () => {} })
  const store: CallStore = { ...stored, ...options.store?.(stored) }
  const sessions: Sessions = { ...memory, ...options.sessions?.(memory) }
  const nodes: Nodes = { self, isDead: (node) => node !== self, others: () => [], tell() {} }
  const onError = (error: unknown) => {
    throw error
  }
  const clock = createSteadyClock(createSystemClock())
  const delivery = createDelivery({
    sessions,
    now: clock.now,
    stepsAfter: (ref, version) => store.stepsAfter(ref, version),
    isHeldElsewhere: options.isHeldElsewhere ?? (() => false),
    tell: nodes.tell,
    onApplied() {},
    onError,
  })
  const calls = createCalls({
    store,
    products: harness.stores().products,
    sessions,
    nodes,
    delivery,
    uptime: { outages: () => [], doubt() {} },
    limits: { invite: async () => ({ ok: true }), refundInvite: async () => {} },
    clock,
    durations,
    ringTimeoutMs: 45_000,
    maxRinging: 5,
    onCommitted() {},
  })
  const relay = createRelay({ calls, delivery, sessions, onPassed() {} })
  const arrivals = createArrivals({
    store,
    sessions,
    delivery,
    calls,
    clock,
    absenceOf: (call, side) => absenceOf(call, side, durations),
    onError,
  })
  return { sessions, store, delivery, calls, relay, arrivals, close: harness.close }
}

export async function connectPeer({ sessions }: Domain, participant: Participant, deviceId = 'phone'): Promise<Peer> {
  const seen = await openReady(sessions, { participant, deviceId })
  const actor: ClientSession = {
    participant,
    sessionId: seen.id,
    deviceId,
    node: self,
    displayName: participant.userId,
    allowedActions: ['call.invite'],
    allowedPeerRoles: ['customer', 'agent'],
    contextType: 'order',
    contextId: 'order-1',
  }
  return { ...seen, actor }
}

/** The caller invites; answers the call's uuid. */
export async function invited({ calls }: Domain, caller: Peer, callee: Peer): Promise<string> {
  const { userId, role } = callee.actor.participant
  const data = { callee_user_id: userId, callee_role: role }
  const outcome = await calls.invite(caller.actor, data)
  if (outcome.ok) await outcome.handedOn
  return done(outcome).call_uuid
}

/** The value of what succeeded. */
export function done<T>(outcome: Outcome<T>): T {
  if (!outcome.ok) throw new Error(outcome.error.code)
  return outcome.value
}

/** A call that was answered, as it is stored. */
export async function answered(domain: Domain, caller: Peer, callee: Peer): Promise<Call> {
  const callUuid = await invited(domain, caller, callee)
  return done(await domain.calls.verb(callee.actor, 'accept', callUuid, null))
}

/** The names of what a session was told, in order. */
export const eventsOf = ({ socket }: Pick<Peer, 'socket'>) => socket.told.map(({ event }) => event)
