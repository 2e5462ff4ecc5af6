import { createPublicKey, timingSafeEqual } from 'node:crypto'
import { createSigner, createVerifier } from 'fast-jwt'
import { algorithmOf, type TokenKey } from '../config/signing-key.ts'

/** The keys of JWTs that this service makes for itself: the first signs, all verify [TOK2]. */
export interface KeyRing {
  sign(payload: object): string
  /** The payload of an authentic token; undefined where none of the keys signed it. Its claims are not looked at. */
  read(token: string): unknown
}

export function createKeyRing(secrets: readonly { readonly kid: string; readonly key: TokenKey }[]): KeyRing {
  const [first] = secrets
  if (first === undefined) throw new Error('createKeyRing needs at least one secret')
  const verifiers = new Map(secrets.map(({ kid, key }) => [kid, createKeyVerifier(key)] as const))
  // Tokens of ours that one key signed begin alike, and then nothing needs to be decoded to find that key.
  const byHeader = new Map(
    secrets.map(({ kid, key }) => {
      const header = headerOf(kid, key)
      return [header, key instanceof Uint8Array ? createSecretReader(key, header) : verifiers.get(kid)] as const
    }),
  )
  return {
    sign: signerOf(first.kid, first.key),
    read(token) {
      const header = token.slice(0, token.indexOf('.'))
      const verifier = byHeader.get(header) ?? verifiers.get(kidOf(header) ?? '')
      try {
        return verifier?.(token)
      } catch {
        return undefined
      }
    },
  }
}

/**
 * One verifier per key, which knows no algorithm but that of its key. The reader checks the claims: the library fixes its
 * clock when the verifier is made, it cannot say of one token that it is expired and otherwise good, and its own checks
 * of claims cost a third of a verification.
 */
function createKeyVerifier(key: TokenKey): (token: string) => unknown {
  return createVerifier({
    algorithms: [algorithmOf(key)],
    key: key instanceof Uint8Array ? Buffer.from(key) : createPublicKey(key).export({ format: 'pem', type: 'spki' }),
    ignoreExpiration: true,
    ignoreNotBefore: true,
  })
}

const base64url = /^[A-Za-z0-9_-]+$/

/** Of a token's signature as text. */
const signatureLength = 43
/** A longer payload is rare, and gets memory of its own. In bytes. */
const usualPayloadBytes = 8 * 1024

/**
 * Reads tokens of ours that this secret signed. Their header is known, so there is no algorithm to choose and nothing of it to
 * decode: that takes a third of the library's time. Each connection waits for it, and so its bytes are written into the same
 * memory each time: to make buffers costs as much as the signature.
 */
function createSecretReader(secret: Uint8Array, header: string): (token: string) => unknown {
  const [given, expected] = [Buffer.alloc(signatureLength), Buffer.alloc(signatureLength)]
  const usual = Buffer.alloc(usualPayloadBytes)

  return (token) => {
    const end = token.lastIndexOf('.')
    const [body, signature] = [token.slice(header.length + 1, end), token.slice(end + 1)]
    if (end <= header.length || !base64url.test(body)) return undefined
    if (signature.length !== signatureLength || !base64url.test(signature)) return undefined
    // As texts: of several that decode to the same bytes only one was signed.
    expected.write(new Bun.CryptoHasher('sha256', secret).update(token.slice(0, end)).digest('base64url'))
    given.write(signature)
    if (!timingSafeEqual(given, expected)) return undefined
    const bytes = body.length <= usual.length ? usual : Buffer.alloc(body.length)
    const payload: unknown = JSON.parse(bytes.toString('utf8', 0, bytes.write(body, 'base64url')))
    return typeof payload === 'object' && payload !== null && !Array.isArray(payload) ? payload : undefined
  }
}

function signerOf(kid: string, key: TokenKey): (payload: object) => string {
  const taken = key instanceof Uint8Array ? Buffer.from(key) : key.export({ format: 'pem', type: 'pkcs8' })
  return createSigner({ algorithm: algorithmOf(key), key: taken, kid })
}

function headerOf(kid: string, key: TokenKey): string {
  const token = signerOf(kid, key)({})
  return token.slice(0, token.indexOf('.'))
}

/** The key's name in a token's header; nothing is believed before that key has verified the token. */
function kidOf(header: string): string | undefined {
  if (header === '' || header.length > 512) return undefined
  try {
    const members: unknown = JSON.parse(Buffer.from(header, 'base64url').toString())
    const kid = (members as { kid?: unknown } | null)?.kid
    return typeof kid === 'string' ? kid : undefined
  } catch {
    return undefined
  }
}
