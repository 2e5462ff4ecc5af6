import type { CallRef, Participant } from '../call/call.ts'
import type { TimelineRow } from '../call/observed.ts'
import type { MaybePromise } from './maybe.ts'

/** How long a refused invite is kept, in ms: there may be no call whose retention would end it. */
export const refusedKeptMs = 30 * 86_400_000

/** Told how many entries a step has just removed: the steps before one that fails are not lost. */
export type OnForgotten = (count: number) => MaybePromise<unknown>

/** The position of a refused invite in the order of its page. */
export type RefusedAt = Pick<TimelineRow, 'at' | 'id'>

/**
 * What is known of calls beside their events. Entries are kept as long as their call, and removed with it.
 *
 * Guarantees: what was added can be added again, and is there once; of a call there are never many more than `mostEntries`,
 * and never more to read. What one process writes, the next read of any process sees. Rejections are `StoreError`s.
 */
export interface TimelineStore {
  /**
   * All of them or none; no two with the same call and id. A refused invite that names a call of others is left out [UUID1]. So is
   * an entry of a `member` who is not the callee, or not yet [GROUP1].
   */
  add(rows: readonly TimelineRow[]): MaybePromise<void>
  /** Of one call, the earliest first. */
  of(ref: CallRef): MaybePromise<readonly TimelineRow[]>
  /** Invites of a participant that were refused, the latest first, so many at the most, all of them before `before` [SRV2]. */
  refusedOf(participant: Participant, limit: number, before?: RefusedAt): MaybePromise<readonly TimelineRow[]>
  /**
   * Removes the entries of a participant in all calls; answers how many. To be done while the calls still name it [SRV2]:
   * what is added later goes when they are erased (`CallStore.erase`). It goes in steps, and says of each how much it
   * removed.
   */
  forgetParticipant(participant: Participant, onForgotten?: OnForgotten): Promise<number>
  /**
   * Removes some of the invites that were refused before `before`, in ms since the epoch; answers how many, 0 when none is
   * left [TRACE1].
   */
  pruneRefused(before: number): MaybePromise<number>
}
