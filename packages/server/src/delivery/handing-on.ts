import { type Call, type CallRef, placeOf, type Side } from '../call/call.ts'
import { alsoToldOf, type Step } from '../call/effects.ts'
import { allDone, andThen, bothOf, type MaybePromise, unawaited } from '../ports/maybe.ts'
import type { Nodes } from '../ports/nodes.ts'
import type { LeftRow } from '../ports/outbox.ts'
import type { SessionPushes } from '../ports/sessions.ts'
import { StoreError } from '../ports/store-error.ts'
import type { KnownCalls } from './known-calls.ts'
import { isEnd, type Notices, pushesTo } from './notices.ts'
import type { PlaceStep, Places } from './places.ts'

export interface HandingOnOptions {
  readonly sessions: Pick<SessionPushes, 'confirm'>
  readonly known: Pick<KnownCalls, 'hear'>
  readonly places: Places
  readonly notices: Notices
  /** The steps of a call after a version, oldest first. */
  readonly stepsAfter: (ref: CallRef, version: number) => MaybePromise<readonly Step[]>
  /** These rows, of some of these steps, have reached everybody. */
  readonly onToldLeft: (rows: readonly LeftRow[], steps: readonly Step[]) => void
  /** Delivers another call to everybody before this goes on; rejects if that is not possible now. */
  readonly catchUpFirst: (ref: CallRef) => Promise<void>
  /** Lets other nodes know that a step has reached everybody. */
  readonly nodes: Pick<Nodes, 'told'>
}

/** One step, or all that is left of a call, to every session that it concerns. */
export interface HandingOn {
  /** `before`: the call as it was known when the step was committed. The step's previous version has reached everybody. */
  handOn(key: string, step: Step, before?: Call): MaybePromise<void>
  /** Whatever is left of a call, by another node or by this one in an outage; `own`: but for the row of this version. */
  handOnLeft(key: string, call: Call, left: readonly LeftRow[], own?: number): Promise<void>
}

/** A step on its way to the sessions that it concerns. */
interface Telling {
  readonly key: string
  readonly step: Step
  /** The call as it was known when the step was committed, if it was. */
  readonly before?: Call | undefined
  /** Whether relays to the places wait until what was kept before the accept has gone out. */
  readonly gate: boolean
  /** Takes what is to be waited for at last. */
  readonly later?: MaybePromise<unknown>[]
}

export const sides = ['caller', 'callee'] as const

export function createHandingOn(options: HandingOnOptions): HandingOn {
  const { sessions, known, places, notices, stepsAfter, onToldLeft, catchUpFirst, nodes } = options

  function wasTold(key: string, call: Call): void {
    known.hear(key, call.version)
    nodes.told(call)
  }

  function makeMoves({ key, step, gate }: Telling): MaybePromise<void> {
    const { call, event } = step
    return allDone((event.moved ?? []).map((each) => places.move(key, call, each, gate)))
  }

  /** Keeps the order for each session, not between sessions. */
  function tellOf(telling: Telling): MaybePromise<void> {
    const { key, step } = telling
    // It waits in a log for a client that comes back, perhaps because its peer has heard how the call ended.
    const left = (step.event.moved ?? []).map((move) => notices.tellLeft(key, step, move))
    return andThen(allDone(left), () => tellOthers(telling, places, notices))
  }

  async function tellFirst({ product, transferredTo }: Call, callUuid: string | undefined): Promise<void> {
    if (callUuid === undefined) return
    try {
      await catchUpFirst({ product, callUuid })
    } catch (error) {
      // After a failed transfer the first call goes on, also if the node of a target does not answer.
      if (callUuid === transferredTo || !(error instanceof StoreError)) throw error
    }
  }

  return {
    handOn(key, step, before) {
      const telling = { key, step, before, gate: isAnswer(step) }
      const handed = andThen(makeMoves(telling), () => tellOf(telling))
      return andThen(
        andThen(handed, () => sessions.confirm(key)),
        () => wasTold(key, step.call),
      )
    },
    async handOnLeft(key, call, left, own) {
      const [oldest] = left
      if (oldest === undefined) return known.hear(key, call.version)
      const steps = await stepsAfter(call, oldest.version - 1)
      // The side that was transferred reads what became of the new call before it reads that in the first one [XFER1].
      for (const callUuid of new Set(steps.map(alsoToldOf))) await tellFirst(steps.at(-1)?.call ?? call, callUuid)
      // Each step names the places as they are now: what waits at the earlier ones goes there before everything else. If
      // the answer is among the steps, nobody has a place before its gate is closed [REL2].
      const answer = steps.findIndex(isAnswer)
      for (const step of steps) await makeMoves({ key, step, gate: answer >= 0 })
      // A session of a silent node lets nobody else wait for its place: a later step may end a ring [RING1].
      const later: MaybePromise<unknown>[] = []
      for (const [index, step] of steps.entries()) {
        await tellOf({ key, step, gate: index <= answer, later })
        // Another node may have a session that heard it here. There a later step would hide this one [ORD3].
        await sessions.confirm(key)
      }
      await allDone(later)
      await sessions.confirm(key)
      const last = steps.at(-1)?.call ?? call
      wasTold(key, last)
      onToldLeft(
        left.filter(({ version }) => version <= last.version && version !== own),
        steps,
      )
    },
  }
}

/** All but those who lost a place by the step. */
function tellOthers(telling: Telling, places: Places, notices: Notices): MaybePromise<void> {
  if (isAnswer(telling.step)) return tellAnswer(telling, places, notices)
  const told: MaybePromise<unknown>[] = notices.tellRung(telling.key, telling.step)
  for (const side of sides) {
    const step = stepOf(telling, side)
    if (step === undefined) continue
    const applied = places.apply(telling.key, telling.step.call, side, step)
    if (telling.later === undefined || step.pushes !== undefined) told.push(applied)
    else {
      telling.later.push(applied)
      // It may fail before it is waited for.
      unawaited(applied, () => {})
    }
  }
  return allDone(told)
}

/**
 * Each side's session gets what the other one sent before the accept, and then what comes after it [REL2]. If the
 * callee's session is here, and it mostly is, each other node hears of the answer in one message.
 */
function tellAnswer(telling: Telling, places: Places, notices: Notices): MaybePromise<void> {
  const { key, step } = telling
  const rung = notices.tellRung(key, step)
  const apply = (side: Side, more: PlaceStep | undefined) =>
    places.apply(key, step.call, side, { ...more, holds: true, isAnswered: true })
  // Once the caller's session has said what it kept, its relays go to the callee's place: so the callee's place is made
  // first.
  const ofCallee = apply('callee', stepOf(telling, 'callee'))
  const isKnown = !(ofCallee instanceof Promise)
  const ofCaller = apply('caller', { ...stepOf(telling, 'caller'), ...(isKnown && { early: ofCallee }) })
  const handed = andThen(bothOf(ofCallee, ofCaller), ([callee, caller]) =>
    allDone([isKnown ? undefined : apply('caller', { early: callee }), apply('callee', { early: caller })]),
  )
  return allDone([handed, ...rung])
}

/** The effect of a step on one side; undefined: none. */
function stepOf({ key, step, before, gate }: Telling, side: Side): PlaceStep | undefined {
  const { call } = step
  const isOver = isEnd(step)
  const pushes = pushesTo(key, step, side)
  const told = pushes.length > 0 ? { pushes } : {}
  if (isOver) return { ...told, isOver }
  // From the invite on: the callee's relays may come when nobody could tell of its answer yet [ORD2].
  if (gate || isNewPlace(call, before, side)) return { ...told, holds: true, gate: gate || call.status === 'ringing' }
  return pushes.length > 0 ? told : undefined
}

/** Whether a place has changed since the previous version; true if that version is not known. */
function isNewPlace(call: Call, before: Call | undefined, side: Side): boolean {
  const place = placeOf(call, side)
  const last = before?.version === call.version - 1 ? placeOf(before, side) : null
  return place?.sessionId !== last?.sessionId || place?.settled !== last?.settled
}

const isAnswer = ({ event }: Step) => event.type === 'accepted'
