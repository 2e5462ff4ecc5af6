// What of the client is not there in every version yet, read with care. To go when it is.
import type { Call, CallClient, Peer, Unsubscribe } from '@ringwire/client/types'

export interface CallMediaFlags {
  readonly audio: boolean
  readonly video: boolean
  readonly screen: boolean
}

export interface PeerState {
  /** The other side has lost its connection since then, and the call ends then if it does not come back; ms. */
  readonly away: { readonly since: number; readonly endsAt: number } | null
  readonly media: CallMediaFlags | null
}

export interface RestorableCall {
  readonly callUuid: string
  readonly peer: Peer
  readonly callType: string
  readonly startedAt: number
  resume(): Call
  end(): Promise<void>
}

const unknown: PeerState = { away: null, media: null }
const none: readonly RestorableCall[] = []

type Listen = (event: string, listener: () => void) => Unsubscribe

export function peerStateOf(call: Call | undefined): PeerState {
  return (call as { peerState?: PeerState } | undefined)?.peerState ?? unknown
}

export function onPeer(call: Call | undefined, changed: () => void): Unsubscribe {
  if (!call || !('peerState' in call)) return () => {}
  return (call.on as Listen)('peer', changed)
}

export function restorableOf(client: CallClient): readonly RestorableCall[] {
  return (client as { restorable?: readonly RestorableCall[] }).restorable ?? none
}

export function onRestorable(client: CallClient, changed: () => void): Unsubscribe {
  if (!('restorable' in client)) return () => {}
  return (client.on as Listen)('restorable', changed)
}
