import { type Call, type CallClock, isAnswered, isLive, type LiveCall } from './call.ts'
import { mapPlaces } from './places.ts'
import { shiftTurn } from './turns.ts'

/*
 * The wall clock that calls go by may jump. A call says by which clock its deadlines were written, and by how much that clock had
 * jumped. So whoever reads it knows how far they have to be moved, and nobody has to find out when a call was written [END3].
 */

/** By how many ms a clock has jumped since a call was written by it. */
export function jumpedSince(call: Call, { of, jumpedMs }: CallClock): number {
  return jumpedMs - (call.clock?.of === of ? call.clock.jumpedMs : 0)
}

/** A call with its deadlines by this clock: what remained when it jumped still remains. */
export function byClock<C extends Call>(call: C, clock: CallClock): C {
  const ms = jumpedSince(call, clock)
  return ms === 0 || !isLive(call) ? call : ({ ...moved(call, ms), clock } as Call as C)
}

/** A call with each of its deadlines `ms` later. */
export function moved(call: LiveCall, ms: number): LiveCall {
  const next = mapPlaces(call, (place) => (place.state === 'vacant' ? { ...place, since: place.since + ms } : place))
  if (isAnswered(next)) return { ...next, acceptedAt: next.acceptedAt + ms }
  return shiftTurn({ ...next, ringExpiresAt: next.ringExpiresAt + ms }, ms)
}
