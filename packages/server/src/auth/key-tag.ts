import { createHash } from 'node:crypto'

/**
 * What a session token says of the product key that it was issued with: enough to know it again when the key is disabled
 * [KEY1], and no more. 16 characters, so that no key ID makes a token too long [TOK1].
 */
export function keyTag(keyId: string): string {
  return createHash('sha256').update(keyId).digest('base64url').slice(0, 16)
}
