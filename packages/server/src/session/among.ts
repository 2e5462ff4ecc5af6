import type { Participant } from '../call/call.ts'
import { participantKey } from '../call/call.ts'
import { type AppendResult, isLast, type Push } from '../ports/push.ts'
import type { SessionIdentity } from '../ports/sessions.ts'
import { callOf, finish, holdsPlace, rest, ringsAt, stopRinging } from './calls.ts'
import type { Index } from './index.ts'
import { knowsOf, noteVersion } from './news.ts'
import type { Parcel } from './parcel.ts'
import { accept, give, hold, release, takeUnproven } from './places.ts'
import {
  goneSince,
  hasUndeliveredFinal,
  isForgettable,
  isOpen,
  mayResume,
  newestVersion,
  type Session,
} from './session.ts'

export interface AmongOptions {
  readonly sessions: ReadonlyMap<string, Session>
  readonly live: Index
  readonly detached: Index
  readonly changed: (session: Session) => void
  readonly append: (session: Session, push: Push, at?: number) => AppendResult
  readonly forget: (session: Session) => void
}

export interface AcceptHow {
  readonly settled: boolean
  readonly version: number
  readonly gate: boolean
}

/** What concerns several sessions of one participant: where a call rings, whose a place is, who hears of an end. */
export interface Among {
  /** To a session; what is last goes on to who of its device has come meanwhile. */
  appendTo(session: Session, push: Push): AppendResult
  /** See `Sessions`. */
  appendRung(participant: Participant, push: Push, except: readonly string[]): void
  move(call: string, from: string, to: string, settled: boolean, version?: number, gate?: boolean): boolean
  owing(identity: SessionIdentity): readonly string[]
  collectFinals(identity: SessionIdentity): void
  /** The same from these sessions, in this order, as far as they have no socket. */
  collectFrom(identity: SessionIdentity, sessionIds: readonly string[]): void
  /** Sessions that nobody can come back to, in which it waits how a call ended. */
  detachedWithFinal(participant: Participant, call: string): readonly Session[]
  /** What waits so in one is for another one of its device that came before it did, and has looked [WS4]. */
  inherit(from: string, to: string, call: string): void
  /** A place passes on to a session of another process: what goes along. Again the same, until `gave` [PLACE2]. */
  give(sessionId: string, call: string, version: number): Parcel | undefined
  gave(sessionId: string, call: string): void
  /** The place, and what came along with it from another process. False where there is no such session. */
  accept(call: string, to: string, parcel: Parcel, how: AcceptHow): boolean
  /** A place passed on, or its call is over. */
  leave(session: Session, call: string): void
}

/** Whether what waits in a session without a socket is for the device of another one. */
function isForDevice({ identity: { deviceId, isNotOf } }: Session, { identity: other }: Session): boolean {
  return deviceId === undefined ? isNotOf !== other.deviceId : deviceId === other.deviceId
}

export function createAmong({ sessions, live, detached, changed, append, forget }: AmongOptions): Among {
  /** Of a place that passed on, or of a call that is over. */
  function leave(session: Session, call: string): void {
    changed(session)
    release(session, call)
    if (isOpen(session)) return
    // Whoever comes back is told how the call ended, and nothing else of it [WS4].
    if (!mayResume(session)) session.log?.retain(({ push }) => push.call !== call || isLast(push))
    if (isForgettable(session)) forget(session)
  }

  /** It rang there, and it is told nothing of what became of it: it has the place, or said so itself. */
  function silence(session: Session, push: Push): void {
    changed(session)
    // Whoever is late to say that it rings is not believed.
    if (push.kind === 'final') {
      stopRinging(session, push.call)
      finish(session, push.call)
    } else {
      // What it sent before its answer is still to be handed over, also where it hears of its place after this [REL2].
      callOf(session, push.call).isRinging = undefined
      noteVersion(session, push)
      rest(session, push.call)
    }
  }

  /** One dead socket's notice is for one session that comes back, and nobody hears the same twice. */
  function giveFinals(source: Session, target: Session, matches: (push: Push) => boolean): void {
    changed(source)
    const { deviceId } = target.identity
    // That another one answered is wrong where it was its own device, in a session that may be gone by now.
    const isOwn = ({ device }: Push) => device !== undefined && device === deviceId
    const isWanted = (push: Push) => isLast(push) && matches(push) && !holdsPlace(target, push.call) && !isOwn(push)
    // From before a restart: how many sockets it stands for is not known.
    const isOne = source.identity.deviceId !== undefined
    const entries = isOne ? takeUnproven(source, isWanted) : source.log?.find(({ push }) => isWanted(push))
    for (const { push, at } of entries ?? []) append(target, push, at)
    if (isForgettable(source)) forget(source)
  }

  function appendTo(session: Session, push: Push): AppendResult {
    const result = append(session, push)
    if (!isOpen(session) && isLast(push)) passFinalOn(session, push)
    return result
  }

  /** A notice that came when its device was already back: whoever connected meanwhile has looked and found nothing [WS4]. */
  function passFinalOn(source: Session, push: Push): void {
    // Who may come back to its session finds it there.
    if (mayResume(source)) return
    for (const target of live.of(source.participantKey)) passTo(target, source, push)
  }

  function passTo(target: Session, source: Session, push: Push): void {
    // One that has yet to look finds it.
    const hasLooked = target.hasLooked && target.openedAt >= goneSince(source)
    if (!hasLooked || !isForDevice(source, target)) return
    const isOfCall = ({ call }: Push) => call === push.call
    if (hearsItself(target, push)) dropFinals(source, isOfCall)
    else {
      changed(target)
      giveFinals(source, target, isOfCall)
    }
  }

  /** It was told, said so itself, or is told as one that rings or has the place. */
  function hearsItself(target: Session, push: Push): boolean {
    return knowsOf(target, push) || holdsPlace(target, push.call) || ringsAt(target, push.call)
  }

  /** Its device has heard of it: whoever comes back next does not hear that another one answered, where it did itself. */
  function dropFinals(source: Session, matches: (push: Push) => boolean): void {
    // Without a name it may be another one.
    if (typeof source.identity.deviceId !== 'string') return
    changed(source)
    takeUnproven(source, (push) => isLast(push) && matches(push))
    if (isForgettable(source)) forget(source)
  }

  function lastOf({ log }: Session, call: string): Push | undefined {
    return log?.all().find(({ push }) => push.call === call && isLast(push))?.push
  }

  /** The target has looked before, and was away since: a notice that came meanwhile is passed on now [WS4]. */
  function passAll(target: Session, source: Session): void {
    if (mayResume(source)) return
    const lasts = source.log?.all().filter(({ push }) => isLast(push)) ?? []
    for (const { push } of lasts) passTo(target, source, push)
  }

  /** Hands what sockets of the same device did not hear to one that comes back [WS4]. */
  function collect(identity: SessionIdentity, sources: readonly Session[]): void {
    const target = sessions.get(identity.sessionId)
    if (target === undefined) return
    if (target.hasLooked) {
      for (const source of sources) passAll(target, source)
      return
    }
    changed(target)
    const wasTold = (call: string) => target.calls?.get(call)?.wasToldFirst === true
    // Where one of its sockets had the place, the device hears how the call ended, not that another socket answered.
    for (const kind of ['final', 'stop'] as const) {
      for (const source of sources) {
        if (isForDevice(source, target)) giveFinals(source, target, (push) => push.kind === kind && !wasTold(push.call))
      }
    }
    target.hasLooked = true
  }

  return {
    appendRung(participant, push, except) {
      const key = participantKey(participant)
      for (const session of [...live.of(key), ...detached.of(key)]) {
        if (!ringsAt(session, push.call)) continue
        // It may have the place by now, from the session of before.
        const hasPlace = push.kind === 'stop' && holdsPlace(session, push.call)
        if (hasPlace || except.includes(session.identity.sessionId)) silence(session, push)
        else appendTo(session, push)
      }
    },
    appendTo,
    move(call, from, to, settled, version = newestVersion, gate = false) {
      const source = sessions.get(from)
      const target = sessions.get(to)
      if (target === undefined) return false
      if (source === undefined || source === target) return true
      // Where it has passed on again, it is not to be taken back.
      if (!hold(target, call, settled, version)) return true
      changed(target)
      accept(target, call, give(source, call, version), gate, append)
      leave(source, call)
      return true
    },
    give(sessionId, call, version) {
      const source = sessions.get(sessionId)
      if (source === undefined) return undefined
      changed(source)
      const parcel = give(source, call, version)
      callOf(source, call).parcel = parcel
      leave(source, call)
      return parcel
    },
    gave(sessionId, call) {
      const source = sessions.get(sessionId)
      if (source?.calls?.get(call)?.parcel === undefined) return
      changed(source)
      callOf(source, call).parcel = undefined
      rest(source, call)
      if (!isOpen(source) && isForgettable(source)) forget(source)
    },
    accept(call, to, parcel, { settled, version, gate }) {
      const target = sessions.get(to)
      if (target === undefined) return false
      if (!hold(target, call, settled, version)) return true
      changed(target)
      accept(target, call, parcel, gate, append)
      return true
    },
    owing({ sessionId, participant, deviceId }) {
      return live
        .of(participantKey(participant))
        .filter(({ identity }) => identity.sessionId !== sessionId && identity.deviceId === deviceId)
        .filter(hasUndeliveredFinal)
        .map(({ identity }) => identity.sessionId)
    },
    collectFinals(identity) {
      collect(identity, detached.of(participantKey(identity.participant)))
    },
    collectFrom(identity, sessionIds) {
      const sources = sessionIds.map((id) => sessions.get(id)).filter((source) => source !== undefined)
      collect(
        identity,
        sources.filter((source) => !isOpen(source)),
      )
    },
    detachedWithFinal: (participant, call) =>
      detached
        .of(participantKey(participant))
        .filter((session) => !mayResume(session) && lastOf(session, call) !== undefined),
    inherit(from, to, call) {
      const [source, target] = [sessions.get(from), sessions.get(to)]
      const push = source && lastOf(source, call)
      if (push === undefined || target === undefined || isOpen(source!) || !isOpen(target)) return
      passTo(target, source!, push)
    },
    leave,
  }
}
