import type { Call, CallClient, Unsubscribe } from '@ringwire/client/types'
import { type LineCall, rings } from './line-call.ts'
import type { LineOptions } from './line-options.ts'
import type { LineStates } from './line-state.ts'

/** Calls that come to the page, or were there before it. */
export function createLineArrivals(
  client: CallClient,
  { get }: LineStates,
  { ring, take, wait, move }: LineCall,
  options: () => LineOptions,
) {
  /** Providers that are mounted now, and how the line stops listening for them. */
  let attached = 0
  let ends: Unsubscribe[] = []

  /** A user who talks to somebody before a transfer has two calls as well. */
  const hasTwo = () => options().busy === 'wait' || options().transfers !== undefined

  function came(call: Call): void {
    const { busy } = options()
    if (!get().call) ring(call)
    else if (busy === 'wait' && !get().other) wait(call)
    else if (busy !== 'hold') void call.reject('busy')
  }

  /** The new call of a transfer, which goes on here once the target answers. */
  function isPromised(call: Call): boolean {
    const isMine = call.direction === 'outgoing' && call.state.name === 'ringing'
    return isMine && options().transfers?.origin(call) !== undefined
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

  /** A call from before that is not yet on this page. */
  function resume(call: Call): void {
    if (isPromised(call)) return
    if (!get().call) take(call)
    else if (hasTwo() && !get().other) wait(call)
  }

  return {
    /** From now on it takes the calls that come, once each, however many providers attach it. */
    attach(): Unsubscribe {
      if (attached++ === 0) {
        const moved = options().transfers?.on('moved', ({ from, call }) => move(from, call))
        ends = [client.on('incoming', came), client.on('restored', resume), ...(moved ? [moved] : [])]
      }
      adopt()
      return () => {
        if (--attached === 0) for (const end of ends.splice(0)) end()
      }
    },
    resume,
  }
}
