/**
 * Product credentials [TOK1, TOK4].
 *
 *   const authenticate = createProductAuth({ products, now, demo })
 *   authenticate(keyId, secret) → { ok: true, key } | { ok: false, code }
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import { andThen, type MaybePromise } from '../ports/maybe.ts'
import type { ProductKey, ProductStore } from '../ports/product-store.ts'

export type ProductAuthentication =
  | { readonly ok: true; readonly key: ProductKey }
  | { readonly ok: false; readonly code: 'PRODUCT_AUTH_INVALID_KEY' | 'PRODUCT_AUTH_INVALID_SECRET' }

export type ProductAuth = (keyId: string, secret: string) => MaybePromise<ProductAuthentication>

export interface ProductAuthOptions {
  readonly products: Pick<ProductStore, 'findKey'>
  readonly now: () => number
  /** RINGWIRE_DEMO: without it the key of the demo is refused, from wherever it came into the database. */
  readonly demo?: boolean
  /** Compares two hashes; tests count its calls. */
  readonly equal?: (a: Uint8Array, b: Uint8Array) => boolean
}

/** More than a key usually has at once: the current one, and rotated ones in their grace periods. */
const comparisons = 4
const nobody = new Uint8Array(32)

export function hashSecret(secret: string): Uint8Array {
  return createHash('sha256').update(secret, 'utf8').digest()
}

export function createProductAuth(options: ProductAuthOptions): ProductAuth {
  const { products, now, demo = false, equal = timingSafeEqual } = options

  /** Compares with every hash, and with as many of nobody as make the work the same for every key [TOK4]. */
  function matches(presented: Uint8Array, hashes: readonly Uint8Array[]): boolean {
    let found = false
    for (let i = 0; i < Math.max(comparisons, hashes.length); i++) {
      const hash = hashes[i]
      const usable = hash !== undefined && hash.length === presented.length
      const same = equal(presented, usable ? hash : nobody)
      if (same && usable) found = true
    }
    return found
  }

  return (keyId, secret) => {
    const presented = hashSecret(secret)
    return andThen(products.findKey(keyId, now()), (key): ProductAuthentication => {
      const right = matches(presented, key?.secretHashes ?? [])
      if (key === undefined || key.disabled || (key.origin === 'demo' && !demo)) {
        return { ok: false, code: 'PRODUCT_AUTH_INVALID_KEY' }
      }
      return right ? { ok: true, key } : { ok: false, code: 'PRODUCT_AUTH_INVALID_SECRET' }
    })
  }
}
