import type { Capability } from '@ringwire/protocol/capabilities'
import type { ElsewhereReason, EndReasonOf, OverStatus } from '@ringwire/protocol/end-reasons'
import type { ErrorBody, ErrorCode } from '@ringwire/protocol/errors'
import {
  type AnsweredCall,
  awaitedUntil,
  type Call,
  type CallDurations,
  deadlineOf,
  isAnswered,
  isAwaited,
  isClosed,
  isLive,
  type LiveCall,
  type OverCall,
  otherSide,
  type Participant,
  type Place,
  placeOf,
  type RingingCall,
  type Side,
  sideOf,
} from './call.ts'
import {
  acceptedData,
  type By,
  type CallEvent,
  elsewhereData,
  missedData,
  type Notice,
  overData,
  type PlaceMove,
  type Step,
} from './effects.ts'
import { notePeers } from './peers.ts'

/** A session that asks for something. */
export interface Actor {
  readonly participant: Participant
  readonly sessionId: string
  readonly deviceId: string | null
  readonly node: string
  readonly displayName: string
  /** When its token is over, in ms since the epoch. Undefined: never. */
  readonly expiresAt?: number | undefined
  /** What its client understands beside, as it listed when it connected; absent: nothing [EXT6]. */
  readonly can?: readonly Capability[]
}

/** What can be asked of one call. The first six come from clients, the others from the service itself. */
export type CallCommand =
  | { readonly type: 'accept' | 'connected'; readonly actor: Actor; readonly isGone?: boolean }
  /** `rung`: the callee's sessions that are live now; a busy reject waits for all of them. */
  | { readonly type: 'reject'; readonly actor: Actor; readonly reason: string | null; readonly rung: readonly string[] }
  | { readonly type: 'cancel' | 'end'; readonly actor: Actor; readonly reason: string | null }
  /**
   * A `webrtc.*` message that the fast path could not place: it may take or settle a place [PLACE2]. `isGone`: its author's
   * socket was closed after it was sent.
   */
  | { readonly type: 'relay'; readonly actor: Actor; readonly isGone?: boolean }
  /**
   * A session connected: it takes what it, the session that it goes on for, or its device left behind [PLACE2 a, b]. `had`: it
   * is not new, and had the place before, `settled` where it had spoken for the call.
   */
  | {
      readonly type: 'arrive'
      readonly actor: Actor
      readonly resumes?: string
      readonly had?: 'settled' | 'unsettled'
    }
  /**
   * The close of a session's socket was observed, or its node is dead [END3]: it may have one on another by now. `closed`: its
   * client closed it; `hungUp`: for good, and said so [END6]; `awaitedMs`: the service closed it and told the client to come
   * back [PEER1].
   */
  | {
      readonly type: 'lose'
      readonly sessionId: string
      readonly node: string
      readonly closed?: boolean
      readonly hungUp?: boolean
      readonly awaitedMs?: number | undefined
    }
  /** Time passed. */
  | { readonly type: 'time' }
  /** The application backend ends the call; `note` is kept with the event [SRV2]. */
  | { readonly type: 'stop'; readonly note: string | null }
  /** The service was away: who was on none of these nodes has no socket, and the lost clocks start in full [END3]. */
  | { readonly type: 'restart'; readonly nodes: readonly string[] }
  /** The wall clock jumped by `ms`: what remained still remains. */
  | { readonly type: 'shift'; readonly ms: number }

type ActorCommand = Extract<CallCommand, { readonly actor: Actor }>
type LoseCommand = Extract<CallCommand, { type: 'lose' }>
type ArriveCommand = Extract<CallCommand, { type: 'arrive' }>

export type Refusal = {
  readonly ok: false
  readonly code: ErrorCode
  readonly details: Omit<ErrorBody, 'code' | 'message'>
  /** A refused invite may still leave a record [INV5]. */
  readonly steps: readonly Step[]
}
export type Acceptance = {
  readonly ok: true
  /** The call as it is after the steps. */
  readonly call: Call
  readonly steps: readonly Step[]
}
export type Decision = Acceptance | Refusal

/** So long a place that fell vacant waits for its holder's device alone [PLACE2], in milliseconds. */
export const ownDeviceMs = 5_000

/** How a call ends. `given`: the reason of the client, which then counts [END2]. */
type End<S extends OverStatus> = S extends OverStatus
  ? { readonly status: S; readonly reason: EndReasonOf<S>; readonly given?: string | null }
  : never
const cancelled = { status: 'cancelled', reason: 'caller_cancelled' } as const
const busy = { status: 'rejected', reason: 'busy' } as const
const declinedFor = (given: string | null) => ({ status: 'rejected', reason: 'declined', given }) as const
const hungUpFor = (given: string | null) => ({ status: 'ended', reason: 'hangup', given }) as const

/** How long late `webrtc.*` for an ended call are dropped without an error [END1], in milliseconds. */
export const lateRelayMs = 60_000

/** Of so many sessions that are busy a call remembers also those that are gone. */
const mostSilenced = 32

export function refuse(code: ErrorCode, details: Refusal['details'] = {}, steps: readonly Step[] = []): Refusal {
  return { ok: false, code, details, steps }
}
export function unchanged(call: Call): Acceptance {
  return { ok: true, call, steps: [] }
}
function changed(call: Call, event: CallEvent): Acceptance {
  return { ok: true, call, steps: [{ call, event }] }
}

/**
 * Decides what a command does to a call: the new version and who is told, or why not. Pure: it knows nothing but its
 * arguments, and may run again on a newer version.
 */
export function decide(call: Call | undefined, command: CallCommand, now: number, durations: CallDurations): Decision {
  if (call === undefined) return refuse('CALL_NOT_FOUND')
  return notePeers(call, decideKnown(call, command, now, durations), durations)
}

function decideKnown(call: Call, command: CallCommand, now: number, durations: CallDurations): Decision {
  if (command.type === 'lose') return isLive(call) ? lose(call, command, now) : unchanged(call)
  if (command.type === 'time') return isLive(call) ? passTime(call, now, durations) : unchanged(call)
  if (command.type === 'stop') return isLive(call) ? stop(call, command.note, now) : unchanged(call)
  if (command.type === 'restart') return isLive(call) ? restart(call, command.nodes, now) : unchanged(call)
  if (command.type === 'shift') return isLive(call) ? shift(call, command.ms, now) : unchanged(call)

  return noteMoves(call, decideForActor(call, command, now))
}

/** Writes down beside each step whose place passed on: whoever hands the step on takes along what waits there. */
export function noteMoves<D extends { readonly steps: readonly Step[] }>(before: Call, decision: D): D {
  if (!decision.steps.some((step) => movesOf(before, step.call).length > 0)) return decision
  const steps = decision.steps.map(({ call, event }) => ({ call, event: { ...event, moved: movesOf(before, call) } }))
  return { ...decision, steps }
}

function movesOf(before: Call, after: Call): PlaceMove[] {
  const moves: PlaceMove[] = []
  for (const side of ['caller', 'callee'] as const) {
    const was = placeOf(before, side)
    const is = placeOf(after, side)
    if (was === null || was.sessionId === is?.sessionId) continue
    const move = { side, from: was.sessionId, ...(was.state === 'vacant' && { lost: true as const }) }
    moves.push(was.deviceId === is?.deviceId ? move : { ...move, leftDevice: was.deviceId })
  }
  return moves
}

function decideForActor(call: Call, command: ActorCommand, now: number): Decision {
  const side = sideOf(call, command.actor.participant)
  if (side === undefined) return refuse('CALL_NOT_FOUND')
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

/** While it rings, the callee's side is every session that was rung: no place is asked for [PLACE1]. */
function decideRingingCallee(call: RingingCall, command: ClientCommand, now: number): Decision {
  switch (command.type) {
    case 'accept':
      if (beganTooLate(call, command.actor)) return refuse('AUTH_TOKEN_INVALID')
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

/** Verbs of a side that has a place: only its holder, or who may take it, is heard [PLACE2, PLACE3, END1]. */
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
  if (isEntering && place.sessionId !== actor.sessionId && beganTooLate(call, actor)) {
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
    // What was meant for a call that rings met an answered one: its author is told what became of it, too [END4].
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

/** A session whose token is over goes on with its calls, and enters none that began later [WS5]. */
function beganTooLate(call: LiveCall, { expiresAt = Number.POSITIVE_INFINITY }: Actor): boolean {
  return call.startedAt >= expiresAt
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
    callee: { ...call.callee, displayName: actor.displayName },
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
function rememberedOf({ silenced }: RingingCall, rung: readonly string[]): readonly string[] {
  return silenced.length < mostSilenced ? silenced : silenced.filter((sessionId) => rung.includes(sessionId))
}

/** Holds the place already, or takes it, or settles what it took by connecting; writes only where that is news. */
export function seat(call: LiveCall, side: Side, place: Place, actor: Actor, now: number): Acceptance {
  const holds = place.state === 'held' && place.sessionId === actor.sessionId
  if (holds && place.settled && isAsConnected(place, actor)) return unchanged(call)
  const type = holds ? 'place_settled' : 'place_taken'
  const next = withPlace(call, side, placeFor(actor, true))
  const notices = acceptedAgain(call, place, actor)
  return changed({ ...next, version: call.version + 1 }, { type, at: now, by: byOf(actor), notices })
}

/**
 * What was sent on a socket that its client closed is not sent again: who takes the place after that needs a new offer, and
 * `call.accepted` asks the caller for it [PLACE5]. A caller who has yet to hear it is told once: its log knows.
 */
function acceptedAgain(call: LiveCall, place: Place, actor: Actor): readonly Notice[] {
  if (call.status !== 'accepted' || !isClosed(place) || place.sessionId === actor.sessionId) return []
  return [{ to: { place: 'caller' }, event: 'call.accepted', data: acceptedData(call) }]
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
  // Who was there before, or says so, is no chance comer: nobody else may have the place from it.
  const settled = isNamed || (isOwn ? place.settled : had === 'settled')
  const next = withPlace(call, side, placeFor(actor, settled))
  const notices = acceptedAgain(call, place, actor)
  return changed({ ...next, version: call.version + 1 }, { type: 'place_taken', at: now, by: byOf(actor), notices })
}

function lose(call: LiveCall, command: LoseCommand, now: number): Decision {
  const { sessionId, node, closed = false, hungUp = false, awaitedMs } = command
  const isLost = (place: Place) => place.state === 'held' && place.sessionId === sessionId && place.node === node
  if (hungUp && call.status === 'ringing' && isLost(call.callerPlace)) {
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
  const next = mapPlaces(call, (place) => (place.state === 'vacant' ? { ...place, since: place.since + ms } : place))
  const shifted = isAnswered(next)
    ? { ...next, acceptedAt: next.acceptedAt + ms }
    : { ...next, ringExpiresAt: next.ringExpiresAt + ms }
  return changed({ ...shifted, version: call.version + 1 }, { type: 'clock_shifted', at: now, by: null, notices: [] })
}

/** Ring timeout, lost places, the longest call: whichever was due first. */
function passTime(call: LiveCall, now: number, durations: CallDurations): Decision {
  const deadline = deadlineOf(call, durations)
  if (deadline > now) return stopWaiting(call, now, durations)
  if (call.status === 'ringing') {
    if (deadline === call.ringExpiresAt) return over(call, { status: 'missed', reason: 'no_answer' }, null, now)
    return over(call, { status: 'cancelled', reason: 'caller_lost' }, null, now)
  }
  const reason = deadline === call.acceptedAt + durations.maxDurationMs ? 'max_duration' : 'peer_lost'
  return over(call, { status: 'ended', reason }, null, now)
}

/** A client that was told to come back, and is not there by now, is away: the other side hears of it [PEER1]. */
function stopWaiting(call: LiveCall, now: number, durations: CallDurations): Decision {
  const next = mapPlaces(call, (place) => {
    if (!isAwaited(place) || awaitedUntil(place, durations) > now) return place
    const { awaitedMs: _, ...away } = place
    return away
  })
  if (next === call) return unchanged(call)
  return changed({ ...next, version: call.version + 1 }, { type: 'place_lost', at: now, by: null, notices: [] })
}

/** What a backend wants over is over, whoever has which place [SRV2]. */
function stop(call: LiveCall, note: string | null, now: number): Acceptance {
  const status = call.status === 'ringing' ? 'cancelled' : 'ended'
  const ended = over(call, { status, reason: 'ended_by_server' }, null, now)
  if (note === null) return ended
  return { ...ended, steps: ended.steps.map(({ call, event }) => ({ call, event: { ...event, note } })) }
}

/** Ends a live call and tells everybody who does not know it yet; `knowing`: who does, its author. */
export function over(
  call: LiveCall,
  end: End<'ended' | 'cancelled' | 'missed'>,
  by: By | null,
  now: number,
  knowing: By | null = by,
): Acceptance {
  const next = endOf(call, end, now)
  return changed(next, { type: end.status, at: now, by, notices: overNotices(call, next, by, knowing) })
}

function overNotices(before: LiveCall, next: OverCall, by: By | null, knowing: By | null): Notice[] {
  const notices: Notice[] = []
  const knows = (place: Place) => place.sessionId === knowing?.sessionId
  const tell = (to: Notice['to']) => {
    if (next.status === 'missed') notices.push({ to, event: 'call.missed', data: missedData(next) })
    else {
      const event = next.status === 'cancelled' ? 'call.cancelled' : 'call.ended'
      notices.push({ to, event, data: overData(next, by) })
    }
  }
  if (!knows(before.callerPlace)) tell({ place: 'caller' })
  if (before.status === 'ringing') tell({ place: 'rung', except: before.silenced })
  else if (!knows(before.calleePlace)) tell({ place: 'callee' })
  return notices
}

function endOf(call: LiveCall, { status, reason, given = null }: End<OverStatus>, now: number): OverCall {
  const answered = isAnswered(call)
  const { product, callUuid, caller, callee, contextType, contextId, callType, metadata, redirectedFrom } = call
  return {
    product,
    callUuid,
    caller,
    callee,
    contextType,
    contextId,
    callType,
    metadata,
    // A repeat of the invite may come after the end [UUID1].
    ...(redirectedFrom !== undefined && { redirectedFrom }),
    startedAt: call.startedAt,
    ringTimeoutMs: call.ringTimeoutMs,
    ringExpiresAt: call.ringExpiresAt,
    version: call.version + 1,
    status,
    callerPlace: call.callerPlace,
    calleePlace: answered ? call.calleePlace : null,
    acceptedAt: answered ? call.acceptedAt : null,
    connectedAt: answered ? call.connectedAt : null,
    endedAt: now,
    endReason: given ?? reason,
  }
}

/**
 * A held place is never taken, but where its holder took it only by connecting. A vacant one is taken by the holder's device,
 * and by another one when the holder has had the time to come back [PLACE2].
 */
export function maySpeak(place: Place, actor: Pick<Actor, 'sessionId' | 'deviceId'>, now: number): boolean {
  if (place.sessionId === actor.sessionId) return true
  if (place.deviceId === actor.deviceId) return place.state === 'vacant' || !place.settled
  return place.state === 'vacant' && now >= place.since + ownDeviceMs
}

export function placeFor({ sessionId, deviceId, node, can }: Actor, settled: boolean): Place {
  return { state: 'held', sessionId, deviceId, node, settled, ...(can !== undefined && { can }) }
}

/** Whether a place says where its holder is connected, and what its client understands, as of now [EXT6]. */
function isAsConnected(place: Place, { node, can = [] }: Actor): boolean {
  const { can: known = [] } = place
  return place.node === node && known.length === can.length && known.every((capability) => can.includes(capability))
}

function withPlace(call: LiveCall, side: Side, place: Place): LiveCall {
  if (side === 'caller') return { ...call, callerPlace: place }
  return call.status === 'ringing' ? call : { ...call, calleePlace: place }
}

function mapPlaces(call: LiveCall, change: (place: Place) => Place): LiveCall {
  const callerPlace = change(call.callerPlace)
  if (call.status === 'ringing') return callerPlace === call.callerPlace ? call : { ...call, callerPlace }
  const calleePlace = change(call.calleePlace)
  if (callerPlace === call.callerPlace && calleePlace === call.calleePlace) return call
  return { ...call, callerPlace, calleePlace }
}

export function byOf(actor: Actor): By {
  return { userId: actor.participant.userId, role: actor.participant.role, sessionId: actor.sessionId }
}
