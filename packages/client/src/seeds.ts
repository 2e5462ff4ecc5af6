import type { ActiveCall } from '@ringwire/protocol/events/auth'
import type { CallRinging } from '@ringwire/protocol/events/call'
import type { CallSeed } from './call.ts'
import { participant, rings } from './call-state.ts'
import type { CallState, Direction, Peer } from './types.ts'

/* Calls of which this client only knows what the service says. */

function seedOf(data: ActiveCall | CallRinging, direction: Direction, peer: Peer, state: CallState): CallSeed {
  const { call_uuid: callUuid, call_type: callType, context_type: contextType, context_id: contextId } = data
  const metadata = 'metadata' in data ? data.metadata : undefined
  const peerState = { away: null, media: null, held: false }
  return { callUuid, direction, peer, peerState, callType, contextType, contextId, metadata, state }
}

export function seedOfRing(data: CallRinging, expiresAt: number): CallSeed {
  const peer = { userId: data.caller_user_id, role: data.caller_role, displayName: data.display_name }
  return seedOf(data, 'incoming', peer, rings('incoming', expiresAt))
}

export function seedOfActive(active: ActiveCall, expiresAt: number): CallSeed {
  const { status, direction, peer } = active
  const state = status === 'ringing' ? rings(direction, expiresAt) : { name: status }
  // Nobody of a group that is called has answered yet.
  const known = { ...peer, user_id: peer.user_id ?? '' }
  return seedOf(active, direction, { ...participant(known), displayName: peer.display_name }, state)
}
