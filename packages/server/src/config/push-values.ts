import { type FcmCredentials, readApnsKey, readFcmCredentials, readVapidKey, type VapidKey } from './push-keys.ts'
import { isLoopbackHost, type ValueType } from './values.ts'

/** A value that is read by the part that uses it; what is wrong with it shows nothing of it. */
function readBy<T>(label: string, read: (text: string) => T | undefined, problem: string): ValueType<T> {
  return {
    label,
    parse(text) {
      const value = read(text)
      return value === undefined ? { ok: false, problem } : { ok: true, value }
    },
  }
}

export const vapidKey = (): ValueType<VapidKey> =>
  readBy(
    'base64url of 32 bytes',
    readVapidKey,
    'is no private key of P-256: 32 bytes, base64url (ringwire vapid makes one)',
  )

/** Credentials and tokens of devices go there: over TLS, or no further than this machine. */
export const pushOrigin = () =>
  readBy(
    'origin',
    (text) => {
      const url = URL.parse(text)
      if (url === null || url.href !== `${url.origin}/`) return undefined
      return url.protocol === 'https:' || (url.protocol === 'http:' && isLoopbackHost(url.hostname))
        ? url.origin
        : undefined
    },
    'must be an origin, as https://push.example.com; without TLS only on this machine',
  )

export const vapidSubject = () =>
  readBy(
    'mailto: or https: URL',
    (text) => (/^(mailto:[^\s@]+@[^\s@]+|https:\/\/\S+)$/.test(text) ? text : undefined),
    'must be mailto:… or https://…',
  )

export const fcmCredentials = (): ValueType<FcmCredentials> =>
  readBy(
    'JSON',
    readFcmCredentials,
    'is no key of a service account: JSON with project_id, client_email and private_key, and a token_uri over TLS, or on this machine',
  )

export const apnsKey = () => readBy('PEM', readApnsKey, 'is no key for APNs: a private key of P-256, PEM')
