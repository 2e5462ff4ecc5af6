'use client'

import { useCallback, useSyncExternalStore } from 'react'
import type { CallMedia, CallMediaState } from '../media/call-media.ts'
import type { Take, TakeableCall } from '../take.ts'
import type { TransferState, Transfers } from '../transfer.ts'
import type { Call, CallClient, CallState, ConnectionState, PeerState, RestorableCall } from '../types.ts'

const noSubscription = () => () => {}

/** The connection's state and the live calls; the component is rendered again when one of them changes. */
export function useCallClient(client: CallClient): {
  readonly state: ConnectionState
  readonly calls: readonly Call[]
} {
  const onState = useCallback((changed: () => void) => client.on('state', changed), [client])
  const onCalls = useCallback((changed: () => void) => client.on('calls', changed), [client])
  const readState = () => client.state
  const readCalls = () => client.calls
  return {
    state: useSyncExternalStore(onState, readState, readState),
    calls: useSyncExternalStore(onCalls, readCalls, readCalls),
  }
}

/** The call's state, undefined without a call. It stays after the call is over, so its end can be shown. */
export function useCall(call: Call): CallState
export function useCall(call: Call | undefined): CallState | undefined
export function useCall(call: Call | undefined): CallState | undefined {
  return useSource<CallState>(call)
}

/** The state of the other side, undefined without a call. */
export function usePeer(call: Call): PeerState
export function usePeer(call: Call | undefined): PeerState | undefined
export function usePeer(call: Call | undefined): PeerState | undefined {
  const subscribe = useCallback((changed: () => void) => call?.on('peer', changed) ?? noSubscription(), [call])
  const read = () => call?.peerState
  return useSyncExternalStore(subscribe, read, read)
}

/** Which side has put the call on hold [HOLD1]; neither without a call. `call.hold()` and `call.resume()` change `held`. */
export function useHold(call: Call | undefined): { readonly held: boolean; readonly byPeer: boolean } {
  const subscribe = useCallback((changed: () => void) => call?.on('held', changed) ?? noSubscription(), [call])
  const read = () => call?.held ?? false
  return { held: useSyncExternalStore(subscribe, read, read), byPeer: usePeer(call)?.held ?? false }
}

/** Live calls that wait to be gone on with, or ended. */
export function useRestorable(client: CallClient): readonly RestorableCall[] {
  const subscribe = useCallback((changed: () => void) => client.on('restorable', changed), [client])
  const read = () => client.restorable
  return useSyncExternalStore(subscribe, read, read)
}

const none: readonly never[] = []

/** Calls of this person at other devices that can go on here; none without a `take`. */
export function useTakeable(take: Take | undefined): readonly TakeableCall[] {
  const subscribe = useCallback((changed: () => void) => take?.on('change', changed) ?? noSubscription(), [take])
  const read = () => take?.calls ?? none
  return useSyncExternalStore(subscribe, read, read)
}

/** How the transfer of the call stands [XFER1]; undefined where there is none, and without a call. */
export function useTransfer(transfers: Transfers | undefined, call: Call | undefined): TransferState | undefined {
  const subscribe = useCallback(
    (changed: () => void) => transfers?.on('change', changed) ?? noSubscription(),
    [transfers],
  )
  const read = () => (call ? transfers?.of(call) : undefined)
  return useSyncExternalStore(subscribe, read, read)
}

/** The state of the call's media, undefined without one. */
export function useCallMedia(media: CallMedia): CallMediaState
export function useCallMedia(media: CallMedia | undefined): CallMediaState | undefined
export function useCallMedia(media: CallMedia | undefined): CallMediaState | undefined {
  return useSource<CallMediaState>(media)
}

/** The code that both people compare, undefined without a call and until it is connected [SAS1]. */
export function useSecurityCode(media: CallMedia | undefined): string | undefined {
  return useCallMedia(media)?.securityCode
}

interface Source<State> {
  readonly state: State
  on(event: 'state', listener: (state: State) => void): () => void
}

function useSource<State>(source: Source<State> | undefined): State | undefined {
  const subscribe = useCallback((changed: () => void) => source?.on('state', changed) ?? noSubscription(), [source])
  const read = () => source?.state
  return useSyncExternalStore(subscribe, read, read)
}
