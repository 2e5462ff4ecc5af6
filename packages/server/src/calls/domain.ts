import { type Call, type CallDurations, type CallRef, callKey, type LiveCall, type RingingCall } from '../call/call.ts'
import { byClock } from '../call/clock.ts'
import type { Step } from '../call/effects.ts'
import { absenceOf } from '../call/peers.ts'
import type { Config } from '../config/config.ts'
import { createDelivery, type Delivery } from '../delivery/delivery.ts'
import { createOutbox, type Outbox, type OutboxOptions } from '../delivery/outbox.ts'
import type { InviteHook } from '../invite-hook/invite-hook.ts'
import type { CallStore } from '../ports/call-store.ts'
import type { Clock, Jumps, Timers } from '../ports/clock.ts'
import type { Devices } from '../ports/devices.ts'
import type { Groups } from '../ports/groups.ts'
import type { Nodes, Uptime } from '../ports/nodes.ts'
import type { Outbox as OutboxStore } from '../ports/outbox.ts'
import type { ProductStore } from '../ports/product-store.ts'
import type { Sessions } from '../ports/sessions.ts'
import { StoreError } from '../ports/store-error.ts'
import type { TimelineStore } from '../ports/timeline.ts'
import { createOwnJumps, createSteadyClock, type SteadyClock } from '../time/steady-clock.ts'
import type { Recorder } from '../timeline/recorder.ts'
import { type Arrivals, type ArrivalsOptions, createArrivals } from './arrivals.ts'
import { createAskBackend } from './ask-backend.ts'
import { createFindGroup } from './called-groups.ts'
import { type Calls, type CallsOptions, createCalls } from './calls.ts'
import { createClockedSteps } from './clocked-steps.ts'
import { createDeadlines, type Deadlines, type DeadlinesOptions } from './deadlines.ts'
import { createEndQuality, type EndQualityOptions } from './end-quality.ts'
import { isHeldElsewhere, isShareOf } from './holders.ts'
import { createHolds } from './holds.ts'
import { createQuality, type Quality, type SeenMedia } from './quality.ts'
import { createRecovery, type Recovery } from './recovery.ts'
import { createRelay, type Relay, type RelayOptions } from './relay.ts'
import { createTurnTaking } from './turn-taking.ts'

export interface DomainOptions {
  readonly config: Pick<Config, 'callerLostMs' | 'peerLostMs' | 'maxCallMs' | 'ringTimeoutMs' | 'maxRinging'>
  /** What the node keeps, and with whom it serves. */
  readonly backend: {
    readonly stores: {
      readonly calls: CallStore
      readonly outbox: OutboxStore
      readonly products: ProductStore
      readonly groups: Groups
      readonly devices: Devices
      readonly timeline: TimelineStore
    }
    readonly sessions: Sessions
    readonly nodes: Nodes
    readonly uptime: Uptime
    readonly clock: Clock
    /** What that clock jumped; not given where this process goes by a clock of its own. */
    readonly jumps?: Jumps | undefined
    /** Sessions are those of several nodes, and outlive this one. */
    readonly isShared: boolean
  }
  readonly limits: CallsOptions['limits']
  /** How long final notices of calls that are over are worth telling, in ms [WS4]. */
  readonly finalsMs: number
  readonly onCommitted: CallsOptions['onCommitted']
  /** The step has reached everybody. */
  readonly onTold?: (step: Step) => void
  /** A step of a call that may ring, which its own process has not delivered: nobody may have seen to what goes with it. */
  readonly onLeft: OutboxOptions['onLeft']
  /** A device of the callee may have fallen asleep since the call rings [PUSH2]. */
  readonly onDoubt: ArrivalsOptions['onDoubt']
  /** A node is gone while these calls ring: this node's share of them [PUSH2]. */
  readonly onNodeDied: (calls: readonly RingingCall[]) => void
  /** A call that is over or was answered, here or elsewhere; called again at each of its later versions. */
  readonly onQuiet: (ref: CallRef) => void
  /** A call to a group that rings, maybe at fewer members than before. */
  readonly onRingsOn: (call: RingingCall) => void
  /** A call began to ring, and its callee had no session [TRACE1]. */
  readonly onRangNowhere: (call: RingingCall) => void
  readonly onPassed: RelayOptions['onPassed']
  /** Writes down what is seen of calls [TRACE1]. */
  readonly recorder: Recorder
  /** Whether anybody hears how calls of a product end. */
  readonly hearsEnds: (product: string) => boolean
  readonly isRelayOnly: RelayOptions['isRelayOnly']
  /** Whether a product lets devices take calls from each other [TAKE1]. */
  readonly mayTake: (product: string) => boolean
  /** Asks the backends of products that decide on their invites [HOOK5]. */
  readonly inviteHook: InviteHook
  /** A call could not be looked after. */
  readonly onError: (error: unknown) => void
  readonly timers: Timers
  /** A uuid that no other call has. */
  readonly newUuid: () => string
}

/** The parts that know calls, wired together. */
export interface Domain {
  readonly calls: Calls
  readonly relay: Relay
  readonly quality: Quality
  readonly arrivals: Arrivals
  readonly outbox: Outbox
  readonly recovery: Recovery
  readonly deadlines: Deadlines
  readonly delivery: Delivery
  /** What another node has just committed to a call. */
  onCall(call: Call): void
  /** What the clock has jumped in all, in ms: the instants of sessions are without that. */
  jumpedMs(): number
  /** It has told everybody of a call up to this version. */
  onTold(key: string, version: number): void
}

/**
 * Sessions of several nodes outlive an outage of their store: a client with a socket still shows a call that ended when
 * it began, however long ago [EXT3]. An older end was left by a version that ran here before. In ms.
 */
const longestOutageMs = 86_400_000
/** How long the end of a call may wait for what is known of its media, in ms. */
const qualityMs = 250

export function createDomain(options: DomainOptions): Domain {
  const { config, backend, finalsMs, recorder, onError, timers } = options
  const { stores, sessions, nodes, uptime } = backend
  const clock = createSteadyClock(backend.clock, backend.jumps ?? createOwnJumps(nodes.self))
  const store = { ...stores.calls, ...createClockedSteps(stores.calls, clock) }
  const durations = durationsOf(config)
  const { delivery, outbox } = createHandingOn(options, clock, (call) => deadlines.watch(call))
  const load = async (ref: CallRef) => delivery.known.get(callKey(ref)) ?? (await store.load(ref))
  const holds = createHolds({ recorder, now: clock.now })
  const quality = createQuality({ recorder, holds, timeline: stores.timeline, load, now: clock.now })
  const mediaAtEnd = createMediaAtEnd(quality, options)
  const { isRelayOnly, onPassed, mayTake } = options
  const parts = { store, sessions, nodes, uptime, delivery, recorder, clock, durations, mayTake, onError, timers }
  const calls = createCalls({
    ...parts,
    askBackend: createAskBackend({ store, hook: options.inviteHook, findGroup: createFindGroup({ ...stores, store }) }),
    withQuality: createEndQuality({ hearsEnds: options.hearsEnds, mediaAtEnd }),
    products: stores.products,
    groups: stores.groups,
    limits: options.limits,
    ringTimeoutMs: config.ringTimeoutMs,
    maxRinging: config.maxRinging,
    newUuid: options.newUuid,
    onCommitted: options.onCommitted,
    onTold(step) {
      outbox.told(step)
      options.onTold?.(step)
    },
  })
  const arrivals = createArrivals({
    ...parts,
    calls,
    absenceOf: (call, side) =>
      absenceOf(byClock(call, clock.written()), side, { ...durations, outages: uptime.outages() }),
    onDoubt: options.onDoubt,
  })
  const deadlines = createDeadlines({
    ...parts,
    run: createTurnTaking({ ...parts, devices: stores.devices, begin: calls.begin }),
    onPage: createOnPage(options, arrivals),
    onRound(now, live) {
      for (const call of delivery.sweep(now, live)) {
        deadlines.forget(call)
        options.onQuiet(call)
      }
    },
    async onSweep() {
      await Promise.all([outbox.sweep(), delivery.retry()])
    },
  })
  return {
    ...{ calls, quality, arrivals, outbox, deadlines, delivery },
    relay: createRelay({ ...parts, calls, holds, isShared: backend.isShared, isRelayOnly, onPassed }),
    recovery: createRecovery({ ...parts, calls, finalsMs }),
    onCall(call) {
      store.note(call)
      delivery.learn(call)
    },
    jumpedMs: () => clock.written().jumpedMs,
    onTold: delivery.hear,
  }
}

function durationsOf({ callerLostMs, peerLostMs, maxCallMs }: DomainOptions['config']): CallDurations {
  return { callerLostMs, peerLostMs, maxDurationMs: maxCallMs }
}

/** Steps that are handed on, and those that nobody has handed on. */
function createHandingOn(
  options: DomainOptions,
  { now, written }: SteadyClock,
  watch: (call: Call) => void,
): Pick<Domain, 'delivery' | 'outbox'> {
  const { backend, finalsMs, recorder, onLeft, onRangNowhere, onError } = options
  const { stores, sessions, nodes } = backend
  const store = stores.calls
  const noteRing = createNoteRing(options)
  const stepsAfter: CallStore['stepsAfter'] = (ref, version) => store.stepsAfter(ref, version)
  const delivery = createDelivery({
    ...{ sessions, now, stepsAfter, nodes, onError },
    unjumped: (call, at) => at - (call.clock?.of === written().of ? call.clock.jumpedMs : 0),
    load: (ref) => store.load(ref),
    isHeldElsewhere: (place) => isHeldElsewhere(place, nodes),
    leftOf: (ref) => outbox.leftOf(ref),
    onToldLeft: (rows, steps) => outbox.toldLeft(rows, steps),
    onRang(call, rang) {
      if (call.group === undefined) return rang === 0 ? onRangNowhere(call) : undefined
      // Told twice, it is one entry.
      recorder.replace(`rang ${callKey(call)}`, call, { what: 'members', side: null, detail: { rang } })
    },
    onApplied(call) {
      watch(call)
      noteRing(call)
      if (call.status !== 'ringing') recorder.settled(call)
    },
  })
  const outbox = createOutbox({
    ...{ now, stepsAfter, onLeft, onError },
    store: stores.outbox,
    load: (ref) => store.load(ref),
    catchUp: delivery.catchUp,
    toldMs: backend.isShared ? longestOutageMs : finalsMs,
  })
  return { delivery, outbox }
}

/** Tells the part that wakes devices for a call where it does not ring any more. */
function createNoteRing({ onQuiet, onRingsOn }: Pick<DomainOptions, 'onQuiet' | 'onRingsOn'>) {
  return (call: Call) => {
    if (call.status !== 'ringing') onQuiet(call)
    else if (call.group !== undefined) onRingsOn(call)
  }
}

/** Null where it is not known in time: nobody waits longer than that to hang up [TRACE1, STAT1, HOLD1]. */
function createMediaAtEnd(
  quality: Quality,
  { onError, timers }: Pick<DomainOptions, 'onError' | 'timers'>,
): EndQualityOptions['mediaAtEnd'] {
  return async (ref): Promise<SeenMedia | null> => {
    const { promise: late, resolve } = Promise.withResolvers<null>()
    const cancel = timers.after(qualityMs, () => resolve(null))
    const known = quality.of(ref).catch((error) => {
      if (!(error instanceof StoreError)) onError(error)
      return null
    })
    return Promise.race([known, late]).finally(cancel)
  }
}

function createOnPage(options: DomainOptions, { ringLate }: Arrivals): DeadlinesOptions['onPage'] {
  const { backend, onNodeDied, onError } = options
  const noteRing = createNoteRing(options)
  return (live: readonly LiveCall[], isAfterDeath) => {
    // A node that wakes for a call, and holds no place of it, is not told that it was answered [PUSH2]. Nothing more is
    // learned here: what was sent before an accept that nobody has handed on has to go out first [REL2].
    for (const call of live) noteRing(call)
    ringLate(live).catch((error) => {
      // The next look tries again.
      if (!(error instanceof StoreError)) onError(error)
    })
    if (!isAfterDeath) return
    // Each node that is left looks after its share; if one of them dies meanwhile, the shares are dealt out again.
    onNodeDied(live.filter((call) => call.status === 'ringing').filter((call) => isShareOf(call, backend.nodes)))
  }
}
