import type { MaybePromise } from '../ports/maybe.ts'

/** How much an erasure has removed or blanked [SRV2]. */
export interface ErasedCounts {
  readonly devices: number
  readonly timelineEntries: number
  readonly calls: number
  readonly webhookDeliveries: number
}

export const noneErased: ErasedCounts = { devices: 0, timelineEntries: 0, calls: 0, webhookDeliveries: 0 }

/** How long counts are kept that nobody has asked for, in ms. */
export const countsKeptMs = 30 * 86_400_000

/**
 * Counts of erasures whose answer nobody has heard yet: an erasure may take longer than a request, be interrupted, or go on at
 * another node. A participant is named by a hash. Rejections are `StoreError`s.
 */
export interface Erasures {
  /** Adds to the counts of a participant. */
  add(participant: string, counts: ErasedCounts): MaybePromise<void>
  counted(participant: string): MaybePromise<ErasedCounts>
  /** The client has got the counts. Some that are old go, too. */
  forget(participant: string): MaybePromise<void>
}
