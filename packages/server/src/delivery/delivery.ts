import { overStatuses } from '@ringwire/protocol/end-reasons'
import type { CallAccepted } from '@ringwire/protocol/events/call'
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
} from '../call/call.ts'
import { lateRelayMs } from '../call/decide.ts'
import { acceptedData, elsewhereData, type Notice, type PeerNews, type PlaceMove, type Step } from '../call/effects.ts'
import { allDone, andThen, type MaybePromise } from '../ports/maybe.ts'
import type { Nodes } from '../ports/nodes.ts'
import type { LeftRow } from '../ports/outbox.ts'
import { type AppendResult, isRelay, type Push } from '../ports/push.ts'
import type { SessionPlaces, SessionPushes } from '../ports/sessions.ts'
import { StoreError } from '../ports/store-error.ts'
import { inBatches } from '../time/in-batches.ts'

/** Calls as this process saw them last; over ones stay for a minute [END1]. Where several serve, it may be old. */
export type KnownCalls = ReadonlyMap<string, Call>

/** `later`: a session that a living node holds is not found, and may be in a moment; `away`: nobody knows when the sessions' store is back. */
export type CaughtUp = 'done' | 'later' | 'away'

export interface Delivery {
  readonly known: KnownCalls
  /** Another node has told everybody of a call up to this version. */
  hear(key: string, version: number): void
  /**
   * Hands on what was committed, once and in order: places, notices, then what waited for the accept. Versions that
   * nobody has handed on yet go first. False where it cannot be handed on now, because the sessions' store is away: it is
   * undelivered then. Never rejects. `first`: something else that has to be told before, while others wait for this one.
   */
  apply(step: Step, first?: Promise<void>): MaybePromise<boolean>
  /** Takes over a call from the store that everybody has heard of: at start, where nobody else will. */
  adopt(call: LiveCall): MaybePromise<void>
  /** Hands on a step again at start, whoever was told of it before: nobody's session is known any more. */
  tellAgain(step: Step): MaybePromise<boolean>
  /** Takes note of a call that was read: somebody else may just be handing it on. */
  learn(call: Call): void
  /** Hands on what was committed to a call and not handed on by anybody. */
  catchUp(call: Call): Promise<CaughtUp>
  /** A push to whoever holds a place. */
  appendToPlace(call: Call, side: Side, push: Push): MaybePromise<AppendResult>
  /** The keys of calls of which something could not be handed on, until `catchUp` has done it. */
  readonly undelivered: ReadonlySet<string>
  /** Catches up with those: a gate may be closed that nobody else opens [REL2]. Never rejects. */
  retry(): Promise<void>
  /**
   * Forgets calls that are over for longer than a minute, and those that ended elsewhere: their keys are not among the live
   * ones of two sweeps. Answers the latter.
   */
  sweep(now: number, live: ReadonlySet<string>): readonly Call[]
}

export interface DeliveryOptions {
  readonly sessions: SessionPushes & SessionPlaces
  /** What was committed to a call after a version, oldest first. */
  readonly stepsAfter: (ref: CallRef, version: number) => MaybePromise<readonly Step[]>
  /** Whether another node that serves holds the socket: the session is its own to write, and nobody else begins it. */
  readonly isHeldElsewhere: (place: Place) => boolean
  readonly now: () => number
  /** What is left of a call that not everybody is known to have been told of; oldest version first. */
  readonly leftOf: (ref: CallRef) => MaybePromise<readonly LeftRow[]>
  /** Everybody was told of these rows, which are of some of these steps. */
  readonly onToldLeft: (rows: readonly LeftRow[], steps: readonly Step[]) => void
  /** Lets other nodes know of a step before its news arrives there, and that everybody was told of it. */
  readonly nodes: Pick<Nodes, 'tell' | 'told'>
  /** Called with every version that was handed on: time may have something to do with it. */
  readonly onApplied: (call: Call) => void
  readonly onError: (error: unknown) => void
}

const sides = ['caller', 'callee'] as const
/** Who could not be rung in time is told that a call rang, and how it ended, if that was no longer ago [RING1]. In ms. */
const lateRingMs = 10_000
/** What is handed on so long after its commit may have been handed on by others [ORD3]. In ms. */
const lateMs = 2_000

export function createDelivery(options: DeliveryOptions): Delivery {
  const { sessions, stepsAfter, leftOf, onToldLeft, isHeldElsewhere, now, nodes, onApplied, onError } = options
  const known = new Map<string, Call>()
  /** Up to which version everybody was told of those, as far as it is known here. */
  const told = new Map<string, number>()
  /** Of each call the delivery that is under way: its steps are handed on one after another. */
  const underWay = new Map<string, Promise<boolean>>()
  /** What was live as far as is known here, and not at the last sweep. */
  let missing = new Set<string>()
  const undelivered = new Set<string>()

  function apply(step: Step, first?: Promise<void>): MaybePromise<boolean> {
    const key = callKey(step.call)
    const before = known.get(key)
    learn(step.call)
    nodes.tell(step.call)
    const work = () => applyNow(key, step, before)
    return inTurn(key, () => (first === undefined ? work() : first.then(work)))
  }

  function inTurn(key: string, work: () => MaybePromise<void>): MaybePromise<boolean> {
    const before = underWay.get(key)
    const done = before === undefined ? guarded(key, work) : before.then(() => guarded(key, work))
    if (!(done instanceof Promise)) return done
    underWay.set(key, done)
    return done.finally(() => {
      if (underWay.get(key) === done) underWay.delete(key)
    })
  }

  function guarded(key: string, work: () => MaybePromise<void>): MaybePromise<boolean> {
    try {
      const done = work()
      if (!(done instanceof Promise)) return true
      return done.then(
        () => true,
        (error) => failed(key, error),
      )
    } catch (error) {
      return failed(key, error)
    }
  }

  /** Whether that was all that can be done: a bug would be one again and again. */
  function failed(key: string, error: unknown): boolean {
    if (error instanceof StoreError) undelivered.add(key)
    else onError(error)
    return !(error instanceof StoreError)
  }

  function applyNow(key: string, step: Step, before: Call | undefined): MaybePromise<void> {
    const { version } = step.call
    const upTo = toldOf(key)
    // A process that stood still knows what was told before that: others may have told this, and what came after it.
    const isLate = now() - step.event.at > lateMs
    if (!isLate && upTo >= version) return
    // Nobody else has heard of a call that has just begun.
    if (!isLate && version === upTo + 1) return handOn(key, step, before)
    return andThen(leftOf(step.call), (left) =>
      // Others have told what came before: mostly the ring of an answer.
      !isLate && left[0]?.version === version ? handOn(key, step) : handOnLeft(key, step.call, left, version),
    )
  }

  const toldOf = (key: string) => told.get(key) ?? 0

  function hear(key: string, version: number): void {
    if (known.has(key) && toldOf(key) < version) told.set(key, version)
  }

  /** Whatever is left of a call, by whomever: another node, or this one in an outage. `own`: but for the row of this version. */
  async function handOnLeft(key: string, call: Call, left: readonly LeftRow[], own?: number): Promise<void> {
    const [oldest] = left
    if (oldest === undefined) return hear(key, call.version)
    const steps = await stepsAfter(call, oldest.version - 1)
    // Each names the places as they are now: what waits at those of before goes there in front of everything else. Where
    // the answer is among them, nobody has a place before its gate is closed [REL2].
    const answer = steps.findIndex(isAnswer)
    for (const step of steps) await makeMoves(key, step, answer >= 0)
    // A session of a node that is silent keeps nobody else waiting for its place: a later step may end a ring [RING1].
    const holds: MaybePromise<unknown>[] = []
    for (const [index, step] of steps.entries()) await tellOf(key, step, undefined, index <= answer, holds)
    await allDone(holds)
    await sessions.confirm(key)
    const last = steps.at(-1)?.call ?? call
    wasTold(key, last)
    onToldLeft(
      left.filter(({ version }) => version <= last.version && version !== own),
      steps,
    )
  }

  function wasTold(key: string, call: Call): void {
    hear(key, call.version)
    nodes.told(call)
  }

  /** `before`: the call as it was known when the step was committed; everybody was told of the version before the step's. */
  function handOn(key: string, step: Step, before?: Call): MaybePromise<void> {
    const gate = isAnswer(step)
    const handed = andThen(makeMoves(key, step, gate), () => tellOf(key, step, before, gate))
    return andThen(
      andThen(handed, () => sessions.confirm(key)),
      () => wasTold(key, step.call),
    )
  }

  function makeMoves(key: string, { call, event }: Step, gate: boolean): MaybePromise<void> {
    return allDone((event.moved ?? []).map((each) => move(key, call, each, gate)))
  }

  /** Each session's own are in this order; the order between sessions is nobody's concern. `later`: takes what is to be waited for at last. */
  function tellOf(
    key: string,
    step: Step,
    before: Call | undefined,
    gate: boolean,
    later?: MaybePromise<unknown>[],
  ): MaybePromise<void> {
    // It waits in a log for who comes back, perhaps because the peer has heard how the call ended.
    const left = (step.event.moved ?? []).map((move) => tellLeft(key, step, move))
    return andThen(allDone(left), () => tellOthers(key, step, before, gate, later))
  }

  function tellOthers(
    key: string,
    step: Step,
    before: Call | undefined,
    gate: boolean,
    later?: MaybePromise<unknown>[],
  ): MaybePromise<void> {
    const { call, event } = step
    const ends = overStatuses.some((status) => status === event.type)
    const held = sides.filter((side) => gate || isNewPlace(call, before, side))
    // From the invite on: the callee's relays may come when nobody could tell of its answer yet [ORD2].
    const holds = ends ? [] : held.map((side) => hold(key, call, side, gate || call.status === 'ringing'))
    if (later !== undefined) later.push(...holds)
    // One that fails before it is waited for.
    for (const each of holds) if (each instanceof Promise) each.catch(() => {})
    const notices = event.notices.map((notice) => deliver(key, call, notice))
    // After the notices of the same version: a session counts them apart.
    const peers = (event.peers ?? []).map((news) => tellPeer(key, call, news))
    const isLast = ends || isAnswer(step)
    const atOnce = [...(later === undefined ? holds : []), ...notices, ...peers]
    const all = andThen(allDone(atOnce), () => (isLast ? sessions.confirm(key) : undefined))
    return andThen(all, () => {
      const last = [...(isAnswer(step) ? [handOverKept(key, call)] : []), ...(ends ? releasePlaces(key, call) : [])]
      return allDone(last)
    })
  }

  /** A place that changed hands takes its queue along [PLACE2]. */
  function move(key: string, call: Call, { side, from, lost }: PlaceMove, gate: boolean): MaybePromise<unknown> {
    const place = placeOf(call, side)
    if (place === null) return undefined
    const passOn = () => sessions.move(key, from, place.sessionId, place.settled, call.version, gate, lost)
    return andThen(passOn(), (isThere) =>
      isThere ? undefined : andThen(remember(key, call, side, place, gate), () => passOn()),
    )
  }

  /**
   * Who comes back to a place that another device took meanwhile is told so, or how the call ended there [PLACE2]. It waits in
   * the log of the session that left, as what it missed of any other call does [RES1, WS4].
   */
  function tellLeft(key: string, { call, event }: Step, { side, from, leftDevice }: PlaceMove): MaybePromise<unknown> {
    if (leftDevice === undefined) return
    const data = elsewhereData(call, 'answered_elsewhere', event.by)
    const elsewhere: Notice = { to: { place: side }, event: 'call.cancelled', data }
    const [ended] = isLive(call) ? [] : event.notices
    const push = pushOf(key, call, ended ?? elsewhere)
    return andThen(sessions.append(from, push), (result) => {
      // Nothing waited in it, and it was forgotten. Who came since the place was taken has looked, however late this is.
      if (result !== 'gone') return
      const identity = {
        sessionId: from,
        participant: participantOf(call, side),
        deviceId: leftDevice,
        extended: false,
      }
      return andThen(sessions.openDetached(identity, event.at), () => sessions.append(from, push))
    })
  }

  function hold(key: string, call: Call, side: Side, gate: boolean): MaybePromise<unknown> {
    const place = placeOf(call, side)
    return place === null ? undefined : remember(key, call, side, place, gate)
  }

  /** A holder whose socket died while its request was being committed still needs a log [PLACE5]. */
  function remember(key: string, call: Call, side: Side, place: Place, gate: boolean): MaybePromise<unknown> {
    const { sessionId, deviceId, settled } = place
    const isLost = isFoundLost(key, side, place)
    const hold = () => sessions.hold(sessionId, key, settled, gate, call.version, isLost)
    return andThen(hold(), (isThere) => {
      if (isThere) return
      const isElsewhere = isHeldElsewhere(place)
      return andThen(isElsewhere && isFoundAt(place), (isFound) =>
        andThen(isFound && hold(), (isHeld) => {
          if (isHeld) return
          // Its node is about to say that the place is lost. Of a call that is over it never is: who comes back is told there.
          if (isElsewhere && isLive(call)) throw new HolderGone()
          const identity = { sessionId, participant: participantOf(call, side), deviceId, extended: false }
          return andThen(sessions.openDetached(identity, call.startedAt), hold)
        }),
      )
    })
  }

  /** A later step than the one that is told may have found that. */
  function isFoundLost(key: string, side: Side, { sessionId, state }: Place): boolean {
    const call = known.get(key)
    const now = call && placeOf(call, side)
    return state === 'vacant' || (now?.state === 'vacant' && now.sessionId === sessionId)
  }

  /** One that does not answer now may have it. */
  function isFoundAt({ sessionId, node }: Place): MaybePromise<boolean> {
    const found = sessions.findAt(sessionId, node)
    if (!(found instanceof Promise)) return found
    return found.catch((error) => {
      throw error instanceof StoreError ? new HolderGone() : error
    })
  }

  function deliver(key: string, call: Call, notice: Notice): MaybePromise<unknown> {
    const push = pushOf(key, call, notice)
    const { to } = notice
    if (to.place !== 'rung') return appendToPlace(call, to.place, push)
    if (push.kind === 'ringing' && !isWorthRinging(call)) return
    const callee = participantOf(call, 'callee')
    if (push.kind !== 'ringing')
      return sessions.appendRung(callee, withDevice(push, call), 'except' in to ? to.except : [])
    // Who came after the end found no such call.
    return sessions.appendLive(callee, push, isLive(call) ? undefined : call.endedAt, call.startedAt)
  }

  function tellPeer(key: string, call: Call, { to, event, data }: PeerNews): MaybePromise<unknown> {
    const push: Push = { kind: 'peer', call: key, version: call.version, text: JSON.stringify({ event, data }) }
    return appendToPlace(call, to, push)
  }

  /** Told late, who has come since would hear a call ring that was answered, or is over for long. */
  function isWorthRinging(call: Call): boolean {
    if (isLive(call)) return call.status === 'ringing'
    return call.calleePlace === null && now() - call.endedAt < lateRingMs
  }

  function appendToPlace(call: Call, side: Side, push: Push): MaybePromise<AppendResult> {
    const place = placeOf(call, side)
    if (place === null) return 'dropped'
    const isLost = isFoundLost(push.call, side, place)
    const sent = sessions.append(place.sessionId, push, isLost)
    if (sent === 'sent') return sent
    return andThen(sent, (result) => {
      // A relay is sent again by whoever asked for it.
      if (result !== 'gone' || (isRelay(push) && (!isLive(call) || isHeldElsewhere(place)))) return result
      return andThen(remember(push.call, call, side, place, call.status === 'ringing'), () =>
        sessions.append(place.sessionId, push),
      )
    })
  }

  /** What each side sent before the accept, in front of what it sends after it [REL2]. */
  function handOverKept(key: string, call: Call): MaybePromise<unknown> {
    const caller = placeOf(call, 'caller')
    const callee = placeOf(call, 'callee')
    if (caller === null || callee === null) return
    const handOver = (from: Place, to: Place) =>
      andThen(sessions.takeKept(from.sessionId, key), (pushes) => sessions.openGate(to.sessionId, key, pushes))
    return allDone([handOver(callee, caller), handOver(caller, callee)])
  }

  function releasePlaces(key: string, call: Call): MaybePromise<unknown>[] {
    const places = [placeOf(call, 'caller'), placeOf(call, 'callee')]
    return places.map((place) => (place === null ? undefined : sessions.release(place.sessionId, key)))
  }

  function learn(call: Call): void {
    const key = callKey(call)
    const before = known.get(key)
    if (before !== undefined && before.version >= call.version) return
    known.set(key, call)
    onApplied(call)
  }

  async function catchUp(call: Call): Promise<CaughtUp> {
    const key = callKey(call)
    learn(call)
    let failure: 'later' | 'away' | undefined
    const isDone = await inTurn(key, async () => {
      if (toldOf(key) < call.version) {
        // Nothing is known to be missing: where the store does not say what is left, relays go on.
        const left = await whereThere(leftOf(call))
        if (left === undefined) {
          failure = 'away'
          return
        }
        await handOnLeft(key, call, left).catch((error) => {
          if (error instanceof HolderGone) failure = 'later'
          throw error
        })
      }
      undelivered.delete(key)
    })
    return isDone ? (failure ?? 'done') : (failure ?? 'away')
  }

  function forget(key: string): boolean {
    told.delete(key)
    return known.delete(key)
  }

  async function retry(): Promise<void> {
    let isAway = false
    await inBatches([...undelivered], async (key) => {
      const call = known.get(key)
      if (call === undefined) undelivered.delete(key)
      else if (!isAway) isAway = (await catchUp(call)) === 'away'
    })
  }

  return {
    known,
    hear,
    apply,
    learn,
    appendToPlace,
    adopt(call) {
      const key = callKey(call)
      learn(call)
      const holds = sides.map((side) => hold(key, call, side, call.status === 'ringing'))
      return andThen(allDone(holds), () => hear(key, call.version))
    },
    tellAgain(step) {
      const key = callKey(step.call)
      learn(step.call)
      return inTurn(key, () => handOn(key, step))
    },
    catchUp,
    undelivered,
    retry,
    sweep(now, live) {
      const before = missing
      missing = new Set()
      const ended: Call[] = []
      for (const [key, call] of known) {
        if (!isLive(call)) {
          if (now - call.endedAt > lateRelayMs) {
            forget(key)
            undelivered.delete(key)
          }
        } else if (!live.has(key)) {
          // It may have begun after the live ones were read.
          if (!before.has(key)) missing.add(key)
          else if (forget(key)) ended.push(call)
        }
      }
      return ended
    },
  }
}

/** A session that has a place is not there any more. */
class HolderGone extends StoreError {
  constructor() {
    super('unavailable', 'the session that has the place is gone')
  }
}

async function whereThere<T>(read: MaybePromise<T>): Promise<T | undefined> {
  try {
    return await read
  } catch (error) {
    if (error instanceof StoreError) return undefined
    throw error
  }
}

/** Whether a place is another than one version before; where that one is not known, it may be. */
function isNewPlace(call: Call, before: Call | undefined, side: Side): boolean {
  const place = placeOf(call, side)
  const last = before?.version === call.version - 1 ? placeOf(before, side) : null
  return place?.sessionId !== last?.sessionId || place?.settled !== last?.settled
}

const isAnswer = ({ event }: Step) => event.type === 'accepted'

function pushOf(key: string, call: Call, notice: Notice): Push {
  if (notice.event === 'call.accepted') return acceptedPush(key, call)
  const text = JSON.stringify({ event: notice.event, data: notice.data })
  return { kind: kindOf(notice), call: key, version: call.version, text }
}

/** A `stop` to who was rung is of an answer. */
function withDevice(push: Push, call: Call): Push {
  const device = push.kind === 'stop' ? placeOf(call, 'callee')?.deviceId : undefined
  return typeof device === 'string' ? { ...push, device } : push
}

/** With the callee's name, which sessions leave out for base ones: see `baseText` [EXT5]. */
export function acceptedPush(key: string, call: Call): Push {
  const { displayName } = call.callee
  const data: CallAccepted = { ...acceptedData(call), ...(displayName !== null && { display_name: displayName }) }
  return { kind: 'state', call: key, version: call.version, text: JSON.stringify({ event: 'call.accepted', data }) }
}

function kindOf(notice: Exclude<Notice, { event: 'call.accepted' }>): Push['kind'] {
  if (notice.event === 'call.ringing') return 'ringing'
  if (notice.event === 'call.status') return 'notice'
  return notice.data.ended_at === null ? 'stop' : 'final'
}
