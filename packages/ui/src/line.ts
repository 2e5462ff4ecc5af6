import type { CallMediaOptions } from '@ringwire/client/media'
import type { Call, CallClient, CallOptions, Unsubscribe } from '@ringwire/client/types'
import { createLineCall, rings } from './line-call.ts'
import { createLineDevices } from './line-devices.ts'
import { createLineState, idle } from './line-state.ts'

export interface LineOptions {
  /**
   * For each call's media, with the devices that the user chose. No camera is opened for an audio call.
   */
  readonly media?: CallMediaOptions | undefined
  /** What a call that comes during another gets: rejected as busy, or left to ring until this one is over. */
  readonly busy?: 'reject' | 'hold' | undefined
}

/** The one call that a page is in, with its media. It lives outside of components, so they may come and go. */
export function createLine(client: CallClient) {
  let options: LineOptions = {}
  const line = createLineState()
  const { get, change } = line
  const { open, ...devices } = createLineDevices(line, () => options.media?.media)
  const { ring, join, take } = createLineCall(client, line, open, () => options.media)
  /** Providers that are mounted now, and how the line stops listening for them. */
  let attached = 0
  let ends: Unsubscribe[] = []

  function came(call: Call): void {
    if (!get().call) ring(call)
    else if (options.busy !== 'hold') void call.reject('busy')
  }

  function begin(wish: CallOptions): Call {
    const call = client.call(wish)
    take(call)
    return call
  }

  /** What is there already: the page may have connected before the components came. */
  function adopt(): void {
    if (get().call) return
    const found = client.calls.find((call) => call.state.name !== 'over')
    if (found && rings(found)) ring(found)
    else if (found) take(found)
  }

  function restored(call: Call): void {
    if (!get().call) take(call)
  }

  return {
    ...devices,
    get,
    subscribe: line.subscribe,
    configure(next: LineOptions): void {
      options = next
    },
    /** From now on it takes the calls that come, once each, however many providers attach it. */
    attach(): Unsubscribe {
      if (attached++ === 0) ends = [client.on('incoming', came), client.on('restored', restored)]
      adopt()
      return () => {
        if (--attached === 0) for (const end of ends.splice(0)) end()
      }
    },
    /** Calls, unless there is a call already. */
    place: (wish: CallOptions): Call => get().call ?? begin(wish),
    /** Calls the person of the last call. */
    callAgain(): void {
      const { call, ended } = get()
      if (!call && ended) begin(wishOf(ended.call))
    },
    accept({ video }: { video?: boolean } = {}): void {
      const { call, phase } = get()
      if (!call || phase !== 'incoming') return
      join(call, video !== false)
      void call.accept()
    },
    decline: (reason?: string): void => {
      if (get().phase === 'incoming') void get().call?.reject(reason)
    },
    hangUp: (): void => void get().call?.end(),
    /** Takes the end of the last call away. */
    dismiss(): void {
      if (get().phase === 'over') change(idle)
    },
    /** A call of before that is not yet on this page. */
    resume: restored,
  }
}

/** Calls the same person about the same again. */
function wishOf({ peer, callType, contextType, contextId, metadata }: Call): CallOptions {
  const context = { contextType: contextType || undefined, contextId: contextId || undefined, metadata }
  return { ...peer, displayName: peer.displayName || undefined, callType, ...context } as CallOptions
}

export type Line = ReturnType<typeof createLine>

const lines = new WeakMap<CallClient, Line>()

/** One for each client, so that a provider that is mounted again goes on with the call. */
export function lineOf(client: CallClient): Line {
  const known = lines.get(client) ?? createLine(client)
  lines.set(client, known)
  return known
}
