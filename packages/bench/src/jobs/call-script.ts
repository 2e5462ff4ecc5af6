// The seventeen messages of a call, for Ringwire and, byte for byte as long, for the bare relay.
import { candidate, type Side } from '../candidate.ts'
import { other, type Pair } from '../dialects/dialect.ts'
import { sessionDescription } from '../session-description.ts'

export const CANDIDATES_EACH_WAY = 5
/** invite, accept, offer, answer, ten candidates, two call.connected, end. */
export const MESSAGES_PER_CALL = 7 + 2 * CANDIDATES_EACH_WAY

const offer = sessionDescription('offer')
const answer = sessionDescription('answer')

export type Speaker = (pair: Pair, from: Side, event: string, data: Record<string, unknown>) => string

/** A request as a client of Ringwire sends it; the request_id is as long as the bare relay's address. */
export const toRingwire: Speaker = (_pair, _from, event, data) =>
  JSON.stringify({ event, request_id: 'request-0000000001', data })

export const toBareRelay: Speaker = (pair, from, event, data) =>
  JSON.stringify({ event, to: pair[other(from)].id, data })

/** What one side sends when it has received an event; null when it stays silent. */
export interface Turn {
  event: string
  data: (pair: Pair) => Record<string, unknown>
}

const byUuid = (pair: Pair) => ({ call_uuid: pair.callUuid })
const trickle: Turn[] = Array.from({ length: CANDIDATES_EACH_WAY }, () => ({
  event: 'webrtc.ice_candidate',
  data: (pair) => ({ call_uuid: pair.callUuid, candidate }),
}))

export const invite: Turn = {
  event: 'call.invite',
  data: (pair) => ({
    callee_user_id: pair.callee.id,
    callee_role: 'callee',
    context_type: 'order',
    context_id: 'order-1',
    call_type: 'video',
  }),
}
export const accept: Turn = { event: 'call.accept', data: byUuid }
export const offerAndCandidates: Turn[] = [
  { event: 'webrtc.offer', data: (pair) => ({ call_uuid: pair.callUuid, sdp: offer }) },
  ...trickle,
]
export const answerAndCandidates: Turn[] = [
  { event: 'webrtc.answer', data: (pair) => ({ call_uuid: pair.callUuid, sdp: answer }) },
  ...trickle,
]
export const connected: Turn = { event: 'call.connected', data: byUuid }
export const end: Turn = { event: 'call.end', data: byUuid }
