import type { ElsewhereReason } from '@ringwire/protocol/end-reasons'
import type { ActiveCall } from '@ringwire/protocol/events/auth'
import type { PeerAbsence } from '@ringwire/protocol/events/call'
import type { LiveCall } from './call.ts'
import { hadPlace, isUnanswered, overFromWire, participant, ringsHere } from './call-state.ts'
import { ownReasons } from './types.ts'
import type { Push } from './wire.ts'

/** The service's instant by this device's clock. */
type LocalTime = (iso: string) => number

/** What the service says about a call that this client knows. */
export function hear(it: LiveCall, push: Push, localTime: LocalTime): void {
  switch (push.event) {
    case 'call.accepted':
      // Again: another session is at the other end, and knows nothing of what was signalled [PLACE5].
      if (it.call.state.name !== 'ringing') {
        // Nor does it go on with what the one before it sent [MEDIA1].
        if (it.call.peerState.media) it.learn({ media: null, held: false })
        it.resync(false)
      }
      hearCallee(it, push.data)
      it.apply({ type: 'accepted' })
      break
    case 'call.status':
      it.emit('status', { status: 'connected', by: participant(push.data.by) })
      it.apply({ type: 'connected' })
      break
    case 'call.alerting':
      it.emit('alerting', participant(push.data.by))
      it.apply({ type: 'alerting' })
      break
    case 'call.media': {
      const { audio, video, screen, held = false } = push.data
      it.learn({ media: { audio, video, screen }, held })
      break
    }
    case 'call.peer_away':
      hearAway(it, localTime, push.data)
      break
    case 'call.peer_back':
    case 'call.peer_moved':
      hearAway(it, localTime)
      break
    case 'webrtc.offer':
      it.receive({ event: 'offer', payload: push.data.sdp })
      break
    case 'webrtc.answer':
      it.receive({ event: 'answer', payload: push.data.sdp })
      break
    case 'webrtc.ice_candidate':
      if (push.data.candidate !== null) it.receive({ event: 'candidate', payload: push.data.candidate })
      break
    default:
      // All final notices, and nothing else, say when the call ended [END2].
      if ('ended_at' in push.data) it.apply(overFromWire(push.data))
  }
}

/** Who answered. A name that is not told leaves the one that the application gave. */
function hearCallee(it: LiveCall, { callee_user_id: userId, display_name: displayName }: Callee): void {
  if (userId || displayName) it.learn({}, { ...(userId && { userId }), ...(displayName && { displayName }) })
}

type Callee = { readonly [Key in 'callee_user_id' | 'display_name']?: string | null | undefined }

export function hearAway(it: LiveCall, localTime: LocalTime, away?: PeerAbsence): void {
  if (away) it.learn({ away: { since: localTime(away.since), endsAt: localTime(away.ends_at) } })
  else if (it.call.peerState.away) it.learn({ away: null })
}

/** A call that this client knows, after a gap in what it heard; `active` is what the service says of it. */
export function catchUp(it: LiveCall, active: ActiveCall | undefined, localTime: LocalTime): void {
  const { state } = it.call
  if (!active) {
    // The client repeats an invite without an answer; its reply says what became of the call.
    if (isUnanswered(it.call)) return
    // The service answers a question about an ended call with how it ended [END4].
    if (hadPlace(it.call)) it.confirm()
    else it.apply({ type: 'over', reason: ownReasons.lost })
    return
  }
  const isElsewhere = active.status !== 'ringing' && !active.holds_place
  if (isElsewhere && ringsHere(state)) {
    // An accept that is on its way says itself what became of it.
    if (!state.answering)
      it.apply({ type: 'over', status: 'accepted', reason: 'answered_elsewhere' satisfies ElsewhereReason })
    return
  }
  it.apply({ type: 'stands', status: active.status })
  const { user_id, display_name } = active.peer
  hearCallee(it, { callee_user_id: user_id, display_name })
  confirm(it, active, localTime)
  it.resync(false)
}

/**
 * A session without a place hears nothing, not even the end. A place that the service does not show here may belong to
 * another session, or be about to come to this one [PLACE4]. So the client asks the service.
 */
export function confirm(it: LiveCall, active: ActiveCall | undefined, localTime: LocalTime): void {
  if (active) hearAway(it, localTime, active.peer.away)
  if (hadPlace(it.call) && active?.holds_place !== true) it.confirm()
}
