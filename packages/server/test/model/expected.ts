import { durations, heldBy } from '../../src/call/call.fixture.ts'
import { type AnsweredCall, type Call, isAnswered, type LiveCall, type Place, type Side } from '../../src/call/call.ts'
import type { Actor } from '../../src/call/command.ts'
import type { By, Notice, PeerNews, Step } from '../../src/call/effects.ts'
import type { Outcome } from './command-table.ts'
import { seatIn } from './world.ts'

/** The step that an outcome of a table stands for, whole: the next version of the call, the event and its notices. */

const iso = (at: number) => new Date(at).toISOString()
type To = Extract<Outcome, { kind: 'to' }>

export function byActor(actor: Actor): By {
  return { userId: actor.participant.userId, role: actor.participant.role, sessionId: actor.sessionId }
}

/** A place that passes from one session to another, which gets the messages that waited for the previous one [PLACE2]. */
function movedTo(side: Side, was: Place | null, is: Place | null): Pick<Step['event'], 'moved'> {
  if (was === null || was.sessionId === is?.sessionId) return {}
  const isOtherDevice = was.deviceId !== is?.deviceId
  const lost = was.state === 'vacant' && { lost: true as const }
  return { moved: [{ side, from: was.sessionId, ...lost, ...(isOtherDevice && { leftDevice: was.deviceId }) }] }
}

/**
 * When an answered call ends for the absence of one side, where nobody has had an outage [END3, END5]. A client that has time to
 * come back is not absent yet [PEER1].
 */
function endOfAbsence(call: AnsweredCall, side: Side): { since: number; until: number } | undefined {
  const [place, other] = [seatIn(call, side), seatIn(call, side === 'caller' ? 'callee' : 'caller')]
  if (place?.state !== 'vacant' || place.awaitedMs !== undefined) return undefined
  const { since } = place
  const hungUp = place.closed === true && other?.state === 'vacant' && other.closed === true && other.since <= since
  const lost = since + (hungUp ? durations.callerLostMs : durations.peerLostMs)
  return { since, until: Math.min(lost, call.acceptedAt + durations.maxDurationMs) }
}

/** What each side of an answered call has to hear of the other's absence [PEER1]. */
function peersOf(was: Call, is: Call, moved: Step['event']['moved']): Pick<Step['event'], 'peers'> {
  if (!isAnswered(is)) return {}
  // First of all that it goes on at another device [TAKE1].
  const peers: PeerNews[] = (moved ?? []).flatMap(({ side, taken }): PeerNews[] => {
    const to = side === 'caller' ? 'callee' : 'caller'
    return taken ? [{ to, event: 'call.peer_moved', data: { call_uuid: is.callUuid }, needs: 'take' }] : []
  })
  for (const [side, to] of [
    ['caller', 'callee'],
    ['callee', 'caller'],
  ] as const) {
    const before = isAnswered(was) ? endOfAbsence(was, side) : undefined
    const after = endOfAbsence(is, side)
    const call_uuid = is.callUuid
    if (after === undefined && before !== undefined) peers.push({ to, event: 'call.peer_back', data: { call_uuid } })
    if (after === undefined) continue
    const isTaken = seatIn(was, to)?.sessionId !== seatIn(is, to)?.sessionId
    const isKnown = before?.since === after.since && !isTaken
    const cameBack = before?.until !== after.until && seatIn(is, to)?.state === 'held'
    const data = { call_uuid, since: iso(after.since), ends_at: iso(after.until) }
    if (!isKnown || cameBack) peers.push({ to, event: 'call.peer_away', data })
  }
  return peers.length === 0 ? {} : { peers }
}

/** A step with what the tables leave to the places before and after it. */
export function withPeers(was: Call, { call, event }: Step): Step {
  return { call, event: { ...event, ...peersOf(was, call, event.moved) } }
}

/** The caller is to offer anew where another session comes to a place that its client closed [PLACE5]. */
export function acceptedAgain(call: Call, was: Place | null, is: Place | null): readonly Notice[] {
  const isLost = was?.state === 'vacant' && was.closed === true && is?.sessionId !== was.sessionId
  if (call.status !== 'accepted' || !isLost || is?.state !== 'held') return []
  return [{ to: { place: 'caller' }, event: 'call.accepted', data: acceptedTo(call) }]
}

const acceptedTo = ({ callUuid }: Call) => ({ call_uuid: callUuid, status: 'accepted' }) as const

export function seatedStep(
  call: LiveCall,
  side: Side,
  place: Place,
  type: Step['event']['type'],
  by: By | null,
  now: number,
): Step {
  const seats = side === 'caller' ? { callerPlace: place } : { calleePlace: place }
  const was = seatIn(call, side)
  const event = { type, at: now, by, notices: acceptedAgain(call, was, place), ...movedTo(side, was, place) }
  return { call: { ...call, ...seats, version: call.version + 1 }, event }
}

/** Whether a place says where its holder is connected, and what its client listed [EXT6]. */
export function isUpToDate(place: Place, { node, can }: Actor): boolean {
  return place.node === node && String(place.can) === String(can)
}

/** `seat`: nothing where the actor holds the place, from where it is, and has spoken before. */
export function seatOf(call: LiveCall, side: Side, actor: Actor, now: number): Step | undefined {
  const place = seatIn(call, side)
  const holds = place?.state === 'held' && place.sessionId === actor.sessionId
  if (place === null || (holds && place.settled && isUpToDate(place, actor))) return undefined
  return seatedStep(call, side, heldBy(actor), holds ? 'place_settled' : 'place_taken', byActor(actor), now)
}

/** Who did it: a session, that thereby has the place of its side, if it spoke about this call. */
export interface Doer {
  readonly actor: Actor
  readonly side: Side | null
}

export function transitionOf(call: LiveCall, to: To, doer: Doer | null, given: string | null, now: number): Step {
  const reason = to.own && given !== null ? given : to.reason
  const next = nextCall(call, to, doer, reason, now)
  const by = doer === null ? null : byActor(doer.actor)
  const silenced = call.status === 'ringing' ? call.silenced : []
  const self = doer !== null && doer.side === 'callee' ? [doer.actor.sessionId] : []
  const notices = to.told.map((who) => {
    const address =
      who === 'rung' ? ({ place: 'rung', except: [...silenced, ...self] } as const) : ({ place: who } as const)
    return { to: address, ...noticeOf(next, who, reason, by, now) }
  })
  const side = doer?.side ?? null
  const moved = side === null ? {} : movedTo(side, seatIn(call, side), seatIn(next, side))
  return { call: next, event: { type: to.status, at: now, by, notices, ...moved } } as Step
}

function nextCall(call: LiveCall, to: To, doer: Doer | null, reason: string | null, now: number): Call {
  const version = call.version + 1
  const callerPlace = doer?.side === 'caller' ? heldBy(doer.actor) : call.callerPlace
  const sat = isAnswered(call) ? call.calleePlace : null
  const calleePlace = doer?.side === 'callee' && (sat !== null || to.status === 'accepted') ? heldBy(doer.actor) : sat
  const { silenced: _, transferring, ...rest } = { silenced: null, transferring: undefined, ...call }
  const isKept = (to.status === 'accepted' || to.status === 'connected') && transferring !== undefined
  if (to.status === 'accepted') {
    const callee = { ...call.callee, displayName: doer?.actor.displayName ?? null }
    const answer = { acceptedAt: now, connectedAt: null }
    return { ...rest, version, status: 'accepted', callee, callerPlace, calleePlace, ...answer } as Call
  }
  if (to.status === 'connected') {
    return {
      ...rest,
      ...(isKept && { transferring }),
      version,
      status: 'connected',
      callerPlace,
      calleePlace,
      connectedAt: now,
    } as Call
  }
  const answer = isAnswered(call)
    ? { acceptedAt: call.acceptedAt, connectedAt: call.connectedAt }
    : { acceptedAt: null, connectedAt: null }
  const end = { endedAt: now, endReason: reason }
  return { ...rest, version, status: to.status, callerPlace, calleePlace, ...answer, ...end } as Call
}

/** The push for one addressee [END2, EXT5]. */
export function noticeOf(
  call: Call,
  who: 'caller' | 'callee' | 'rung',
  reason: string | null,
  by: By | null,
  at: number,
) {
  const head = { call_uuid: call.callUuid, status: call.status }
  const party = by === null ? null : { user_id: by.userId, role: by.role }
  switch (call.status) {
    case 'missed':
      return { event: 'call.missed', data: missedOf(call, reason, at) }
    case 'accepted':
      if (who === 'caller') return { event: 'call.accepted', data: acceptedTo(call) }
      return { event: 'call.cancelled', data: { ...head, reason: 'answered_elsewhere', by: party, ended_at: null } }
    case 'connected':
      return { event: 'call.status', data: { ...head, by: party } }
    case 'rejected':
      if (who === 'caller') return { event: 'call.rejected', data: { ...head, reason, by: party, ended_at: iso(at) } }
      return { event: 'call.cancelled', data: { ...head, reason: 'rejected_elsewhere', by: party, ended_at: iso(at) } }
    default:
      return { event: `call.${call.status}`, data: { ...head, reason, by: party, ended_at: iso(at) } }
  }
}

function missedOf(call: Call, reason: string | null, at: number) {
  return {
    call_uuid: call.callUuid,
    status: 'missed',
    reason,
    caller_user_id: call.caller.userId,
    caller_role: call.caller.role,
    callee_user_id: call.callee.userId,
    callee_role: call.callee.role,
    display_name: call.caller.displayName,
    context_type: call.contextType,
    context_id: call.contextId,
    call_type: call.callType,
    started_at: iso(call.startedAt),
    ended_at: iso(at),
  }
}

/** Every place of a live call, changed. */
export function withPlaces(call: LiveCall, change: (place: Place) => Place): LiveCall {
  const callerPlace = change(call.callerPlace)
  return isAnswered(call) ? { ...call, callerPlace, calleePlace: change(call.calleePlace) } : { ...call, callerPlace }
}

/** What differs, in a line short enough to read. */
export function difference(actual: unknown, expected: unknown): string | undefined {
  if (Bun.deepEquals(actual, expected, true)) return undefined
  return `expected ${JSON.stringify(expected)}\n     got ${JSON.stringify(actual)}`
}
