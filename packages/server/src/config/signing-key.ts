/**
 * Keys that sign session tokens, and whose signatures others can check: Ed25519 (EdDSA, RFC 8037) and P-256 (ES256, RFC
 * 7518). A secret signs with HS256.
 *
 *   algorithmOf(key)          → the one algorithm that a key signs with
 *   readSigningKey(pem)       → the private key, or what is wrong with it; no problem shows a part of it
 *   makeSigningKey(algorithm) → a new private key, PEM
 *   publicJwks(keys)          → what `/.well-known/jwks.json` says of them
 */
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import type { JsonWebKey, JsonWebKeySet } from '@ringwire/protocol/rest'

export const signingAlgorithms = ['EdDSA', 'ES256'] as const
export type SigningAlgorithm = (typeof signingAlgorithms)[number]

/** The bytes of a secret, or a private key. */
export type TokenKey = Uint8Array | KeyObject

/** It is the key's, whatever a token says. */
export function algorithmOf(key: TokenKey): 'HS256' | SigningAlgorithm {
  if (key instanceof Uint8Array) return 'HS256'
  const algorithm = signingAlgorithmOf(key)
  if (algorithm === undefined) throw new Error(`a key of ${kindOf(key)} signs no token`)
  return algorithm
}

function signingAlgorithmOf({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject): SigningAlgorithm | undefined {
  if (asymmetricKeyType === 'ed25519') return 'EdDSA'
  return asymmetricKeyType === 'ec' && asymmetricKeyDetails?.namedCurve === 'prime256v1' ? 'ES256' : undefined
}

const kindOf = ({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject) =>
  asymmetricKeyDetails?.namedCurve ?? asymmetricKeyType

export type ReadSigningKey =
  | { readonly ok: true; readonly key: KeyObject }
  | { readonly ok: false; readonly problem: string }

const wanted = 'wanted is Ed25519 or P-256'

export function readSigningKey(pem: string): ReadSigningKey {
  const bad = (problem: string) => ({ ok: false, problem }) as const
  if (/^-----BEGIN CERTIFICATE-----/m.test(pem)) return bad('holds a certificate; the private key is needed')
  if (/^-----BEGIN (?:\w+ )?PUBLIC KEY-----/m.test(pem)) return bad('holds a public key; the private one is needed')
  if (!/^-----BEGIN (?:\w+ )?PRIVATE KEY-----/m.test(pem)) return bad('holds no private key (PEM)')
  try {
    const key = createPrivateKey(pem)
    return signingAlgorithmOf(key) === undefined ? bad(`holds a key of ${kindOf(key)}; ${wanted}`) : { ok: true, key }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ERR_MISSING_PASSPHRASE') return bad('holds an encrypted key; it is read without a passphrase')
    if (code === 'ERR_OSSL_EVP_UNSUPPORTED_ALGORITHM') return bad(`holds a key of another kind; ${wanted}`)
    return bad('holds no private key that can be read (PEM)')
  }
}

export function makeSigningKey(algorithm: SigningAlgorithm): string {
  const { privateKey } =
    algorithm === 'EdDSA' ? generateKeyPairSync('ed25519') : generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return privateKey.export({ format: 'pem', type: 'pkcs8' }) as string
}

/** Only public members, each of them named here (RFC 7517 section 4). A secret has none. */
export function publicJwks(keys: readonly { readonly kid: string; readonly key: TokenKey }[]): JsonWebKeySet {
  return { keys: keys.flatMap(({ kid, key }) => (key instanceof Uint8Array ? [] : [publicJwk(kid, key)])) }
}

function publicJwk(kid: string, key: KeyObject): JsonWebKey {
  const { x = '', y = '' } = createPublicKey(key).export({ format: 'jwk' })
  return algorithmOf(key) === 'EdDSA'
    ? { kty: 'OKP', crv: 'Ed25519', x, kid, alg: 'EdDSA', use: 'sig' }
    : { kty: 'EC', crv: 'P-256', x, y, kid, alg: 'ES256', use: 'sig' }
}
