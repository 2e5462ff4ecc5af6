import type { Call, CallRef, LiveCall, OverCall, Participant } from './call/call.ts'
import type { Step } from './call/effects.ts'
import type { MaybePromise } from './maybe.ts'

/**
 * What the store could not do. `unavailable`: nothing was written. `unknown`: it may or may not have been written
 * (the time limit passed, the connection was lost); a retry is harmless, because every write names the version it
 * builds on.
 */
export class StoreError extends Error {
  readonly kind: 'unavailable' | 'unknown'
  constructor(kind: 'unavailable' | 'unknown', message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'StoreError'
    this.kind = kind
  }
}

/** What a decision wants written: all steps or none. No steps: nothing changes. */
export interface Changes {
  readonly steps: readonly Step[]
}

/** What an invite needs to see: the call that already has the uuid, and all live calls of both participants. */
export interface InviteSituation {
  readonly sameUuid: Call | undefined
  readonly live: readonly LiveCall[]
}

/**
 * The calls and their events. The database is the truth.
 *
 * Guarantees of every adapter:
 * - A step is written with a guard: the stored version of its call is the step's version − 1 (no row at all for
 *   version 1). Where the guard of any step fails, none is written, and `decide` runs again on what is stored now.
 *   So two decisions on one version can never both be written.
 * - The call row and its `call_events` row are committed together, before the returned promise resolves.
 * - `decide` is pure and synchronous: it may run more than once.
 * - Transitions that arrive while a commit is in flight are committed together with the next one; a lone one is
 *   committed at once.
 * - Rejections are `StoreError`s; nothing is written where the kind is `unavailable`.
 */
export interface CallStore {
  /** Decides on one call (undefined where there is none) and writes what the decision says. */
  transition<D extends Changes>(ref: CallRef, decide: (call: Call | undefined) => D): MaybePromise<D>
  /** The same for an invite; between reading the situation and the commit no other invite of either participant runs. */
  invite<D extends Changes>(
    caller: Participant,
    callee: Participant,
    callUuid: string,
    decide: (situation: InviteSituation) => D,
  ): MaybePromise<D>
  load(ref: CallRef): MaybePromise<Call | undefined>
  /** Live calls in which the participant is the caller or the callee. */
  liveCallsOf(participant: Participant): MaybePromise<LiveCall[]>
  /** Every live call: read at start, and by the sweep. */
  liveCalls(): MaybePromise<LiveCall[]>
  /** Calls that ended at or after `since`, with their last step: their final notices may not have arrived. */
  overSince(since: number): MaybePromise<{ call: OverCall; step: Step }[]>
  history(query: HistoryQuery): MaybePromise<HistoryPage>
  /** Resolves when the store answers, rejects otherwise [HEALTH1]. */
  ping(): Promise<void>
  close(): Promise<void>
}

/** One page of a participant's calls, newest started_at first, tie by call_uuid descending [HIST1]. */
export interface HistoryQuery {
  readonly participant: Participant
  /** 1 to 100. */
  readonly limit: number
  /** Only calls after this one in that order. */
  readonly after: { readonly startedAt: number; readonly callUuid: string } | undefined
}

export interface HistoryPage {
  readonly calls: readonly Call[]
  readonly more: boolean
}

/** A product key as it is stored: never the secret itself [TOK4]. */
export interface ProductKey {
  readonly keyId: string
  /** SHA-256 of each secret that is valid now: the current one, and a rotated one until its grace period ends. */
  readonly secretHashes: readonly Uint8Array[]
  readonly products: readonly string[]
  readonly disabled: boolean
  /** Listed in RINGWIRE_BOOTSTRAP_KEYS, or made on the command line. */
  readonly origin: 'bootstrap' | 'cli' | 'demo'
  readonly createdAt: number
}

/** What a product may set for itself [INV5, RING1]. */
export interface ProductSettings {
  readonly busy: 'allow' | 'reject'
  /** Whether `call.invited` says `callee_busy` [INV2]. */
  readonly revealBusy: boolean
  /** 5 000 to 180 000, or null for the service's own. */
  readonly ringTimeoutMs: number | null
}

export const defaultProductSettings: ProductSettings = { busy: 'allow', revealBusy: false, ringTimeoutMs: null }

/**
 * Product keys and product settings. A change made by another process is seen by the next read.
 */
export interface ProductStore {
  findKey(keyId: string, now: number): MaybePromise<ProductKey | undefined>
  listKeys(now: number): MaybePromise<ProductKey[]>
  /** Creates the key, or replaces its secret, products and origin, and enables it. */
  putKey(
    key: { keyId: string; secretHash: Uint8Array; products: readonly string[]; origin: ProductKey['origin'] },
    now: number,
  ): MaybePromise<void>
  /** False where there is no such key. */
  setDisabled(keyId: string, disabled: boolean, now: number): MaybePromise<boolean>
  /** Sets a new secret; the old one stays valid until `oldValidUntil`. False where there is no such key. */
  rotateKey(keyId: string, secretHash: Uint8Array, oldValidUntil: number, now: number): MaybePromise<boolean>
  settings(product: string): MaybePromise<ProductSettings>
  listSettings(): MaybePromise<{ product: string; settings: ProductSettings }[]>
  putSettings(product: string, settings: ProductSettings): MaybePromise<void>
  close(): MaybePromise<void>
}

/** Milliseconds since the epoch, and the same for time that has to pass at its own pace whatever the wall clock does. */
export interface Clock {
  /** Wall clock. */
  now(): number
  /** Monotonic, from an arbitrary start. */
  monotonic(): number
}
