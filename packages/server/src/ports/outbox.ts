import type { CallRef } from '../call/call.ts'
import type { Step } from '../call/effects.ts'
import type { MaybePromise } from './maybe.ts'

/** For so long a step is left to the process that committed it, in ms. */
export const ownMs = 2_000
/**
 * How long claimed rows are left to the process that claimed them, in ms: longer than it takes to deliver a claim, or to
 * give up.
 */
export const leaseMs = 10_000

/** A row in the outbox, and the version of its call that it is about. */
export interface LeftRow {
  readonly row: number
  readonly version: number
}

/** A committed step that may not have reached everybody. */
export interface Left extends LeftRow {
  /** Undefined: its call is not stored any more. */
  readonly call: (CallRef & { readonly endedAt: number | null }) | undefined
}

/**
 * The steps of calls that may not have reached everybody.
 *
 * Guarantees of every adapter:
 * - A step that `CallStore` writes has its row here in the same commit: both are there or neither, also after `kill -9`.
 * - A row stays until it is removed. If a process dies on the way, with a claim or without one, others find its rows.
 * - Rows are found by looking for rows, never from where the last look ended: none is passed over, however late its
 *   commit becomes visible.
 * - Of one call rows are claimed in the order of versions: none while an older one is its own process' or somebody else's.
 *   Two that claim at once never get the same row. There is no order between calls.
 * - Delivery is at least once: a row may be claimed although its step has reached everybody.
 * - Rejections are `StoreError`s.
 */
export interface Outbox {
  /** The row of a step that this process has committed, as `CallStore` answered it; undefined: not known here. */
  rowOf(step: Step): number | undefined
  /** The rows of a call that are left, claimed or not; oldest version first. None: every version has reached everybody. */
  leftOf(ref: CallRef): MaybePromise<readonly LeftRow[]>
  /** The step has reached everybody. Rows that are gone already do not matter. */
  remove(rows: readonly number[]): MaybePromise<void>
  /**
   * Takes at most `limit` rows, the oldest first: rows that the process that committed them has left for `ownMs`, or a
   * claim for `leaseMs`. At a start of a store that only one process writes: all rows.
   */
  claim(limit: number): MaybePromise<readonly Left[]>
  /** Gives claimed rows back: any process may take them after `afterMs`. */
  release(rows: readonly number[], afterMs: number): MaybePromise<void>
  /** When the oldest step that is left was made, in ms since the epoch, on the calls' clock; undefined: none is left. */
  oldest(): MaybePromise<number | undefined>
}
