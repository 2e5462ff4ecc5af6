import type { PeerAbsence } from '@ringwire/protocol/events/call'
import {
  type AnsweredCall,
  type Call,
  type CallDurations,
  isAnswered,
  isAwaited,
  isClosed,
  lostAt,
  otherSide,
  type Place,
  placeOf,
  type Side,
} from './call.ts'
import type { PeerNews, Step } from './effects.ts'

type Vacant = Extract<Place, { readonly state: 'vacant' }>

const sides = ['caller', 'callee'] as const
const iso = (at: number) => new Date(at).toISOString()

/**
 * How long a side of an answered call has been away, and until when it may come back. Undefined if it is there, or was
 * asked to come back and still has time for that [PEER1].
 */
export function absenceOf(call: Call, side: Side, durations: CallDurations): PeerAbsence | undefined {
  if (!isAnswered(call)) return undefined
  const place = placeOf(call, side)
  if (place?.state !== 'vacant' || isAwaited(place)) return undefined
  return { since: iso(place.since), ends_at: iso(absenceEnd(call, side, place, durations)) }
}

/** When the call ends for this side's absence, whatever the other side's own does: the receiver is there, or will be. */
function absenceEnd(call: AnsweredCall, side: Side, place: Vacant, durations: CallDurations): number {
  const { callerLostMs, peerLostMs, maxDurationMs, outages } = durations
  const longest = Math.min(call.acceptedAt + maxDurationMs, lostAt(place.since, peerLostMs, outages))
  return isSecondToClose(call, side) ? Math.min(longest, lostAt(place.since, callerLostMs, outages)) : longest
}

/** Both clients closed their sockets, and this one was the later: the call ends sooner [END5]. */
function isSecondToClose(call: AnsweredCall, side: Side): boolean {
  const place = placeOf(call, side) as Place
  const other = placeOf(call, otherSide(side)) as Place
  return isClosed(place) && isClosed(other) && place.since >= other.since
}

/** Writes down beside the step of a call, where there is one, what a side has to hear of the other's absence. */
export function notePeers<D extends { readonly steps: readonly Step[] }>(
  before: Call,
  decision: D,
  durations: CallDurations,
): D {
  const steps = decision.steps.map((step) => {
    const peers = [...takenNews(step), ...newsOf(before, step.call, durations)]
    return peers.length === 0 ? step : { ...step, event: { ...step.event, peers } }
  })
  return { ...decision, steps }
}

/** A side whose place was taken goes on at another device [TAKE1]. */
function takenNews({ call, event }: Step): PeerNews[] {
  const taken = event.moved?.filter((move) => move.taken === true) ?? []
  const data = { call_uuid: call.callUuid }
  return taken.map(({ side }) => ({ to: otherSide(side), event: 'call.peer_moved', data, needs: 'take' }))
}

function newsOf(before: Call, after: Call, durations: CallDurations): PeerNews[] {
  if (!isAnswered(after)) return []
  return sides.flatMap((side): PeerNews[] => {
    const is = absenceOf(after, side, durations)
    const was = absenceOf(before, side, durations)
    const to = otherSide(side)
    const call_uuid = after.callUuid
    if (is === undefined) return was === undefined ? [] : [{ to, event: 'call.peer_back', data: { call_uuid } }]
    const [had, has] = [placeOf(before, to), placeOf(after, to)]
    // A side that comes back to a call that was about to end gets the other side's whole time again.
    const isSame = was?.since === is.since && (was.ends_at === is.ends_at || has?.state !== 'held')
    // The new holder of a place has not heard what the previous session heard.
    const isOld = isSame && had?.sessionId === has?.sessionId
    return isOld ? [] : [{ to, event: 'call.peer_away', data: { call_uuid, ...is } }]
  })
}
