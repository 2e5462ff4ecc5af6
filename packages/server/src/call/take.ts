import { type AnsweredCall, type Call, isAnswered, type Place, type Side } from './call.ts'
import { byOf, type CallCommand, changed, type Decision, refuse } from './command.ts'
import { acceptedData, type Notice, type PlaceMove } from './effects.ts'
import { beganTooLate, placeFor, seat, withPlace } from './places.ts'

type TakeCommand = Extract<CallCommand, { type: 'take' }>

/** Moves the place of a side of an answered call to the session that asks, whichever session holds it [TAKE1]. */
export function take(call: Call, side: Side, { actor, isForbidden, isGone }: TakeCommand, now: number): Decision {
  if (!isAnswered(call)) return refuse('CALL_INVALID_STATE', { status: call.status })
  if (beganTooLate(call, side, actor)) return refuse('AUTH_TOKEN_INVALID')
  if (isForbidden === true) return refuse('ACTION_NOT_ALLOWED')
  // A session without a socket would lose the place at once, and the call with it.
  if (isGone === true) return refuse('SERVICE_UNAVAILABLE', { retryable: true })
  const place = side === 'caller' ? call.callerPlace : call.calleePlace
  if (place.sessionId === actor.sessionId) return seat(call, side, place, actor, now)
  const next = { ...withPlace(call, side, placeFor(actor, true)), version: call.version + 1 }
  return changed(next, {
    type: 'place_taken',
    at: now,
    by: byOf(actor),
    notices: side === 'callee' ? [offerAnew(call)] : [],
    moved: [moveFrom(place, side)],
  })
}

/** The session at the other end has a connection with nobody by now. If the caller's place moves, the taker offers itself. */
function offerAnew(call: AnsweredCall): Notice {
  return { to: { place: 'caller' }, event: 'call.accepted', data: acceptedData(call) }
}

function moveFrom({ sessionId, deviceId, state }: Place, side: Side): PlaceMove {
  return { side, from: sessionId, taken: true, leftDevice: deviceId, ...(state === 'vacant' && { lost: true }) }
}
