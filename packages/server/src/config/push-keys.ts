/** Keys and credentials of push services, as settings hold them: how they are read, and how one is made. */
import { createECDH, createPrivateKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { isLoopbackHost } from './values.ts'

/** The key by which push services know this service (RFC 8292). */
export interface VapidKey {
  readonly key: KeyObject
  /** What pages subscribe with as `applicationServerKey`: base64url of the uncompressed point. */
  readonly publicKey: string
}

/** The 32 bytes of a P-256 private key, base64url; undefined if the text has no such key. */
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

/** What Firebase Cloud Messaging is asked with: of the JSON that the console gives for a service account. */
export interface FcmCredentials {
  readonly projectId: string
  readonly clientEmail: string
  readonly key: KeyObject
  readonly tokenUrl: string
}

/** Undefined where the text is no key of a service account. */
export function readFcmCredentials(text: string): FcmCredentials | undefined {
  try {
    const { project_id, client_email, private_key, token_uri = googleTokenUrl } = JSON.parse(text)
    if (typeof project_id !== 'string' || !/^[\w.:-]+$/.test(project_id) || typeof client_email !== 'string') return
    if (typeof private_key !== 'string' || typeof token_uri !== 'string') return
    const { protocol, hostname } = new URL(token_uri)
    if (protocol !== 'https:' && !(protocol === 'http:' && isLoopbackHost(hostname))) return
    const key = createPrivateKey(private_key)
    if (key.asymmetricKeyType !== 'rsa') return
    return { projectId: project_id, clientEmail: client_email, key, tokenUrl: token_uri }
  } catch {
    return undefined
  }
}

const googleTokenUrl = 'https://oauth2.googleapis.com/token'

/** The PEM of a .p8 file, as text of an environment variable too (`\n`); undefined if it is not valid. */
export function readApnsKey(text: string): KeyObject | undefined {
  try {
    const key = createPrivateKey(text.replaceAll('\\n', '\n'))
    return key.asymmetricKeyDetails?.namedCurve === 'prime256v1' ? key : undefined
  } catch {
    return undefined
  }
}
