import type { MaybePromise } from '../ports/maybe.ts'

/** `count` in every window of `seconds`. */
export interface Budget {
  readonly count: number
  readonly seconds: number
}

/**
 * Counts what subjects do, in fixed windows: a subject's window begins with its first request and lasts as long as the
 * budget says, whatever wall clocks do meanwhile.
 *
 * Guarantees of every adapter: many requests at once never get more than the budget; a refused request does not count,
 * so that a refund really makes room; a refund never gives more than was taken; nothing rejects, and no request waits
 * longer than 250 ms for both counters that it may have to pass.
 */
export interface Counter {
  /** Counts one request and answers 0; or how long the window still lasts, in ms, where the budget is used up. */
  consume(subject: string): MaybePromise<number>
  /** Takes one request of this window back. */
  refund(subject: string): MaybePromise<void>
}

export interface Counters {
  /** A counter under a name of its own. */
  counter(name: string, budget: Budget): Counter
}
