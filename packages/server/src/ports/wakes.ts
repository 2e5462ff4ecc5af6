import type { MaybePromise } from './maybe.ts'

/**
 * Which devices were woken for a ringing call, by whichever node: each is woken once, and hears when the ring is over [PUSH2].
 *
 * Guarantees: of several nodes that add the same device at once, one is answered that it is new. What is known of a call is
 * forgotten some time after its ring. Rejections are `StoreError`s.
 */
export interface Wakes {
  /** Notes devices of a call that rings until `ringEnd` (ms since the epoch); answers those that were not noted yet. */
  add(call: string, deviceIds: readonly string[], ringEnd: number): MaybePromise<readonly string[]>
  /** The push failed: the device may be woken again. */
  remove(call: string, deviceId: string): MaybePromise<void>
  /** The devices of a call. Undefined if nothing was ever added for it here: another process may have known of it. */
  of(call: string): MaybePromise<readonly string[] | undefined>
}

/** The wakes of one process, with every answer at once. */
export type OwnWakes = {
  readonly [Method in keyof Wakes]: (...args: Parameters<Wakes[Method]>) => Awaited<ReturnType<Wakes[Method]>>
}

/** So long after a ring its devices are still known, in ms: whoever ends it late tells them. */
export const wakesKeptMs = 60_000
