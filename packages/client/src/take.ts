/** Calls that are at another device of this person, and can go on here [TAKE1]. */
import type { Capability } from '@ringwire/protocol/capabilities'
import type { ActiveCall, CallListed } from '@ringwire/protocol/events/auth'
import { hearAway } from './call-news.ts'
import { createListeners } from './listeners.ts'
import { type ClientParts, type ClientWithParts, parts } from './parts.ts'
import type { Reply } from './requests.ts'
import { peerOf, seedOfActive } from './seeds.ts'
import { type Call, type CallClient, type Direction, ownReasons, type Peer, type Unsubscribe } from './types.ts'

export interface TakeableCall {
  readonly callUuid: string
  readonly peer: Peer
  readonly callType: string
  readonly direction: Direction
  /** When the invite was made, in ms since the epoch by the service's clock. */
  readonly startedAt: number
  /**
   * Goes on with it here: one of the calls of the client from now on, and over at the other device. Make its media in the
   * same turn. If the service refuses it, the call is over here, with `error`.
   */
  take(): Call
}

export interface TakeEvents {
  /** Another list. */
  change: readonly TakeableCall[]
}

export interface Take {
  /** Newest last; the same array until something changes, and empty while the connection is away. */
  readonly calls: readonly TakeableCall[]
  on<E extends keyof TakeEvents>(event: E, listener: (payload: TakeEvents[E]) => void): Unsubscribe
  /** Looks now, as for a page that is shown again: no event says when a call begins at another device. */
  refresh(): Promise<void>
  /** Looks no more. */
  close(): void
}

/** The client has to list this: `createCallClient({ …, can: takeCapabilities })`. */
export const takeCapabilities: readonly Capability[] = ['take']

/** Between two looks while there is such a call, in ms: it may end at any moment. */
const lookMs = 5_000

/** Looks when the client comes online, when its own calls change, and every 5 s while there is a call that can be taken. */
export function createTake(client: CallClient): Take {
  const own = (client as ClientWithParts)[parts]
  const listeners = createListeners<TakeEvents>()
  let calls: readonly TakeableCall[] = []
  let timer: ReturnType<typeof setTimeout> | undefined

  function become(found: readonly ActiveCall[]): void {
    // A list from before a take still says that the call is at the other device.
    const takeable = found.filter(({ elsewhere, call_uuid }) => elsewhere && !own.live.has(call_uuid))
    const isSame = takeable.length === calls.length && takeable.every((it, i) => it.call_uuid === calls[i]?.callUuid)
    if (isSame) return
    calls = takeable.map((active) => takeableOf(active, own))
    listeners.emit('change', calls)
  }

  async function refresh(): Promise<void> {
    clearTimeout(timer)
    if (client.state.name !== 'online') return become([])
    try {
      become(((await own.ask({ event: 'call.list', data: {} })) as CallListed).active_calls)
    } catch {
      // Offline, or an older service: what is known stays until the next look.
    }
    clearTimeout(timer)
    if (calls.length > 0) timer = setTimeout(refresh, lookMs)
  }

  const look = () => void refresh()
  const ends = [client.on('state', look), client.on('calls', look)]
  look()
  return {
    get calls() {
      return calls
    },
    on: listeners.on,
    refresh,
    close() {
      clearTimeout(timer)
      for (const end of ends) end()
    },
  }
}

function takeableOf(active: ActiveCall, own: ClientParts): TakeableCall {
  const { call_uuid: callUuid, peer, call_type: callType, direction, started_at } = active
  return {
    ...{ callUuid, callType, direction },
    peer: peerOf(peer),
    startedAt: Date.parse(started_at),
    take: () => takeHere(active, own),
  }
}

function takeHere(active: ActiveCall, { ask, live, add, localTime }: ClientParts): Call {
  const known = live.get(active.call_uuid)
  if (known) return known.call
  const it = add(seedOfActive(active, localTime(active.expires_at)))
  hearAway(it, localTime, active.peer.away)
  const onReply = (reply: Reply) => {
    if (!reply.ok) it.apply({ type: 'over', reason: ownReasons.failed, error: reply.error })
  }
  void ask({ event: 'call.take', data: { call_uuid: active.call_uuid }, insistent: true, onReply })
  // Everything that the application makes of it in this turn begins anew with it.
  queueMicrotask(() => it.resync(true))
  return it.call
}
