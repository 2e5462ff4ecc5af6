import type { MaybePromise } from './maybe.ts'

/** A product key as it is stored: never the secret itself [TOK4]. */
export interface ProductKey {
  readonly keyId: string
  /** SHA-256 of each secret that is valid now: the current one, and a rotated one until its grace period ends. */
  readonly secretHashes: readonly Uint8Array[]
  readonly products: readonly string[]
  readonly disabled: boolean
  /** The origin of the key: RINGWIRE_BOOTSTRAP_KEYS, a command, the operator's page, or the demo. */
  readonly origin: 'bootstrap' | 'cli' | 'page' | 'demo'
  readonly createdAt: number
}

/** The settings of a product [HOOK5, INV5, PRES1, PRIV1, RING1, TAKE1]. */
export interface ProductSettings {
  readonly busy: 'allow' | 'reject'
  /** Whether `call.invited` says `callee_busy` [INV2]. */
  readonly revealBusy: boolean
  /** 5 000 to 180 000, or null for the service's own. */
  readonly ringTimeoutMs: number | null
  /** `relay`: media only goes through a TURN server, and peers never learn each other's address [PRIV1]. */
  readonly media: 'all' | 'relay'
  /** `peers`: participants see whether those are there whom their token allows them to call [PRES1]. */
  readonly presence: 'off' | 'peers'
  /** Whether devices of a participant may take answered calls from each other [TAKE1]. */
  readonly take: boolean
  /** The URL that decides on each invite before it rings; null: none [HOOK5]. */
  readonly inviteUrl: string | null
  /** The secret that signs the questions, `whsec_…`; null if no backend decides. */
  readonly inviteSecret: string | null
  /** What becomes of an invite where no valid answer comes. */
  readonly inviteFailure: 'allow' | 'refuse'
}

export const defaultProductSettings: ProductSettings = {
  busy: 'allow',
  revealBusy: false,
  ringTimeoutMs: null,
  media: 'all',
  presence: 'off',
  take: true,
  inviteUrl: null,
  inviteSecret: null,
  inviteFailure: 'refuse',
}

/** What every process knows of all products and keys, because what goes by it waits for no store. */
export interface Policies {
  /** Products whose media only goes through a TURN server [PRIV1]. */
  readonly relayOnly: readonly string[]
  /** Products whose participants see whether their peers are there [PRES1]. */
  readonly presence: readonly string[]
  /** Products in which no device takes an answered call from another one [TAKE1]. */
  readonly fixed: readonly string[]
  /** Keys that are disabled now [KEY1]. */
  readonly disabledKeys: readonly string[]
}

/** Tokens of a participant that were issued before an instant do not count [SRV2]. */
export interface Revocation {
  /** A hash of it. */
  readonly participant: string
  readonly before: number
  /** When it was last written, by a clock of the store that never goes back. */
  readonly changedAt: number
}

/** How long a revocation is kept after its instant, in ms: no token lasts longer than a day, and clocks differ [SRV2]. */
export const revocationKeptMs = 2 * 86_400_000
/**
 * How far ahead tokens can be revoked, in ms: about ten years [SRV2]. It cannot be undone, and every process knows all
 * that are kept: an error shows a mistyped year.
 */
export const longestRevocationMs = 3_653 * 86_400_000
/** Who looks for revocations again looks so far back, in ms: what is committed late was begun earlier. */
export const revocationOverlapMs = 10_000

export interface KeyStore {
  findKey(keyId: string, now: number): MaybePromise<ProductKey | undefined>
  listKeys(now: number): MaybePromise<ProductKey[]>
  /**
   * Creates the key, or replaces its secret, products and origin, and enables it. Secrets that it had stay valid until
   * `oldValidUntil`, or not at all.
   */
  putKey(
    key: { keyId: string; secretHash: Uint8Array; products: readonly string[]; origin: ProductKey['origin'] },
    now: number,
    oldValidUntil?: number,
  ): MaybePromise<void>
  /** False if there is no such key. */
  setDisabled(keyId: string, disabled: boolean, now: number): MaybePromise<boolean>
  /** Sets a new secret; the old one stays valid until `oldValidUntil`. False if there is no such key. */
  rotateKey(keyId: string, secretHash: Uint8Array, oldValidUntil: number, now: number): MaybePromise<boolean>
}

export interface SettingsStore {
  settings(product: string): MaybePromise<ProductSettings>
  listSettings(): MaybePromise<{ product: string; settings: ProductSettings }[]>
  /**
   * Changes what is given, and answers all. An `inviteSecret` is taken where the product has none: one that is there stays,
   * until null removes it.
   */
  changeSettings(product: string, changes: Partial<ProductSettings>): Promise<ProductSettings>
  policies(): MaybePromise<Policies>
}

/** Tokens that were taken back [SRV2]. */
export interface RevocationStore {
  /** Takes tokens back; an earlier instant than the one that is known changes nothing but when it was written. */
  revoke(participant: string, before: number, now: number): MaybePromise<void>
  /** What was written at an instant or later. */
  revocations(since: number): MaybePromise<readonly Revocation[]>
  /**
   * Removes some of those of tokens that were issued before an instant, but for the one that was written last: what is written
   * after it is found after it, also by a clock that went back. Answers how many, 0 when none is left.
   */
  pruneRevocations(before: number): MaybePromise<number>
}

/** A change made by another process is seen by the next read. */
export interface ProductStore extends KeyStore, SettingsStore, RevocationStore {
  close(): MaybePromise<void>
}
