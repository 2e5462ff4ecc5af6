import type { MaybePromise } from '../ports/maybe.ts'

/**
 * Which devices were woken for a ringing call, by whichever node: each is woken once, and hears when the ring is over [PUSH2].
 *
 * Guarantees: if several nodes add the same device at once, one of them gets it. A device belongs to the node that got it until
 * it is settled; if that node dies or leaves before, the next node that adds the device gets it. The devices of a call
 * are forgotten `wakesKeptMs` after its ring. Rejections are `StoreError`s.
 */
export interface Wakes {
  /** Notes devices of a call that rings until `ringEnd` (ms since the epoch); answers those that this node is to wake. */
  add(call: string, deviceIds: readonly string[], ringEnd: number): MaybePromise<readonly string[]>
  /** No node has to wake these devices any more: a push service took the push, or none serves them. */
  settle(call: string, deviceIds: readonly string[]): MaybePromise<void>
  /** The push failed: the device may be woken again. */
  remove(call: string, deviceId: string): MaybePromise<void>
  /** The devices of a call. Undefined if `add` was never called for it, as far as is known: another process may have woken some. */
  of(call: string): MaybePromise<readonly string[] | undefined>
}

/** The wakes of one process, with every answer at once. */
export type OwnWakes = {
  readonly [Method in keyof Wakes]: (...args: Parameters<Wakes[Method]>) => Awaited<ReturnType<Wakes[Method]>>
}

/** How long after a ring its devices are still known, in ms: a late end of the call has to reach them. */
export const wakesKeptMs = 60_000
