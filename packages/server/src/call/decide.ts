import type { ElsewhereReason } from '@ringwire/protocol/end-reasons'
import {
  type AnsweredCall,
  awaitedUntil,
  type Call,
  type CallDurations,
  deadlineOf,
  isAwaited,
  isLive,
  type LiveCall,
  type OverCall,
  otherSide,
  type Place,
  placeOf,
  type RingingCall,
  type Side,
  sideOf,
} from './call.ts'
import { moved } from './clock.ts'
import {
  type Acceptance,
  type Actor,
  byOf,
  type CallCommand,
  changed,
  type Decision,
  refuse,
  unchanged,
} from './command.ts'
import { acceptedData, elsewhereData, type Notice, overData } from './effects.ts'
import { type End, endOf, over } from './ending.ts'
import { decline, refuseOutsider } from './group.ts'
import { forgetMember, leaveGroup } from './leave.ts'
import { notePeers } from './peers.ts'
import {
  acceptedAgain,
  beganTooLate,
  isAsConnected,
  mapPlaces,
  maySpeak,
  noteMoves,
  ownDeviceMs,
  placeFor,
  seat,
  withPlace,
} from './places.ts'
import { take } from './take.ts'
import { beginTurn, passTurn } from './turns.ts'

type ActorCommand = Extract<CallCommand, { readonly actor: Actor }>
type LoseCommand = Extract<CallCommand, { type: 'lose' }>
type ArriveCommand = Extract<CallCommand, { type: 'arrive' }>

const cancelled = { status: 'cancelled', reason: 'caller_cancelled' } as const
const busy = { status: 'rejected', reason: 'busy' } as const
const declinedFor = (given: string | null) => ({ status: 'rejected', reason: 'declined', given }) as const
const hungUpFor = (given: string | null) => ({ status: 'ended', reason: 'hangup', given }) as const

/** How long late `webrtc.*` for an ended call are dropped without an error [END1], in milliseconds. */
export const lateRelayMs = 60_000

/** Of so many sessions that are busy a call remembers also those that are gone. */
const mostSilenced = 32

/**
 * Decides what a command does to a call: the new version and the receivers of its notices, or why not. Pure: it knows
 * nothing but its arguments, and may run again on a newer version.
 */
export function decide(call: Call | undefined, command: CallCommand, now: number, durations: CallDurations): Decision {
  if (call === undefined) return refuse('CALL_NOT_FOUND')
  return notePeers(call, decideKnown(call, command, now, durations), durations)
}

function decideKnown(call: Call, command: CallCommand, now: number, durations: CallDurations): Decision {
  if (command.type === 'lose') return isLive(call) ? lose(call, command, now) : unchanged(call)
  if (command.type === 'time') return isLive(call) ? passTime(call, now, durations) : unchanged(call)
  if (command.type === 'stop') return isLive(call) ? stop(call, command.note, now) : unchanged(call)
  if (command.type === 'leave') return leaveGroup(call, command.userIds, now)
  if (command.type === 'forget') return isLive(call) ? forgetMember(call, command.userId, now) : unchanged(call)
  if (command.type === 'turn') return beginTurn(call, command.member, command.seen, now)
  if (command.type === 'restart') return isLive(call) ? restart(call, command.nodes, now) : unchanged(call)
  if (command.type === 'shift') return isLive(call) ? shift(call, command.ms, now) : unchanged(call)

  return noteMoves(call, decideForActor(call, command, now))
}

function decideForActor(call: Call, command: ActorCommand, now: number): Decision {
  const own = sideOf(call, command.actor.participant)
  const refused = own === undefined ? refuseOutsider(call, command) : undefined
  if (refused !== undefined) return refused
  const side = own ?? 'callee'
  if (command.type === 'take') return take(call, side, command, now)
  if (command.type === 'arrive') return isLive(call) ? arrive(call, side, command, now) : unchanged(call)
  if (!isLive(call)) return decideOver(call, side, command, now)
  if (side === 'caller') return decideSeated(call, side, call.callerPlace, command, now)
  if (call.status === 'ringing') return decideRingingCallee(call, command, now)
  return decideSeated(call, side, call.calleePlace, command, now)
}

type ClientCommand = Extract<CallCommand, { type: 'accept' | 'connected' | 'reject' | 'cancel' | 'end' | 'relay' }>

/** A call that is over: hanging up again is fine, everything else is too late [END1]. */
function decideOver(call: OverCall, side: Side, command: ClientCommand, now: number): Decision {
  switch (command.type) {
    case 'accept':
      if (side === 'caller') return refuse('CALL_NOT_PARTICIPANT')
      return refuse('CALL_INVALID_STATE', { status: call.status })
    case 'relay':
      if (now - call.endedAt < lateRelayMs) return unchanged(call)
      return refuse('CALL_INVALID_STATE', { status: call.status })
    default:
      return unchanged(call)
  }
}

/** While it rings, the callee's side is every session that was rung: there is no place to check [PLACE1]. */
function decideRingingCallee(call: RingingCall, command: ClientCommand, now: number): Decision {
  switch (command.type) {
    case 'accept':
      if (beganTooLate(call, 'callee', command.actor)) return refuse('AUTH_TOKEN_INVALID')
      return accept(call, command.actor, now)
    case 'reject':
      if (command.reason === 'busy') return silence(call, command.actor, command.rung, now)
      return reject(call, command.actor, declinedFor(command.reason), now)
    case 'end':
      return reject(call, command.actor, declinedFor(command.reason), now)
    case 'cancel':
      return refuse('CALL_NOT_PARTICIPANT')
    case 'connected':
      return refuse('CALL_INVALID_STATE', { status: call.status })
    case 'relay':
      return unchanged(call)
  }
}

/** Verbs of a side that has a place: only its holder, or a session that may take it, is heard [PLACE2, PLACE3, END1]. */
function decideSeated(call: LiveCall, side: Side, place: Place, command: ClientCommand, now: number): Decision {
  const { actor } = command
  if (side === 'caller' && (command.type === 'accept' || command.type === 'reject'))
    return refuse('CALL_NOT_PARTICIPANT')
  if (side === 'callee' && command.type === 'cancel') return refuse('CALL_NOT_PARTICIPANT')
  const isEntering = command.type === 'accept' || command.type === 'relay' || command.type === 'connected'
  // A session without a socket would lose the place at once. The message still counts for its device.
  const isGone = isEntering && command.isGone === true
  if (!maySpeak(place, actor, now) || (isGone && place.deviceId !== actor.deviceId)) {
    const wait = place.state === 'vacant' ? { retry_after_ms: Math.max(0, place.since + ownDeviceMs - now) } : {}
    return refuse(command.type === 'accept' ? 'CALL_ALREADY_ANSWERED' : 'CALL_NOT_PARTICIPANT', wait)
  }
  const seated = isGone ? call : withPlace(call, side, placeFor(actor, true))
  if (isEntering && place.sessionId !== actor.sessionId && beganTooLate(call, side, actor)) {
    return refuse('AUTH_TOKEN_INVALID')
  }

  switch (command.type) {
    case 'accept':
    case 'relay':
      return isGone ? unchanged(call) : seat(call, side, place, actor, now)
    case 'connected':
      if (seated.status === 'ringing') return refuse('CALL_INVALID_STATE', { status: seated.status })
      if (seated.status === 'connected') return isGone ? unchanged(call) : seat(call, side, place, actor, now)
      return changed(
        { ...seated, version: call.version + 1, status: 'connected', connectedAt: now },
        { type: 'connected', at: now, by: byOf(actor), notices: [connectedNotice(call, side, actor)] },
      )
    // A request for a ringing call met an answered one: its author hears what became of it, too [END4].
    case 'cancel':
      if (seated.status === 'ringing') return over(seated, cancelled, byOf(actor), now)
      if (seated.status === 'accepted') return over(seated, cancelled, byOf(actor), now, null)
      return over(seated, hungUpFor(command.reason), byOf(actor), now, null)
    case 'reject':
      return over(seated, hungUpFor(command.reason), byOf(actor), now, null)
    case 'end':
      if (seated.status === 'ringing') return over(seated, cancelled, byOf(actor), now)
      return over(seated, hungUpFor(command.reason), byOf(actor), now)
  }
}

/** To the other side, where it is an extended session [EXT5]. */
function connectedNotice(call: LiveCall, side: Side, actor: Actor): Notice {
  const { userId, role } = actor.participant
  const data = { call_uuid: call.callUuid, status: 'connected', by: { user_id: userId, role } } as const
  return { to: { place: otherSide(side) }, event: 'call.status', data }
}

function accept(call: RingingCall, actor: Actor, now: number): Decision {
  const { silenced, ...rest } = call
  const next: AnsweredCall = {
    ...rest,
    version: call.version + 1,
    status: 'accepted',
    callee: { ...call.callee, userId: actor.participant.userId, displayName: actor.displayName },
    calleePlace: placeFor(actor, true),
    acceptedAt: now,
    connectedAt: null,
  }
  const by = byOf(actor)
  return changed(next, {
    type: 'accepted',
    at: now,
    by,
    notices: [
      { to: { place: 'caller' }, event: 'call.accepted', data: acceptedData(next) },
      {
        to: { place: 'rung', except: [...silenced, actor.sessionId] },
        event: 'call.cancelled',
        data: elsewhereData(next, 'answered_elsewhere', by),
      },
    ],
  })
}

function reject(call: RingingCall, actor: Actor, end: End<'rejected'>, now: number): Decision {
  if (call.group !== undefined) return decline(call, call.group, actor, now)
  const by = byOf(actor)
  const next = endOf(call, end, now)
  return changed(next, {
    type: 'rejected',
    at: now,
    by,
    notices: [
      { to: { place: 'caller' }, event: 'call.rejected', data: overData(next, by) },
      {
        to: { place: 'rung', except: [...call.silenced, actor.sessionId] },
        event: 'call.cancelled',
        data: { ...overData(next, by), reason: 'rejected_elsewhere' satisfies ElsewhereReason },
      },
    ],
  })
}

/** One session is busy; the call rings on until every one that is there said so. */
function silence(call: RingingCall, actor: Actor, rung: readonly string[], now: number): Decision {
  const isNews = !call.silenced.includes(actor.sessionId)
  const silenced = isNews ? [...rememberedOf(call, rung), actor.sessionId] : call.silenced
  if (rung.every((sessionId) => silenced.includes(sessionId))) return reject({ ...call, silenced }, actor, busy, now)
  if (!isNews) return unchanged(call)
  const next = { ...call, version: call.version + 1, silenced }
  return changed(next, { type: 'silenced', at: now, by: byOf(actor), notices: [] })
}

/** A client that says so, goes and comes back as a new session does not make the call's row grow. */
function rememberedOf({ silenced, group }: RingingCall, rung: readonly string[]): readonly string[] {
  // Of a group only the sessions of one member are known here.
  return group !== undefined || silenced.length < mostSilenced
    ? silenced
    : silenced.filter((sessionId) => rung.includes(sessionId))
}

function arrive(call: LiveCall, side: Side, command: ArriveCommand, now: number): Decision {
  const { actor, resumes, had } = command
  const place = placeOf(call, side)
  if (place === null) return unchanged(call)
  const isOwn = place.sessionId === actor.sessionId
  // It passed on meanwhile: it comes back as long as nobody has spoken since.
  const hasPassed = had !== undefined && !isOwn
  // One that comes back on another node has its place there, also where nobody saw it leave the first.
  const isTaken = hasPassed ? place.settled : place.state === 'held' && (!isOwn || isAsConnected(place, actor))
  if (isTaken) return unchanged(call)
  const isNamed = place.sessionId === resumes
  if (!isOwn && place.deviceId !== actor.deviceId) return unchanged(call)
  // A session that was there before, or says so, is no chance comer: nobody else may have the place from it.
  const settled = isNamed || (isOwn ? place.settled : had === 'settled')
  const next = withPlace(call, side, placeFor(actor, settled))
  const notices = acceptedAgain(call, place, actor)
  return changed({ ...next, version: call.version + 1 }, { type: 'place_taken', at: now, by: byOf(actor), notices })
}

function lose(call: LiveCall, command: LoseCommand, now: number): Decision {
  const { sessionId, node, closed = false, hungUp = false, awaitedMs } = command
  const isLost = (place: Place) => place.state === 'held' && place.sessionId === sessionId && place.node === node
  // Of a transfer the caller asked for nothing: its close says nothing about the call that rings [XFER1].
  if (hungUp && call.status === 'ringing' && call.transferred === undefined && isLost(call.callerPlace)) {
    const { userId, role } = call.caller
    return over(call, cancelled, { userId, role, sessionId }, now)
  }
  const how = { ...(closed && { closed }), ...(awaitedMs !== undefined && { awaitedMs }) }
  const vacated = mapPlaces(call, (place) =>
    isLost(place) ? { ...place, state: 'vacant', since: now, ...how } : place,
  )
  if (vacated === call) return unchanged(call)
  return changed({ ...vacated, version: call.version + 1 }, { type: 'place_lost', at: now, by: null, notices: [] })
}

function restart(call: LiveCall, nodes: readonly string[], now: number): Decision {
  const isHeld = (place: Place) => place.state === 'held' && nodes.includes(place.node)
  const next = mapPlaces(call, (place) => (isHeld(place) ? place : { ...place, state: 'vacant', since: now }))
  if (next === call) return unchanged(call)
  return changed({ ...next, version: call.version + 1 }, { type: 'place_lost', at: now, by: null, notices: [] })
}

function shift(call: LiveCall, ms: number, now: number): Decision {
  const next = { ...moved(call, ms), version: call.version + 1 }
  return changed(next, { type: 'clock_shifted', at: now, by: null, notices: [] })
}

/** Ring timeout, lost places, the longest call: whichever was due first. */
function passTime(call: LiveCall, now: number, durations: CallDurations): Decision {
  const deadline = deadlineOf(call, durations)
  if (deadline > now) return passTurn(call, now) ?? stopWaiting(call, now, durations)
  if (call.status === 'ringing') {
    if (deadline === call.ringExpiresAt) return over(call, { status: 'missed', reason: 'no_answer' }, null, now)
    return over(call, { status: 'cancelled', reason: 'caller_lost' }, null, now)
  }
  const reason = deadline === call.acceptedAt + durations.maxDurationMs ? 'max_duration' : 'peer_lost'
  return over(call, { status: 'ended', reason }, null, now)
}

/** A client that was asked to come back, and is not there by now, is away: the other side hears of it [PEER1]. */
function stopWaiting(call: LiveCall, now: number, durations: CallDurations): Decision {
  const next = mapPlaces(call, (place) => {
    if (!isAwaited(place) || awaitedUntil(place, durations) > now) return place
    const { awaitedMs: _, ...away } = place
    return away
  })
  if (next === call) return unchanged(call)
  return changed({ ...next, version: call.version + 1 }, { type: 'place_lost', at: now, by: null, notices: [] })
}

/** A backend can end any call, whichever session has which place [SRV2]. */
function stop(call: LiveCall, note: string | null, now: number): Acceptance {
  const status = call.status === 'ringing' ? 'cancelled' : 'ended'
  const ended = over(call, { status, reason: 'ended_by_server' }, null, now)
  if (note === null) return ended
  return { ...ended, steps: ended.steps.map(({ call, event }) => ({ call, event: { ...event, note } })) }
}
