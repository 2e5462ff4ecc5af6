import {
  type Call,
  type CallRef,
  callKey,
  isLive,
  type LiveCall,
  type Place,
  participantOf,
  placeOf,
  type Side,
} from './call/call.ts'
import { lateRelayMs } from './call/decide.ts'
import type { Notice, Step } from './call/effects.ts'
import type { Push, Sessions } from './ports.ts'

/** The last version of every call that this node has to do with; over ones stay for a minute [END1]. */
export type KnownCalls = ReadonlyMap<string, Call>

export interface Delivery {
  readonly known: KnownCalls
  /** Hands on what was committed, once and in order: places, notices, then what waited for the accept. */
  apply(step: Step): void
  /** Takes over a call from the store without telling anybody: at start, where nobody else will. */
  adopt(call: LiveCall): void
  /**
   * The same for a call that is first named here. What is known already is brought forward by `apply` alone, and so is a
   * call whose first step is on its way here while it can be read: a read may be faster than the answer to a commit.
   */
  learn(call: Call): void
  /** The last version of a call whose notices were handed on here; 0 where none were. */
  toldOf(call: CallRef): number
  /** Keeps a message of a side that may not be forwarded before the accept; false when it is full [REL2]. */
  keepForAccept(call: Call, from: { side: Side; sessionId: string }, push: Push): boolean
  /** Forgets calls that are over for longer than a minute. */
  sweep(now: number): void
}

export interface DeliveryOptions {
  readonly sessions: Sessions
  /** Called with every version that was applied: time may have something to do with it. */
  readonly onApplied: (call: Call) => void
}

/** What waits for the accept: the caller's messages, and those of each rung session apart [REL2]. */
const preAcceptBounds = { entries: 256, bytes: 256 * 1024 } as const
interface Waiting {
  pushes: Push[]
  bytes: number
}

export function createDelivery({ sessions, onApplied }: DeliveryOptions): Delivery {
  const known = new Map<string, Call>()
  const waiting = new Map<string, Map<string, Waiting>>()
  /** Of calls that were learned: up to which version their notices were handed on. */
  const learned = new Map<string, number>()

  function told(key: string): number {
    return learned.get(key) ?? known.get(key)?.version ?? 0
  }

  function apply(step: Step): void {
    const { call } = step
    const key = callKey(call)
    const before = known.get(key)
    if (told(key) >= call.version) return
    if (before === undefined || before.version <= call.version) {
      learned.delete(key)
      take(key, call, before)
    } else learned.set(key, call.version)
    for (const notice of step.event.notices) deliver(key, call, notice)
    if (step.event.type === 'accepted') handOverWaiting(key, call)
    if (!isLive(call)) forgetPlaces(key, call, before)
    onApplied(known.get(key) ?? call)
  }

  /** From now on this is the call. */
  function take(key: string, call: Call, before: Call | undefined): void {
    known.set(key, call)
    if (!isLive(call)) return
    for (const side of ['caller', 'callee'] as const) movePlace(key, before, call, side)
  }

  /** A place that changed hands takes its queue along [PLACE2]. */
  function movePlace(key: string, before: Call | undefined, call: Call, side: Side): void {
    const now = placeOf(call, side)
    const was = before === undefined ? null : placeOf(before, side)
    if (now === null) return
    remember(call, side, now)
    sessions.hold(now.sessionId, key, now.settled)
    if (was !== null && was.sessionId !== now.sessionId) {
      sessions.move(key, was.sessionId, now.sessionId)
      sessions.release(was.sessionId, key)
    }
  }

  /** A holder whose socket died while its request was being committed still needs a log [PLACE5]. */
  function remember(call: Call, side: Side, place: Place): void {
    if (sessions.sinkOf(place.sessionId) !== undefined) return
    const { sessionId, deviceId } = place
    sessions.openDetached(
      { sessionId, participant: participantOf(call, side), deviceId, extended: false },
      call.startedAt,
    )
  }

  function deliver(key: string, call: Call, notice: Notice): void {
    const push: Push = {
      kind: kindOf(notice),
      call: key,
      version: call.version,
      text: JSON.stringify({ event: notice.event, data: notice.data }),
    }
    const { to } = notice
    if (to.place !== 'rung') {
      const place = placeOf(call, to.place)
      if (place !== null) sessions.append(place.sessionId, push)
      return
    }
    const callee = participantOf(call, 'callee')
    if (push.kind === 'ringing') for (const sessionId of sessions.liveOf(callee)) sessions.append(sessionId, push)
    else sessions.appendRung(callee, push, 'except' in to ? to.except : [])
  }

  function handOverWaiting(key: string, call: Call): void {
    const sides = waiting.get(key)
    waiting.delete(key)
    const callerPlace = placeOf(call, 'caller')
    const calleePlace = placeOf(call, 'callee')
    if (sides === undefined || callerPlace === null || calleePlace === null) return
    for (const push of sides.get(calleePlace.sessionId)?.pushes ?? []) sessions.append(callerPlace.sessionId, push)
    for (const push of sides.get('')?.pushes ?? []) sessions.append(calleePlace.sessionId, push)
  }

  function forgetPlaces(key: string, call: Call, before: Call | undefined): void {
    waiting.delete(key)
    for (const holder of [call, before]) {
      for (const side of ['caller', 'callee'] as const) {
        const place = holder === undefined ? null : placeOf(holder, side)
        if (place !== null) sessions.release(place.sessionId, key)
      }
    }
  }

  return {
    known,
    apply,
    toldOf: (ref) => told(callKey(ref)),
    adopt(call) {
      const key = callKey(call)
      if (known.has(key)) return
      take(key, call, undefined)
      onApplied(call)
    },
    learn(call) {
      const key = callKey(call)
      if (known.has(key)) return
      learned.set(key, 0)
      take(key, call, undefined)
      if (isLive(call)) onApplied(call)
    },
    keepForAccept(call, from, push) {
      const key = callKey(call)
      let sides = waiting.get(key)
      if (sides === undefined) {
        sides = new Map()
        waiting.set(key, sides)
      }
      const name = from.side === 'caller' ? '' : from.sessionId
      const queue = sides.get(name) ?? { pushes: [], bytes: 0 }
      if (queue.pushes.length >= preAcceptBounds.entries) return false
      if (queue.bytes + push.text.length > preAcceptBounds.bytes) return false
      queue.pushes.push(push)
      queue.bytes += push.text.length
      sides.set(name, queue)
      return true
    },
    sweep(now) {
      for (const [key, call] of known) {
        if (isLive(call) || now - call.endedAt <= lateRelayMs) continue
        known.delete(key)
        learned.delete(key)
      }
    },
  }
}

function kindOf(notice: Notice): Push['kind'] {
  if (notice.event === 'call.ringing') return 'ringing'
  if (notice.event === 'call.status') return 'notice'
  return notice.event === 'call.accepted' ? 'state' : 'final'
}
