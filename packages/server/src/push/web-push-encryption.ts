import { createCipheriv, createECDH, createHmac, randomBytes } from 'node:crypto'

/** The keys of a subscription, base64url. */
export interface SubscriptionKeys {
  readonly p256dh: string
  readonly auth: string
}

/** One record holds all of it: what fits into a body of 4096 bytes, which every push service takes (RFC 8030 section 7.2). */
const recordSize = 4096
const headerBytes = 16 + 4 + 1 + 65
const tagBytes = 16
export const maxPlaintextBytes = recordSize - headerBytes - tagBytes - 1

/**
 * Encrypts for one subscription (RFC 8291) as one record of aes128gcm (RFC 8188). Throws if the keys are not valid. The
 * key pair and the salt are new each time; tests give those of the examples in the RFC.
 */
export function encryptForSubscription(
  plaintext: Uint8Array,
  keys: SubscriptionKeys,
  { salt = randomBytes(16), privateKey }: { salt?: Uint8Array; privateKey?: Uint8Array } = {},
): Uint8Array {
  const ours = createECDH('prime256v1')
  if (privateKey === undefined) ours.generateKeys()
  else ours.setPrivateKey(privateKey)
  const ourKey = ours.getPublicKey()
  const theirKey = Buffer.from(keys.p256dh, 'base64url')

  // RFC 8291 section 3.4, then RFC 8188 sections 2.2 and 2.3. Each HKDF gives no more than one block.
  const combined = hmac(Buffer.from(keys.auth, 'base64url'), ours.computeSecret(theirKey))
  const material = hmac(combined, Buffer.from('WebPush: info\0'), theirKey, ourKey, one)
  const pseudorandom = hmac(salt, material)
  const key = hmac(pseudorandom, Buffer.from('Content-Encoding: aes128gcm\0'), one).subarray(0, 16)
  const nonce = hmac(pseudorandom, Buffer.from('Content-Encoding: nonce\0'), one).subarray(0, 12)

  const cipher = createCipheriv('aes-128-gcm', key, nonce)
  const size = Buffer.alloc(4)
  size.writeUInt32BE(recordSize)
  return Buffer.concat([
    ...[salt, size, Buffer.from([ourKey.length]), ourKey],
    cipher.update(plaintext),
    // 2: the last record, and no padding.
    cipher.update(Buffer.from([2])),
    cipher.final(),
    cipher.getAuthTag(),
  ])
}

const one = Buffer.from([1])

function hmac(key: Uint8Array, ...parts: Uint8Array[]): Buffer {
  const mac = createHmac('sha256', key)
  for (const part of parts) mac.update(part)
  return mac.digest()
}
