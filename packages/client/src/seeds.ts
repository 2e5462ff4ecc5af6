import type { ActiveCall } from '@ringwire/protocol/events/auth'
import type { CallRinging } from '@ringwire/protocol/events/call'
import type { CallSeed } from './call.ts'
import { rings } from './call-state.ts'
import type { CallState, Direction, Peer, PeerState } from './types.ts'

/** Nothing has been heard of the other side. */
export const unknownState: PeerState = { away: null, media: null, held: false }

type WirePeer = Pick<ActiveCall['peer'], 'user_id' | 'role' | 'display_name'>

/* Calls of which this client only knows what the service says. */

function seedOf(data: ActiveCall | CallRinging, direction: Direction, peer: Peer, state: CallState): CallSeed {
  const { call_uuid: callUuid, call_type: callType, context_type: contextType, context_id: contextId } = data
  const metadata = 'metadata' in data ? data.metadata : undefined
  const group = 'peer' in data ? data.peer.group : data.callee_group
  return {
    callUuid,
    direction,
    peer,
    group,
    peerState: unknownState,
    callType,
    contextType,
    contextId,
    metadata,
    state,
  }
}

export function seedOfRing(data: CallRinging, expiresAt: number): CallSeed {
  const peer = { userId: data.caller_user_id, role: data.caller_role, displayName: data.display_name }
  return seedOf(data, 'incoming', peer, rings('incoming', expiresAt))
}

export function seedOfActive(active: ActiveCall, expiresAt: number): CallSeed {
  const { status, direction, peer } = active
  const state = status === 'ringing' ? rings(direction, expiresAt) : { name: status }
  return seedOf(active, direction, peerOf(peer), state)
}

export function peerOf({ user_id: userId, role, display_name: displayName }: WirePeer): Peer {
  return { userId, role, displayName }
}
