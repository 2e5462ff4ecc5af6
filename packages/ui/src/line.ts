import type { CallMediaOptions } from '@ringwire/client/media'
import type { TakeableCall } from '@ringwire/client/take'
import type { Transfers, TransferTarget } from '@ringwire/client/transfer'
import type { Call, CallClient, CallOptions, Unsubscribe } from '@ringwire/client/types'
import { endAndAnswer, holdAndAnswer, swap } from '@ringwire/client/waiting'
import { createLineCall, rings } from './line-call.ts'
import { createLineDevices } from './line-devices.ts'
import { createLineState, idle } from './line-state.ts'

export interface LineOptions {
  /**
   * For each call's media, with the devices that the user chose. No camera is opened for an audio call.
   */
  readonly media?: CallMediaOptions | undefined
  /**
   * The treatment of a call that comes during another: rejected as busy, shown so that the user may answer it (`wait`),
   * or left to ring until this one is over (`hold`).
   */
  readonly busy?: 'reject' | 'wait' | 'hold' | undefined
  /** Of `createTransfers`: a call that is transferred goes on here, and the user may transfer one. */
  readonly transfers?: Transfers | undefined
}

/** The call that a page is in, with its media, and a second one that waits. It lives outside of components, so they may come and go. */
export function createLine(client: CallClient) {
  let options: LineOptions = {}
  const line = createLineState()
  const { get, change } = line
  const { open, ...devices } = createLineDevices(line, () => options.media?.media)
  const { ring, join, take, wait, move, exchange, connectBoth } = createLineCall(client, line, open, () => options)
  /** Providers that are mounted now, and how the line stops listening for them. */
  let attached = 0
  let ends: Unsubscribe[] = []

  function came(call: Call): void {
    if (!get().call) ring(call)
    else if (options.busy === 'wait' && !get().other) wait(call)
    else if (options.busy !== 'hold') void call.reject('busy')
  }

  /** The user's choice: of a call to a group, the peer is the member that answered. */
  const wishes = new WeakMap<Call, CallOptions>()

  function begin(wish: CallOptions): Call {
    const call = client.call(wish)
    wishes.set(call, wish)
    take(call)
    return call
  }

  /** Takes over existing calls: the page may have connected before the components came. */
  function adopt(): void {
    if (get().call) return
    const found = client.calls.filter((call) => call.state.name !== 'over' && !isPromised(call))
    const first = found.find((call) => !rings(call)) ?? found[0]
    if (first && rings(first)) ring(first)
    else if (first) take(first)
    const second = found.find((call) => call !== first)
    if (second && hasTwo()) wait(second)
  }

  /** A user who talks to somebody before a transfer has two calls as well. */
  const hasTwo = () => options.busy === 'wait' || options.transfers !== undefined

  /** The new call of a transfer, which goes on here once the target answers. */
  function isPromised(call: Call): boolean {
    const isMine = call.direction === 'outgoing' && call.state.name === 'ringing'
    return isMine && options.transfers?.origin(call) !== undefined
  }

  function restored(call: Call): void {
    if (isPromised(call)) return
    if (!get().call) take(call)
    else if (hasTwo() && !get().other) wait(call)
  }

  /** The second call comes to the front, and what is opened for it is what an answer opens. */
  function answerOther(answer: (first: Call, second: Call) => Promise<void>, video: boolean): void {
    const { call, other } = get()
    if (!call || !other || !rings(other.call)) return
    exchange()
    join(other.call, video)
    void answer(call, other.call)
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
      if (attached++ === 0) {
        const moved = options.transfers?.on('moved', ({ from, call }) => move(from, call))
        ends = [client.on('incoming', came), client.on('restored', restored), ...(moved ? [moved] : [])]
      }
      adopt()
      return () => {
        if (--attached === 0) for (const end of ends.splice(0)) end()
      }
    },
    /** Calls, unless there is a call already. */
    place: (wish: CallOptions): Call => get().call ?? begin(wish),
    /** Calls whom the last call was with, or the same group again. */
    callAgain(): void {
      const { call, ended } = get()
      if (!call && ended) begin(wishes.get(ended.call) ?? wishOf(ended.call))
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
    /** Of a second call that rings: the first one is put on hold for it. */
    holdAndAnswer({ video }: { video?: boolean } = {}): void {
      const { name } = get().call?.state ?? {}
      if (name !== 'ringing') answerOther(holdAndAnswer, video !== false)
    },
    /** The same, and the first call ends. */
    endAndAnswer: ({ video }: { video?: boolean } = {}): void => answerOther(endAndAnswer, video !== false),
    declineOther: (reason?: string): void => {
      const { other } = get()
      if (other && rings(other.call)) void other.call.reject(reason)
    },
    /** The call that is on hold goes on, and the other one is put on hold. */
    swap(): void {
      const { call, other } = get()
      if (!call || call.state.name === 'ringing' || !other || rings(other.call)) return
      exchange()
      void swap(call, other.call)
    },
    /** Hands the other side of the call over to somebody. */
    transfer(target: TransferTarget): void {
      const { call } = get()
      if (call) void options.transfers?.transfer(call, target)
    },
    /** Calls somebody before a transfer: the call is put on hold for it. */
    consult(wish: CallOptions): void {
      const { call, other } = get()
      if (!call || call.state.name === 'ringing' || other) return
      const second = client.call(wish)
      wishes.set(second, wish)
      wait(second)
    },
    /** The other sides of the two calls go on with each other, and both calls end here. */
    connectBoth,
    /** Takes the end of the last call away. */
    dismiss(): void {
      if (get().phase === 'over') change(idle)
    },
    /** A call at another device goes on here, unless there is a call already. */
    takeOver: (takeable: Pick<TakeableCall, 'take'>): void => {
      if (!get().call) take(takeable.take())
    },
    /** A call from before that is not yet on this page. */
    resume: restored,
  }
}

/** Calls the same person about the same again, or the group that this page did not call itself. */
function wishOf({ peer, group, direction, callType, contextType, contextId, metadata }: Call): CallOptions {
  const context = { contextType: contextType || undefined, contextId: contextId || undefined, metadata }
  if (group && direction === 'outgoing') return { group, role: peer.role, callType, ...context } as CallOptions
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
