import { createHash } from 'node:crypto'
import { type Participant, participantKey } from '../call/call.ts'
import type { MaybePromise } from './maybe.ts'

/** Of somebody: whether a node has a socket of him from now on, or has none any more. */
export interface Coming {
  readonly participant: Participant
  readonly comes: boolean
}

/** Names a participant in what waits for an endpoint, and says nothing of it. */
export function subjectOf(participant: Participant): string {
  return createHash('sha256').update(participantKey(participant)).digest('base64url')
}

/** The most that are written at once. */
export const mostComing = 200

/**
 * The participants who are connected, and the run of a node for each, as endpoints have heard [HOOK2].
 *
 * Guarantees of every adapter:
 * - The first row of a participant and `participant.online`, and the removal of the last one and `participant.offline`, are
 *   one commit: both are there or neither. So of several nodes one tells, and none tells twice.
 * - They are written for every endpoint that `WebhookStore.refresh` has answered last, that is enabled and names the type; an
 *   endpoint hears of one participant in order.
 * - What is written again changes nothing.
 * - Rejections are `StoreError`s.
 */
export interface OnlineStore {
  /** `mostComing` at the most, each of them once; `at`: now, in ms since the epoch. */
  write(node: string, people: readonly Coming[], at: number): MaybePromise<void>
  /** Runs of nodes that have somebody, and how many. */
  nodes(): MaybePromise<ReadonlyMap<string, number>>
  /** Some of those that a run of a node has; `mostComing` at the most. */
  of(node: string): MaybePromise<readonly Participant[]>
  /** Forgets a participant, without an event [SRV2]. */
  erase(participant: Participant): MaybePromise<void>
}
