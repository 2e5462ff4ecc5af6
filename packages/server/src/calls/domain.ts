import type { CallQuality } from '@ringwire/protocol/backend'
import { type Call, type CallRef, callKey, type RingingCall } from '../call/call.ts'
import { absenceOf } from '../call/peers.ts'
import type { Config } from '../config/config.ts'
import { createDelivery, type Delivery } from '../delivery/delivery.ts'
import { createOutbox, type Outbox, type OutboxOptions } from '../delivery/outbox.ts'
import type { CallStore } from '../ports/call-store.ts'
import type { Clock, Timers } from '../ports/clock.ts'
import type { Nodes, Uptime } from '../ports/nodes.ts'
import type { Outbox as OutboxStore } from '../ports/outbox.ts'
import type { ProductStore } from '../ports/product-store.ts'
import type { Sessions } from '../ports/sessions.ts'
import { StoreError } from '../ports/store-error.ts'
import type { TimelineStore } from '../ports/timeline.ts'
import { createSteadyClock } from '../time/steady-clock.ts'
import type { Recorder } from '../timeline/recorder.ts'
import { type Arrivals, type ArrivalsOptions, createArrivals } from './arrivals.ts'
import { type Calls, type CallsOptions, createCalls } from './calls.ts'
import { createDeadlines, type Deadlines } from './deadlines.ts'
import { createEndQuality } from './end-quality.ts'
import { isHeldElsewhere, isShareOf } from './holders.ts'
import { createQuality, type Quality } from './quality.ts'
import { createRecovery, type Recovery } from './recovery.ts'
import { createRelay, type Relay, type RelayOptions } from './relay.ts'

export interface DomainOptions {
  readonly config: Pick<Config, 'callerLostMs' | 'peerLostMs' | 'maxCallMs' | 'ringTimeoutMs' | 'maxRinging'>
  /** What the node keeps, and with whom it serves. */
  readonly backend: {
    readonly stores: {
      readonly calls: CallStore
      readonly outbox: OutboxStore
      readonly products: ProductStore
      readonly timeline: TimelineStore
    }
    readonly sessions: Sessions
    readonly nodes: Nodes
    readonly uptime: Uptime
    readonly clock: Clock
    /** Sessions are those of several nodes, and outlive this one. */
    readonly isShared: boolean
  }
  readonly limits: CallsOptions['limits']
  /** How long final notices of calls that are over are worth telling, in ms [WS4]. */
  readonly finalsMs: number
  readonly onCommitted: CallsOptions['onCommitted']
  /** A step of a call that may ring, of which its own process has not told: nobody may have seen to what goes with it. */
  readonly onLeft: OutboxOptions['onLeft']
  /** A device of the callee may have fallen asleep since the call rings [PUSH2]. */
  readonly onDoubt: ArrivalsOptions['onDoubt']
  /** A node is gone while these calls ring: this node's share of them [PUSH2]. */
  readonly onNodeDied: (calls: readonly RingingCall[]) => void
  /** A call that is over or was answered, here or elsewhere; called again at each of its later versions. */
  readonly onQuiet: (ref: CallRef) => void
  readonly onPassed: RelayOptions['onPassed']
  /** Writes down what is seen of calls [TRACE1]. */
  readonly recorder: Recorder
  /** Whether anybody hears how calls of a product end. */
  readonly hearsEnds: (product: string) => boolean
  readonly isRelayOnly: RelayOptions['isRelayOnly']
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
  /** It has told everybody of a call up to this version. */
  onTold(key: string, version: number): void
}

/**
 * Sessions of several nodes outlive an outage of their store: whoever has a socket still shows a call that ended when it
 * began, however long ago [EXT3]. What is older was left by a version that ran here before. In ms.
 */
const longestOutageMs = 86_400_000
/** So long the end of a call may wait for what is known of its media, in ms. */
const qualityMs = 250

export function createDomain(options: DomainOptions): Domain {
  const { config, backend, limits, finalsMs, onCommitted, onPassed, onError } = options
  const { isRelayOnly, recorder, hearsEnds, onLeft, onDoubt, onNodeDied, onQuiet, timers } = options
  const { stores, sessions, nodes, uptime } = backend
  const store = stores.calls
  const durations = {
    callerLostMs: config.callerLostMs,
    peerLostMs: config.peerLostMs,
    maxDurationMs: config.maxCallMs,
  }
  const clock = createSteadyClock(backend.clock)
  const delivery = createDelivery({
    sessions,
    now: clock.now,
    stepsAfter: (ref, version) => store.stepsAfter(ref, version),
    isHeldElsewhere: (place) => isHeldElsewhere(place, nodes),
    nodes,
    leftOf: (ref) => outbox.leftOf(ref),
    onToldLeft: (rows, steps) => outbox.toldLeft(rows, steps),
    onApplied(call) {
      deadlines.watch(call)
      if (call.status !== 'ringing') onQuiet(call)
    },
    onError,
  })
  const quality = createQuality({
    recorder,
    timeline: stores.timeline,
    load: async (ref) => delivery.known.get(callKey(ref)) ?? (await store.load(ref)),
    now: clock.now,
  })
  /** Null where it is not known in time: nobody waits longer than that to hang up [TRACE1, STAT1]. */
  async function qualityAtEnd(ref: CallRef): Promise<CallQuality | null> {
    const { promise: late, resolve } = Promise.withResolvers<null>()
    const cancel = timers.after(qualityMs, () => resolve(null))
    const known = quality.of(ref).catch((error) => {
      if (!(error instanceof StoreError)) onError(error)
      return null
    })
    return Promise.race([known, late]).finally(cancel)
  }
  const calls = createCalls({
    withQuality: createEndQuality({ hearsEnds, qualityAtEnd }),
    store,
    products: stores.products,
    sessions,
    nodes,
    delivery,
    limits,
    uptime,
    recorder,
    clock,
    durations,
    ringTimeoutMs: config.ringTimeoutMs,
    maxRinging: config.maxRinging,
    newUuid: options.newUuid,
    onCommitted,
    onTold: (step) => outbox.told(step),
    onError,
  })
  const outbox = createOutbox({
    store: stores.outbox,
    load: (ref) => store.load(ref),
    catchUp: delivery.catchUp,
    stepsAfter: (ref, version) => store.stepsAfter(ref, version),
    onLeft,
    toldMs: backend.isShared ? longestOutageMs : finalsMs,
    now: clock.now,
    onError,
  })
  const deadlines = createDeadlines({
    store,
    sessions,
    nodes,
    uptime,
    clock,
    durations,
    run: calls.begin,
    onPage(live, isAfterDeath) {
      // A node that wakes for a call, and holds no place of it, is not told that it was answered [PUSH2]. Nothing more is
      // learned here: what was sent before an accept that nobody has handed on has to go out first [REL2].
      for (const call of live) if (call.status !== 'ringing') onQuiet(call)
      arrivals.ringLate(live).catch((error) => {
        // The next look tries again.
        if (!(error instanceof StoreError)) onError(error)
      })
      if (!isAfterDeath) return
      // Each node that is left looks after its share; if one of them dies meanwhile, the shares are dealt out again.
      onNodeDied(live.filter((call) => call.status === 'ringing').filter((call) => isShareOf(call, nodes)))
    },
    onRound(now, live) {
      for (const call of delivery.sweep(now, live)) {
        deadlines.forget(call)
        onQuiet(call)
      }
    },
    async onSweep() {
      await Promise.all([outbox.sweep(), delivery.retry()])
    },
    onError,
    timers,
  })
  const arrivals = createArrivals({
    store,
    sessions,
    delivery,
    calls,
    recorder,
    clock,
    absenceOf: (call, side) => absenceOf(call, side, { ...durations, outages: uptime.outages() }),
    onDoubt,
    onError,
    timers,
  })
  return {
    calls,
    quality,
    relay: createRelay({
      calls,
      delivery,
      sessions,
      isShared: backend.isShared,
      isRelayOnly,
      onPassed,
      recorder,
      timers,
    }),
    arrivals,
    outbox,
    recovery: createRecovery({ store, sessions, nodes, delivery, calls, clock, durations, finalsMs }),
    deadlines,
    delivery,
    onCall(call) {
      store.note(call)
      delivery.learn(call)
    },
    onTold: delivery.hear,
  }
}
