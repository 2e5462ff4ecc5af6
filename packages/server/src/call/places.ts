import { type Call, isClosed, type LiveCall, type Place, placeOf, type Side } from './call.ts'
import { type Acceptance, type Actor, byOf, changed, unchanged } from './command.ts'
import { acceptedData, type Notice, type PlaceMove, type Step } from './effects.ts'

/** For this time a place that fell vacant only waits for its holder's device [PLACE2], in milliseconds. */
export const ownDeviceMs = 5_000

/**
 * A held place is never taken, but where its holder took it only by connecting. A vacant one is taken by the holder's device,
 * and by another one when the holder has had the time to come back [PLACE2].
 */
export function maySpeak(place: Place, actor: Pick<Actor, 'sessionId' | 'deviceId'>, now: number): boolean {
  if (place.sessionId === actor.sessionId) return true
  if (place.deviceId === actor.deviceId) return place.state === 'vacant' || !place.settled
  return place.state === 'vacant' && now >= place.since + ownDeviceMs
}

/** A session whose token is over goes on with its calls, and enters none that began later [WS5]. */
export function beganTooLate(call: LiveCall, side: Side, { expiresAt = Number.POSITIVE_INFINITY }: Actor): boolean {
  return beganFor(call, side) >= expiresAt
}

/**
 * When a call began as far as the token of a side counts, in ms since the epoch. For a side that was transferred that is when
 * its first call did: it asked for no other one [XFER1].
 */
export function beganFor({ startedAt, transferred }: LiveCall, side: Side): number {
  return (side === 'caller' ? transferred?.firstStartedAt : transferred?.secondStartedAt) ?? startedAt
}

export function placeFor({ sessionId, deviceId, node, can }: Actor, settled: boolean): Place {
  return { state: 'held', sessionId, deviceId, node, settled, ...(can !== undefined && { can }) }
}

/** Whether a place says where its holder is connected, and what its client understands, as of now [EXT6]. */
export function isAsConnected(place: Place, { node, can = [] }: Actor): boolean {
  const { can: known = [] } = place
  return place.node === node && known.length === can.length && known.every((capability) => can.includes(capability))
}

export function withPlace(call: LiveCall, side: Side, place: Place): LiveCall {
  if (side === 'caller') return { ...call, callerPlace: place }
  return call.status === 'ringing' ? call : { ...call, calleePlace: place }
}

export function mapPlaces(call: LiveCall, change: (place: Place) => Place): LiveCall {
  const callerPlace = change(call.callerPlace)
  if (call.status === 'ringing') return callerPlace === call.callerPlace ? call : { ...call, callerPlace }
  const calleePlace = change(call.calleePlace)
  if (callerPlace === call.callerPlace && calleePlace === call.calleePlace) return call
  return { ...call, callerPlace, calleePlace }
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
 * Messages that were sent on a socket that its client closed are not sent again: the next holder of the place needs a new
 * offer, and `call.accepted` asks the caller for it [PLACE5]. A caller who has yet to hear it hears it once: its log
 * knows.
 */
export function acceptedAgain(call: LiveCall, place: Place, actor: Actor): readonly Notice[] {
  if (call.status !== 'accepted' || !isClosed(place) || place.sessionId === actor.sessionId) return []
  return [{ to: { place: 'caller' }, event: 'call.accepted', data: acceptedData(call) }]
}

/** Writes down beside each step whose place passed on: the delivery of the step takes along the messages that wait there. */
export function noteMoves<D extends { readonly steps: readonly Step[] }>(before: Call, decision: D): D {
  if (!decision.steps.some((step) => movesOf(before, step.call).length > 0)) return decision
  const steps = decision.steps.map(({ call, event }) => ({ call, event: { moved: movesOf(before, call), ...event } }))
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
