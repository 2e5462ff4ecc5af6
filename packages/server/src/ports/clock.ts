/** Milliseconds since the epoch, and the same for time that has to pass at its own pace whatever the wall clock does. */
export interface Clock {
  /** Wall clock. */
  now(): number
  /** Monotonic, from an arbitrary start. */
  monotonic(): number
}
