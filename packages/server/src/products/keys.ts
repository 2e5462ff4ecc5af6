/** Product keys as operators see and make them [TOK4]. */
import { randomBytes } from 'node:crypto'
import type { ProductKey } from '../ports/product-store.ts'

export const newSecret = () => randomBytes(32).toString('base64url')
export const newKeyId = () => `key_${randomBytes(8).toString('hex')}`

/** The longest time that an old secret stays valid, and the usual one, in seconds. */
export const longestGraceS = 90 * 86_400
export const usualGraceS = 86_400

export const productRule = '1 to 255 bytes of UTF-8 without control characters, and with no space at its ends'

/** Whether a product can be called so. */
export function isProductName(text: string): boolean {
  return (
    text !== '' &&
    text.trim() === text &&
    !/[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/u.test(text) &&
    Buffer.byteLength(text) <= 255
  )
}

/** Whether a person may give it another secret. The start of the service sets the secrets of all others. */
export function isRotatable({ origin }: Pick<ProductKey, 'origin'>): boolean {
  return origin === 'cli' || origin === 'page'
}

/** A key, without what is kept of its secrets. */
export function keyView(key: ProductKey) {
  return {
    key_id: key.keyId,
    products: key.products,
    state: key.disabled ? 'disabled' : 'enabled',
    origin: key.origin,
    created_at: new Date(key.createdAt).toISOString(),
    secrets: key.secretHashes.length,
  }
}
