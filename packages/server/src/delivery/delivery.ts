import { type Call, type CallRef, callKey, type LiveCall, placeOf, type Side } from '../call/call.ts'
import type { Step } from '../call/effects.ts'
import { allDone, andThen, type MaybePromise } from '../ports/maybe.ts'
import type { Nodes } from '../ports/nodes.ts'
import type { LeftRow } from '../ports/outbox.ts'
import type { AppendResult, Push } from '../ports/push.ts'
import type { SessionPlaces, SessionPushes } from '../ports/sessions.ts'
import { type CaughtUp, createCatchingUp } from './catching-up.ts'
import { createHandingOn, type HandingOnOptions, sides } from './handing-on.ts'
import { createKnownCalls, type KnownCalls } from './known-calls.ts'
import { createLateRings } from './late-rings.ts'
import { createNotices, type NoticesOptions } from './notices.ts'
import { createPlaces, type PlacesOptions } from './places.ts'
import { createTurns } from './turns.ts'

export interface Delivery extends Pick<KnownCalls, 'hear' | 'learn' | 'sweep'> {
  readonly known: KnownCalls['calls']
  /**
   * Hands on what was committed, once and in order: places, notices, then what waited for the accept. Versions that
   * nobody has handed on yet go first. False where it cannot be handed on now, because the sessions' store is away: it is
   * undelivered then. Never rejects. `first`: something else that has to be delivered before, while others wait for this
   * one.
   */
  apply(step: Step, first?: Promise<void>): MaybePromise<boolean>
  /**
   * Takes over a call from the store: at start, where nobody else will. The sessions of the sides in `lost` are made up, and
   * count as told. If the other one is known, what it has yet to hear is in the outbox.
   */
  adopt(call: LiveCall, lost: readonly Side[]): MaybePromise<void>
  /** Hands on a step again at start, whichever sessions had it before: no session is known any more. */
  tellAgain(step: Step): MaybePromise<boolean>
  /** Hands on what was committed to a call and not handed on by anybody. */
  catchUp(call: Call): Promise<CaughtUp>
  /** A push to the session that holds a place. */
  appendToPlace(call: Call, side: Side, push: Push): MaybePromise<AppendResult>
  /** The keys of calls of which something could not be handed on, until `catchUp` has done it. */
  readonly undelivered: ReadonlySet<string>
  /** Catches up with those: a gate may be closed that nobody else opens [REL2]. Never rejects. */
  retry(): Promise<void>
}

export interface DeliveryOptions
  extends Pick<PlacesOptions, 'isHeldElsewhere'>,
    Pick<NoticesOptions, 'onRang' | 'unjumped'>,
    Pick<HandingOnOptions, 'stepsAfter' | 'onToldLeft'> {
  readonly sessions: SessionPushes & SessionPlaces
  readonly now: () => number
  /** The rows of a call that may not have reached everybody; oldest version first. */
  readonly leftOf: (ref: CallRef) => MaybePromise<readonly LeftRow[]>
  readonly load: (ref: CallRef) => MaybePromise<Call | undefined>
  /** Lets other nodes know of a step before its news arrives there, and that it has reached everybody. */
  readonly nodes: Pick<Nodes, 'tell' | 'told'>
  /** Called with every version that this process learns: time may have something to do with it. */
  readonly onApplied: (call: Call) => void
  readonly onError: (error: unknown) => void
}

/** Milliseconds after its commit after which other nodes may already have handed on a step [ORD3]. */
const lateMs = 2_000

export function createDelivery(options: DeliveryOptions): Delivery {
  const { sessions, leftOf, load, now, nodes, onError } = options
  const known = createKnownCalls(options.onApplied)
  const { undelivered, learn, hear, toldOf } = known
  const places = createPlaces({ ...options, known: known.calls })
  const notices = createNotices({ ...options, sessions, now })
  const { handOn, handOnLeft } = createHandingOn({
    ...{ ...options, known, places, notices },
    catchUpFirst: (ref) => catchUpFirst(ref),
  })
  const inTurn = createTurns(undelivered, onError)
  const lateRings = createLateRings({ ...options, notices })
  const { catchUp, catchUpFirst, retry } = createCatchingUp({ known, lateRings, inTurn, leftOf, load, handOnLeft })

  function apply(step: Step, first?: Promise<void>): MaybePromise<boolean> {
    const key = callKey(step.call)
    const before = known.calls.get(key)
    learn(step.call)
    nodes.tell(step.call)
    const work = () => applyNow(key, step, before)
    const told = inTurn(key, () => (first === undefined ? work() : first.then(work)))
    return lateRings.watchStep(step, before, told)
  }

  function applyNow(key: string, step: Step, before: Call | undefined): MaybePromise<void> {
    const { version } = step.call
    const upTo = toldOf(key)
    // A process that stood still knows what was delivered before that: others may have delivered this, and later steps.
    const isLate = now() - step.event.at > lateMs
    if (!isLate && upTo >= version) return
    // Nobody else has heard of a call that has just begun.
    if (!isLate && version === upTo + 1) return handOn(key, step, before)
    return andThen(leftOf(step.call), (left) =>
      // Others have told what came before: mostly the ring of an answer.
      !isLate && left[0]?.version === version ? handOn(key, step) : handOnLeft(key, step.call, left, version),
    )
  }

  return {
    known: known.calls,
    hear(key, version) {
      hear(key, version)
      lateRings.heard(key, version)
    },
    learn(call) {
      learn(call)
      lateRings.heard(callKey(call), call.version)
    },
    sweep: known.sweep,
    apply,
    appendToPlace: places.append,
    adopt(call, lost) {
      const key = callKey(call)
      learn(call)
      const how = { holds: true, gate: call.status === 'ringing' }
      const holds = lost.map((side) => places.apply(key, call, side, how))
      const isTold = sides.every((side) => placeOf(call, side) === null || lost.includes(side))
      return andThen(allDone(holds), () => (isTold ? hear(key, call.version) : undefined))
    },
    tellAgain(step) {
      const key = callKey(step.call)
      learn(step.call)
      return inTurn(key, () => handOn(key, step))
    },
    catchUp,
    undelivered,
    retry,
  }
}
