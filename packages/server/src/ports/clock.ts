/** Milliseconds since the epoch, and the same for time that has to pass at its own pace whatever the wall clock does. */
export interface Clock {
  /** Wall clock. */
  now(): number
  /** Monotonic, from an arbitrary start. */
  monotonic(): number
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
