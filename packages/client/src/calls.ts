import type { ActiveCall } from '@ringwire/protocol/events/auth'
import type { CallRinging } from '@ringwire/protocol/events/call'
import type { CallPort, CallSeed, LiveCall } from './call.ts'
import { createCallList } from './call-list.ts'
import { catchUp, confirm, hear, hearAway } from './call-news.ts'
import { ringsHere } from './call-state.ts'
import { type Inviting, placeCall } from './invites.ts'
import type { Listeners } from './listeners.ts'
import type { Requests } from './requests.ts'
import { seedOfActive, seedOfRing } from './seeds.ts'
import { type Call, type CallOptions, type ClientEvents, ownReasons, type RingwireErrorShape } from './types.ts'
import type { Push } from './wire.ts'

export interface CallsOptions extends Omit<Inviting, 'list'>, Pick<CallPort, 'self' | 'client' | 'rejected'> {
  readonly requests: Requests
  readonly listeners: Listeners<ClientEvents>
}

/** The calls of a client, from their first word to their last. */
export function createCalls({ listeners, self, client, rejected, ...options }: CallsOptions) {
  const { env, localTime, requests } = options
  const list = createCallList(listeners, { ask: requests.ask, withdraw: requests.withdraw, self, client, rejected })

  function hearRinging(data: CallRinging): void {
    const { call_uuid: callUuid, metadata } = data
    const expiresAt = env.now() + data.ring_timeout_ms
    const known = list.live.get(callUuid)
    if (known) {
      if (metadata) known.become({ metadata })
      known.apply({ type: 'rings until', expiresAt })
    } else if (list.isNews(callUuid)) list.ring(list.add(seedOfRing(data, expiresAt)))
  }

  /** A live call of this session that this page did not know. It goes on at once where the page was just loaded again. */
  function restore(active: ActiveCall, rejoins: boolean): void {
    const it = list.add(seedOfActive(active, localTime(active.expires_at)))
    if (ringsHere(it.call.state)) {
      list.ring(it)
      return
    }
    hearAway(it, localTime, active.peer.away)
    if (!rejoins) {
      list.park(it, localTime(active.started_at))
      return
    }
    list.refresh()
    listeners.emit('restored', it.call)
    it.resync(true)
  }

  /** Takes up what this page does not know, without a word about the rest. */
  function adopt(active: readonly ActiveCall[], ringsFollow: boolean, rejoins: boolean): void {
    for (const it of active) {
      const isRinging = it.status === 'ringing' && it.direction === 'incoming'
      if (list.isNews(it.call_uuid) && (isRinging ? !ringsFollow : it.holds_place)) restore(it, rejoins)
    }
  }

  return {
    place: (wish: CallOptions): Call => placeCall({ ...options, list }, wish),
    shown: list.shown,
    find: (callUuid: string): Call | undefined =>
      list.shown.calls.find((call) => call.callUuid === callUuid.toLowerCase()),

    receive(push: Push): void {
      if (push.event === 'call.ringing') hearRinging(push.data)
      else if ('call_uuid' in push.data) {
        const it = list.live.get(push.data.call_uuid)
        if (it) hear(it, push, localTime)
      }
    },

    /** Nothing that was said is lost, but this session may have lost its places while it was away. */
    recovered(active: readonly ActiveCall[]): void {
      for (const it of [...list.live.values()]) confirm(it, find(active, it), localTime)
    },

    /** Earlier messages may have been lost: `active` is the truth. Calls that ring are reported anew, or are not. */
    reconcile(active: readonly ActiveCall[], ringsFollow: boolean, rejoins: boolean): void {
      for (const it of [...list.live.values()]) catchUp(it, find(active, it), localTime)
      adopt(active, ringsFollow, rejoins)
    },
    adopt,

    live: list.live,
    isNews: list.isNews,
    /** One of the calls of the client from now on. */
    add(seed: CallSeed): LiveCall {
      const it = list.add(seed)
      list.refresh()
      return it
    },

    /** Ends what this session holds; what rings here goes on elsewhere. */
    hangUp(): void {
      for (const { call } of [...list.live.values()]) if (!ringsHere(call.state)) void call.end()
    },

    /** The client is closed. */
    drop(error: RingwireErrorShape | undefined): void {
      for (const it of [...list.live.values()]) it.apply({ type: 'over', reason: ownReasons.closed, error })
    },
  }
}

export type Calls = ReturnType<typeof createCalls>

function find(active: readonly ActiveCall[], { call }: LiveCall): ActiveCall | undefined {
  return active.find(({ call_uuid }) => call_uuid === call.callUuid)
}
