import { type Call, callKey, isLive, type Place, participantOf, placeOf, type Side } from './call/call.ts'
import { lateRelayMs } from './call/decide.ts'
import type { Notice, Step } from './call/effects.ts'
import type { Push, Sessions } from './ports.ts'

/** The last version of every call that this node has to do with; over ones stay for a minute [END1]. */
export type KnownCalls = ReadonlyMap<string, Call>

export interface Delivery {
  readonly known: KnownCalls
  /** Hands on what was committed, once and in order: places, notices, then what waited for the accept. */
  apply(step: Step): void
  /** Takes over a call from the store without telling anybody: at start, or when first named here. */
  learn(call: Call): void
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

  function apply(step: Step): void {
    const { call } = step
    const key = callKey(call)
    const before = known.get(key)
    if (before !== undefined && before.version >= call.version) return
    known.set(key, call)
    if (isLive(call)) {
      for (const side of ['caller', 'callee'] as const) movePlace(key, before, call, side)
    }
    for (const notice of step.event.notices) deliver(key, call, notice)
    if (step.event.type === 'accepted') handOverWaiting(key, call)
    if (!isLive(call)) forgetPlaces(key, call, before)
    onApplied(call)
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
    learn(call) {
      const key = callKey(call)
      const before = known.get(key)
      if (before !== undefined && before.version >= call.version) return
      known.set(key, call)
      if (!isLive(call)) return
      for (const side of ['caller', 'callee'] as const) movePlace(key, undefined, call, side)
      onApplied(call)
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
        if (!isLive(call) && now - call.endedAt > lateRelayMs) known.delete(key)
      }
    },
  }
}

function kindOf(notice: Notice): Push['kind'] {
  if (notice.event === 'call.ringing') return 'ringing'
  if (notice.event === 'call.status') return 'notice'
  return notice.event === 'call.accepted' ? 'state' : 'final'
}
