import {
  type Call,
  type CallRef,
  callKey,
  isLive,
  type LiveCall,
  type RingingCall,
  ringsAt,
  rungBy,
  sameParticipant,
} from '../call/call.ts'
import { byClock } from '../call/clock.ts'
import { type Notice, ringingData, rungTo } from '../call/effects.ts'
import type { Delivery } from '../delivery/delivery.ts'
import type { CallSteps, LiveCallReads } from '../ports/call-store.ts'
import { allDone, andThen, type MaybePromise } from '../ports/maybe.ts'
import type { SessionLookup, SessionPushes } from '../ports/sessions.ts'
import type { SteadyClock } from '../time/steady-clock.ts'
import { ownPlace } from './own-place.ts'
import type { ClientSession } from './request.ts'

export interface LateRingsOptions {
  readonly store: CallSteps & LiveCallReads
  readonly sessions: Pick<SessionLookup & SessionPushes, 'unaware' | 'append'>
  readonly delivery: Pick<Delivery, 'known'>
  readonly clock: Pick<SteadyClock, 'now' | 'written'>
}

/** The fields of a session that are needed to ring there. */
export type Who = Pick<ClientSession, 'sessionId' | 'participant' | 'expiresAt'>

/** Rings at sessions that were not there when their calls began. */
export interface LateRings {
  /** Reads the participant's live calls; those that ring for the session do so first [WS4]. */
  liveCallsOf(session: Who): MaybePromise<readonly LiveCall[]>
  /**
   * A call rings at this session. If it is over, and the process that ended it did not find the session, the session
   * hears it here.
   */
  tellIfOver(session: Who, ref: CallRef): MaybePromise<void>
  /** The call may have moved on since it was read: the newer version is the true one. */
  newest(read: Call): Call
  /**
   * Of the live calls those that ring, and of which a session here has heard nothing: its node may have been cut from the
   * others when they began. They ring there now.
   */
  ringLate(live: readonly LiveCall[]): Promise<void>
}

/** By this age of a ring, in ms, the inviting node has mostly told every session. A session that gets the ring twice drops the second one. */
const lateMs = 1_000

export function createLateRings({ store, sessions, delivery, clock }: LateRingsOptions): LateRings {
  function liveCallsOf(session: Who): MaybePromise<readonly LiveCall[]> {
    return andThen(store.liveCallsOf(session.participant), (live) => {
      const ringing = ringsOf(session, live)
      return andThen(allDone(ringing.map((call) => ring(session, call))), () => live)
    })
  }

  function newest(read: Call): Call {
    const known = delivery.known.get(callKey(read))
    return known !== undefined && known.version > read.version ? known : read
  }

  async function ringLate(live: readonly LiveCall[]): Promise<void> {
    const due = live.filter((call) => call.status === 'ringing' && clock.now() - call.startedAt > lateMs)
    const rings = due.flatMap((call) =>
      rungBy(call)
        .flatMap((callee) => sessions.unaware(callee, callKey(call)))
        .map((session) => ring(session, call)),
    )
    await allDone(rings)
  }

  /**
   * Rings at a session that has just come. The end of a call looks for the sessions where it rings. If it looked before
   * the call rang here, this makes up for it.
   */
  function ring(session: Who, read: Call): MaybePromise<void> {
    const call = newest(read)
    if (call.status !== 'ringing' || !isRung(session, call) || !ringsAt(call, session.participant)) return
    const text = JSON.stringify({
      event: 'call.ringing',
      data: ringingData(byClock(call, clock.written()), clock.now()),
    })
    const push = { kind: 'ringing', call: callKey(call), version: call.version, text } as const
    return andThen(sessions.append(session.sessionId, push), () => tellIfOver(session, call))
  }

  function tellIfOver(session: Who, ref: CallRef): MaybePromise<void> {
    return andThen(store.load(ref), (now) => {
      if (now === undefined || ringsAt(now, session.participant)) return
      return tellThatItIsOver(session, now)
    })
  }

  async function tellThatItIsOver(session: Who, call: Call): Promise<void> {
    if (ownPlace(session, call)?.sessionId === session.sessionId) return
    const isForIt = ({ to, event: name }: Notice) =>
      to.place === 'rung' &&
      name !== 'call.ringing' &&
      rungTo(call, to).some((one) => sameParticipant(one, session.participant))
    // Of a group that is rung in turn several may be.
    const last = (await store.stepsAfter(call, 1)).findLast(({ event }) => event.notices.some(isForIt))
    const notice = last?.event.notices.find(isForIt)
    if (last === undefined || notice === undefined) return
    const text = JSON.stringify({ event: notice.event, data: notice.data })
    // A session that answered, or was busy, knows: also if the place has passed on to another session by now.
    if (notice.to.place === 'rung' && notice.to.except.includes(session.sessionId)) return
    const kind = isLive(call) ? 'stop' : 'final'
    const push = { kind, call: callKey(call), version: last.call.version, text } as const
    await sessions.append(session.sessionId, push)
  }

  return { liveCallsOf, tellIfOver, newest, ringLate }
}

/** The calls of these that ring for the participant of a session. */
export function ringsOf({ participant }: Pick<Who, 'participant'>, live: readonly LiveCall[]): RingingCall[] {
  return live.filter((call): call is RingingCall => ringsAt(call, participant))
}

/** A call rings where the token was good when it began [WS5]. */
export function isRung({ expiresAt = Number.POSITIVE_INFINITY }: Pick<Who, 'expiresAt'>, call: Call): boolean {
  return call.startedAt < expiresAt
}
