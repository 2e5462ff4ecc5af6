import { afterEach } from 'bun:test'
import type { Capability } from '@ringwire/protocol/capabilities'
import type { Call, CallRef, Participant } from '../call/call.ts'
import type { CallStore } from '../ports/call-store.ts'
import type { Clock } from '../ports/clock.ts'
import { isRelay } from '../ports/push.ts'
import { openReady, type Seen } from '../ports/sessions.fixture.ts'
import type { Sessions } from '../ports/sessions.ts'
import { StoreError } from '../ports/store-error.ts'
import { createMemorySessions } from '../stores/memory/sessions.ts'
import { leftIn, openHarness, unhurried } from '../stores/sqlite/open.fixture.ts'
import type { SqliteStores } from '../stores/sqlite/open.ts'
import { createSystemClock } from '../time/clock.ts'
import { createSystemTimers } from '../time/timers.ts'
import { createRecorder } from '../timeline/recorder.ts'
import { createDomain, type Domain as Parts } from './domain.ts'
import type { ClientSession, Outcome } from './request.ts'

export interface DomainOptions {
  /** Methods of the adapter that sometimes answer otherwise. */
  readonly sessions?: (real: Sessions) => Partial<Sessions>
  readonly store?: (real: CallStore) => Partial<CallStore>
  /** The process before this one: its calls, its outbox and its sessions are still there. */
  readonly before?: Domain
  /** Every participant who connects counts as connected to another node that serves. */
  readonly isElsewhere?: boolean
  /** While it says so the store of the sessions is away: no step can be delivered. */
  readonly isAway?: () => boolean
  /** Other processes have sessions, too: relays are numbered, so that each is taken once. */
  readonly isShared?: boolean
  /** The machine's, where it is not given. */
  readonly clock?: Clock
  /** The thread that writes the calls, if it is not the service's own. */
  readonly startWorker?: () => Worker
  readonly onQuiet?: (ref: CallRef) => void
  readonly onNodeDied?: (calls: readonly Call[]) => void
}

/** The parts that know calls, as the service wires them, over SQLite and memory; without sockets and without time. */
export interface Domain extends Parts {
  readonly sessions: Sessions
  readonly store: CallStore
  readonly stores: SqliteStores
  /** Lets this many ms pass for the rows that wait in the outbox. */
  pass(ms: number): void
  /** How many steps are left in it. */
  left(): number
  /** The node of those who connect. */
  readonly node: string
  close(): Promise<void>
}

/** A session with its socket, as it asks for something. */
export interface Peer extends Seen {
  readonly actor: ClientSession
}

const self = 'one'
const config = {
  callerLostMs: 20_000,
  peerLostMs: 120_000,
  maxCallMs: 3_600_000,
  ringTimeoutMs: 45_000,
  maxRinging: 5,
}

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
  let now = 0
  const { startWorker } = options
  const harness = await openHarness({ ...unhurried, monotonic: () => now, ...(startWorker && { startWorker }) })
  const stored = options.before?.store ?? harness.store()
  const stores = options.before?.stores ?? harness.stores()
  const memory = options.before?.sessions ?? createMemorySessions({ windowMs: 120_000, resumeWindowMs: 120_000 })
  const store: CallStore = { ...stored, ...options.store?.(stored) }
  const reached: Sessions = { ...memory, ...options.sessions?.(memory) }
  const sessions = options.isAway === undefined ? reached : awayWhile(reached, options.isAway)
  const others = options.isElsewhere ? ['two'] : []
  const parts = createDomain({
    config,
    backend: {
      stores: { ...stores, calls: store },
      sessions,
      nodes: {
        self,
        isDead: (node) => node !== self && !others.includes(node),
        isStillDead: async (node) => node !== self && !others.includes(node),
        others: () => others,
        loads: () => [],
        tell() {},
        told() {},
      },
      uptime: { outages: () => [], doubt() {} },
      clock: options.clock ?? createSystemClock(),
      isShared: options.isShared ?? false,
    },
    limits: { invite: async () => ({ ok: true }), refundInvite: async () => {} },
    finalsMs: 120_000,
    onCommitted() {},
    onLeft() {},
    onQuiet: options.onQuiet ?? (() => {}),
    onRingsOn: () => {},
    onRangNowhere: () => {},
    onDoubt: () => {},
    onNodeDied: options.onNodeDied ?? (() => {}),
    isRelayOnly: () => false,
    mayTake: () => true,
    inviteHook: { ask: () => Promise.reject(new Error('no product has an invite hook')) },
    onPassed() {},
    timers: createSystemTimers(),
    newUuid: () => crypto.randomUUID(),
    hearsEnds: () => true,
    recorder: createRecorder({
      store: stores.timeline,
      now: Date.now,
      retentionMs: null,
      onDropped() {},
      onError: () => {},
    }),
    onError(error) {
      throw error
    },
  })
  const close = async () => {
    parts.deadlines.stop()
    await harness.close()
  }
  const pass = (ms: number) => {
    now += ms
  }
  const left = () => leftIn(harness.database)
  return { ...parts, sessions, store, stores, pass, left, node: others[0] ?? self, close }
}

/** The delivery of steps rejects while it says so; relays do not. */
function awayWhile(sessions: Sessions, isAway: () => boolean): Sessions {
  const away = () => Promise.reject(new StoreError('unavailable', 'away'))
  return {
    ...sessions,
    append: (id, push) => (isAway() && !isRelay(push) ? away() : sessions.append(id, push)),
    appendLive: (...how) => (isAway() ? away() : sessions.appendLive(...how)),
    appendRung: (...how) => (isAway() ? away() : sessions.appendRung(...how)),
    apply: (...how) => (isAway() ? away() : sessions.apply(...how)),
    move: (...how) => (isAway() ? away() : sessions.move(...how)),
  }
}

export async function connectPeer(
  { sessions, node }: Domain,
  participant: Participant,
  deviceId = 'phone',
  can?: readonly Capability[],
): Promise<Peer> {
  const seen = await openReady(sessions, { participant, deviceId, ...(can && { can }) })
  const actor: ClientSession = {
    participant,
    sessionId: seen.id,
    deviceId,
    node,
    displayName: participant.userId,
    allowedActions: ['call.invite'],
    allowedPeerRoles: ['customer', 'agent'],
    contextType: 'order',
    contextId: 'order-1',
    ...(can && { can }),
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

/** The names of the events that a session got, in order. */
export const eventsOf = ({ socket }: Pick<Peer, 'socket'>) => socket.told.map(({ event }) => event)
