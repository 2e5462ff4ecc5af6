import type { MaybePromise } from './maybe.ts'

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
  /**
   * Creates the key, or replaces its secret, products and origin, and enables it. Secrets that it had stay valid until
   * `oldValidUntil`, or not at all.
   */
  putKey(
    key: { keyId: string; secretHash: Uint8Array; products: readonly string[]; origin: ProductKey['origin'] },
    now: number,
    oldValidUntil?: number,
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
