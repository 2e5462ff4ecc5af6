import type { VapidKey } from '../config/push-keys.ts'
import type { Post } from '../outgoing/post.ts'
import type { PushAddress } from '../ports/devices.ts'
import { type Pushed, type PushMessage, type PushService, retryAfterOf, secondsLeft } from './service.ts'
import { createVapid } from './vapid.ts'
import { encryptForSubscription, maxPlaintextBytes } from './web-push-encryption.ts'

export interface WebPushOptions {
  readonly key: VapidKey
  /** Whom a push service may ask about what comes from here: a mailto: or https: URL (RFC 8292 section 2.1). */
  readonly subject: string
  /** Sends a request to a URL that a stranger gave. */
  readonly post: Post
  readonly now: () => number
}

type Subscription = Extract<PushAddress, { platform: 'webpush' }>

/** Web Push (RFC 8030), encrypted only for the subscription (RFC 8291), signed with VAPID (RFC 8292). */
export function createWebPush({ key, subject, post, now }: WebPushOptions): PushService<Subscription> {
  const authorize = createVapid(key, subject, now)
  return {
    async send({ endpoint, ...keys }, message, signal) {
      const text = Buffer.from(JSON.stringify(message.payload))
      if (text.length > maxPlaintextBytes) return { result: 'too_large', reason: `${text.length} bytes` }
      let body: Uint8Array
      try {
        body = encryptForSubscription(text, keys)
      } catch {
        return { result: 'refused', reason: 'the keys of the subscription are none' }
      }
      const headers = { ...headersOf(message, now()), Authorization: authorize(new URL(endpoint).origin) }
      const answer = await post({ url: endpoint, headers, body, signal })
      if (!answer.ok) return { result: 'failed', reason: answer.error }
      return { ...resultOf(answer.status), ...retryAfterOf(answer.retryAfter, now()) }
    },
    close() {},
  }
}

function headersOf(message: PushMessage, now: number): Record<string, string> {
  return {
    'Content-Type': 'application/octet-stream',
    'Content-Encoding': 'aes128gcm',
    TTL: String(secondsLeft(message, now)),
    Urgency: 'high',
    // A topic has 32 characters at the most, of the base64url alphabet (RFC 8030 section 5.4).
    Topic: message.callUuid.replaceAll('-', ''),
  }
}

function resultOf(status: number): Pushed {
  const reason = String(status)
  if (status >= 200 && status < 300) return { result: 'accepted', reason }
  if (status === 404 || status === 410) return { result: 'gone', reason }
  if (status === 413) return { result: 'too_large', reason }
  if (status === 429) return { result: 'limited', reason }
  return { result: status >= 500 ? 'failed' : 'refused', reason }
}
