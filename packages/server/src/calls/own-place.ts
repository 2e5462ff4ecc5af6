import { type Call, placeOf, sideOf } from '../call/call.ts'
import type { ClientSession } from './request.ts'

/** The place of the side of a call that a session is on; null where it is on none, or nobody has that place. */
export function ownPlace(session: Pick<ClientSession, 'participant'>, call: Call) {
  const side = sideOf(call, session.participant)
  return side === undefined ? null : placeOf(call, side)
}
