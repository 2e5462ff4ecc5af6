import { type Participant, participantKey } from '../call/call.ts'
import { isLast, type Push } from '../ports/push.ts'
import type { SessionIdentity } from '../ports/sessions.ts'
import { holdsPlace, ringsAt } from './calls.ts'
import { knowsOf } from './news.ts'
import { takeUnproven } from './places.ts'
import type { Registry } from './registry.ts'
import type { Sending } from './sending.ts'
import { goneSince, hasClient, hasUndeliveredFinal, isOpen, mayResume, type Session } from './session.ts'

/** Final notices that wait in sessions without a socket, for a newer session of the same device [WS4]. */
export interface Finals {
  /** See `Sessions`. */
  owing(identity: SessionIdentity): readonly string[]
  collectFinals(identity: SessionIdentity): void
  /** The same from these sessions, in this order, as far as they have no socket. */
  collectFrom(identity: SessionIdentity, sessionIds: readonly string[]): void
  /** Sessions that nobody can come back to, in which it waits how a call ended. */
  detachedWithFinal(participant: Participant, call: string): readonly Session[]
  /** The notice that waits in one session goes to another one of its device, which has looked before it came. */
  inherit(from: string, to: string, call: string): void
  /**
   * A session without a socket has heard how a call ended: sessions of its device that came meanwhile have looked before
   * that.
   */
  passOn(source: Session, push: Push): void
}

export function createFinals(registry: Registry, { append }: Sending): Finals {
  const { live, detached } = registry
  const passing = createPassing(registry, append)

  /** Hands what sockets of the same device did not hear to one that comes back. */
  function collect(identity: SessionIdentity, sources: readonly Session[]): void {
    const target = registry.get(identity.sessionId)
    // Its client has given the socket up, and may resume just the session that would lose the notice [RES2].
    if (target === undefined || !hasClient(target)) return
    if (target.hasLooked) {
      for (const source of sources) passing.passAll(target, source)
      return
    }
    registry.changes.changed(target)
    const wasTold = (call: string) => target.calls?.get(call)?.wasToldFirst === true
    // If one of its sockets had the place, the device hears how the call ended, not that another socket answered.
    for (const kind of ['final', 'stop'] as const) {
      const isWanted = (push: Push) => push.kind === kind && !wasTold(push.call)
      for (const source of sources) if (isForDevice(source, target)) passing.giveFinals(source, target, isWanted)
    }
    target.hasLooked = true
  }

  return {
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
      const sources = sessionIds.flatMap((id) => registry.get(id) ?? []).filter((source) => !isOpen(source))
      collect(identity, sources)
    },
    detachedWithFinal: (participant, call) =>
      detached
        .of(participantKey(participant))
        .filter((session) => !mayResume(session) && lastOf(session, call) !== undefined),
    inherit(from, to, call) {
      const [source, target] = [registry.get(from), registry.get(to)]
      if (source === undefined || target === undefined || isOpen(source) || !isOpen(target)) return
      const push = lastOf(source, call)
      if (push !== undefined) passing.passTo(target, source, push)
    },
    passOn(source, push) {
      // A client that may come back to its session finds the notice there.
      if (mayResume(source)) return
      for (const target of live.of(source.participantKey)) passing.passTo(target, source, push)
    },
  }
}

/** From one session without a socket to another session. */
function createPassing({ changes: { changed }, forgetIfUnused }: Registry, append: Sending['append']) {
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
    forgetIfUnused(source)
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

  /** Its device has heard of it: the next client of the device does not hear that another one answered, if it did itself. */
  function dropFinals(source: Session, matches: (push: Push) => boolean): void {
    // Without a name it may be another one.
    if (typeof source.identity.deviceId !== 'string') return
    changed(source)
    takeUnproven(source, (push) => isLast(push) && matches(push))
    forgetIfUnused(source)
  }

  /** The target has looked before, and was away since: a notice that came meanwhile is passed on now. */
  function passAll(target: Session, source: Session): void {
    if (mayResume(source)) return
    const lasts = source.log?.all().filter(({ push }) => isLast(push)) ?? []
    for (const { push } of lasts) passTo(target, source, push)
  }

  return { giveFinals, passTo, passAll }
}

/** Whether what waits in a session without a socket is for the device of another one. */
function isForDevice({ identity: { deviceId, isNotOf } }: Session, { identity: other }: Session): boolean {
  return deviceId === undefined ? isNotOf !== other.deviceId : deviceId === other.deviceId
}

/** It knows the end, said so itself, or hears it as a session that rings or has the place. */
function hearsItself(target: Session, push: Push): boolean {
  return knowsOf(target, push) || holdsPlace(target, push.call) || ringsAt(target, push.call)
}

function lastOf({ log }: Session, call: string): Push | undefined {
  return log?.all().find(({ push }) => push.call === call && isLast(push))?.push
}
