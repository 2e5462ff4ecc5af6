import type { TakeableCall } from '@ringwire/client/take'
import type { TransferTarget } from '@ringwire/client/transfer'
import type { Call, CallClient, CallOptions } from '@ringwire/client/types'
import { endAndAnswer, holdAndAnswer, swap } from '@ringwire/client/waiting'
import { createLineArrivals } from './line-arrivals.ts'
import { createLineCall, type LineCall, rings } from './line-call.ts'
import { createLineDevices } from './line-devices.ts'
import type { LineOptions } from './line-options.ts'
import { createLineState, idle, type LineStates } from './line-state.ts'

/** The call that a page is in, with its media, and a second one that waits. It lives outside of components, so they may come and go. */
export function createLine(client: CallClient) {
  let options: LineOptions = {}
  const optionsNow = () => options
  const line = createLineState()
  const { get, change } = line
  const { open, ...devices } = createLineDevices(line, () => options.media?.media)
  const calls = createLineCall(client, line, open, optionsNow)
  const { join, take, wait } = calls
  let ask: (() => void) | undefined
  /** The user's choice: of a call to a group, the peer is the member that answered. */
  const wishes = new WeakMap<Call, CallOptions>()

  function call(wish: CallOptions, then: (call: Call) => void): Call {
    const begun = client.call(wish)
    wishes.set(begun, wish)
    then(begun)
    return begun
  }

  return {
    ...devices,
    ...createLineArrivals(client, line, calls, optionsNow),
    ...secondCallOf(line, calls),
    get,
    subscribe: line.subscribe,
    configure(next: LineOptions): void {
      options = next
    },
    /** Calls, unless there is a call already. */
    place: (wish: CallOptions): Call => get().call ?? call(wish, take),
    /** Calls whom the last call was with, or the same group again. */
    callAgain(): void {
      const { call: now, ended } = get()
      if (!now && ended) call(wishes.get(ended.call) ?? wishOf(ended.call), take)
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
    hangUp: (): void => (ask ? ask() : void get().call?.end()),
    /** While there is an `asks`, it comes in place of hanging up: the user loses more by that than the page shows. */
    guard(asks: (() => void) | undefined): void {
      ask = asks
    },
    /** Hands the other side of the call over to somebody. */
    transfer(target: TransferTarget): void {
      const { call } = get()
      if (call) void options.transfers?.transfer(call, target)
    },
    /** Calls somebody before a transfer: the call is put on hold for it. */
    consult(wish: CallOptions): void {
      const { call: first, other } = get()
      if (first && first.state.name !== 'ringing' && !other) call(wish, wait)
    },
    /** Takes the end of the last call away. */
    dismiss(): void {
      if (get().phase === 'over') change(idle)
    },
    /** A call at another device goes on here, unless there is a call already. */
    take: (takeable: Pick<TakeableCall, 'take'>): void => {
      if (!get().call) take(takeable.take())
    },
  }
}

/** What the user may do with a second call. */
function secondCallOf({ get }: LineStates, { exchange, join, connectBoth, isConsulted }: LineCall) {
  /** The second call comes to the front, and what is opened for it is what an answer opens. */
  function answerOther(answer: (first: Call, second: Call) => Promise<void>, video: boolean): void {
    const { call, other } = get()
    if (!call || !other || !rings(other.call)) return
    exchange()
    join(other.call, video)
    void answer(call, other.call)
  }

  return {
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
    /** The other sides of the two calls go on with each other, and both calls end here. */
    connectBoth,
    isConsulted,
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
