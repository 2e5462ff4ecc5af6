import { createECDH, createPrivateKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { signJwt } from './jwt.ts'

/** The key by which push services know this service (RFC 8292). */
export interface VapidKey {
  readonly key: KeyObject
  /** What pages subscribe with as `applicationServerKey`: base64url of the uncompressed point. */
  readonly publicKey: string
}

/** The 32 bytes of a P-256 private key, base64url; undefined where they are none. */
export function readVapidKey(text: string): VapidKey | undefined {
  if (!/^[\w-]{43}=?$/.test(text)) return undefined
  try {
    const bytes = Buffer.from(text, 'base64url')
    const ecdh = createECDH('prime256v1')
    ecdh.setPrivateKey(bytes)
    const point = ecdh.getPublicKey()
    const key = createPrivateKey({
      format: 'jwk',
      key: {
        kty: 'EC',
        crv: 'P-256',
        d: bytes.toString('base64url'),
        x: point.subarray(1, 33).toString('base64url'),
        y: point.subarray(33).toString('base64url'),
      },
    })
    return { key, publicKey: point.toString('base64url') }
  } catch {
    return undefined
  }
}

/** A new pair, both base64url: the private key as `readVapidKey` takes it, 32 bytes also where the first ones are 0. */
export function makeVapidKey(): { readonly privateKey: string; readonly publicKey: string } {
  const {
    d = '',
    x = '',
    y = '',
  } = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({
    format: 'jwk',
  })
  const point = [Buffer.from([4]), Buffer.from(x, 'base64url'), Buffer.from(y, 'base64url')]
  return { privateKey: d, publicKey: Buffer.concat(point).toString('base64url') }
}

/** A day at the most (RFC 8292 section 2). In ms. */
const lifetimeMs = 12 * 3_600_000
const renewMs = 3_600_000
/** Endpoints come from strangers: so many origins are remembered. */
const mostOrigins = 100

/** The Authorization header for a push service, by its origin. */
export function createVapid({ key, publicKey }: VapidKey, subject: string, now: () => number) {
  const tokens = new Map<string, { token: string; expiresAt: number }>()
  return (origin: string): string => {
    const known = tokens.get(origin)
    if (known !== undefined && known.expiresAt - now() > renewMs) return headerOf(known.token, publicKey)
    const expiresAt = now() + lifetimeMs
    const token = signJwt('ES256', key, { aud: origin, exp: Math.floor(expiresAt / 1000), sub: subject })
    if (tokens.size >= mostOrigins) tokens.clear()
    tokens.set(origin, { token, expiresAt })
    return headerOf(token, publicKey)
  }
}

const headerOf = (token: string, publicKey: string) => `vapid t=${token}, k=${publicKey}`
