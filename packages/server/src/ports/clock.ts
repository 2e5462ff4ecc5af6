/** Milliseconds since the epoch, and the same for time that has to pass at its own pace whatever the wall clock does. */
export interface Clock {
  /** Wall clock. */
  now(): number
  /** Monotonic, from an arbitrary start. */
  monotonic(): number
}

/**
 * What a wall clock has jumped in all, as everybody who goes by it has agreed. So what one process wrote before a jump, another
 * one reads as it was meant after it [END3].
 */
export interface Jumps {
  /** Names the clock: what another one jumped says nothing about the instants of this one. */
  readonly of: string
  /** In ms; positive where it was put forward. */
  sum(): number
  /**
   * The clock jumped by `ms` after its sum was `known`. Adds nothing if another process has added that jump meanwhile. Rejects
   * with a `StoreError`.
   */
  add(ms: number, known: number): Promise<void>
}

/** Takes a timer back; does nothing once it has run. */
export type Cancel = () => void

/** Time that passes. Waiting timers never keep the process alive. */
export interface Timers extends Pick<Clock, 'monotonic'> {
  /** Calls once, after `ms` milliseconds. */
  after(ms: number, what: () => void): Cancel
  /** Calls again and again, every `ms` milliseconds. */
  every(ms: number, what: () => void): Cancel
  /** Calls at the end of this turn of the event loop. */
  turn(what: () => void): void
  sleep(ms: number): Promise<void>
}
