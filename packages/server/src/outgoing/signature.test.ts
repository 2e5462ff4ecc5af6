import { expect, test } from 'bun:test'
import { Webhook } from 'standardwebhooks'
import { newWebhookSecret, signWebhook } from './signature.ts'

const headersOf = (id: string, timestamp: number, signature: string) => ({
  'webhook-id': id,
  'webhook-timestamp': String(timestamp),
  'webhook-signature': signature,
})

test('[HOOK2] the library of Standard Webhooks takes the signature, with either of two secrets', () => {
  const [secret, old, other] = [newWebhookSecret(), newWebhookSecret(), newWebhookSecret()]
  const id = 'msg_1'
  const timestamp = Math.floor(Date.now() / 1_000)
  const body = '{"type":"call.ended","data":{"name":"Żółć 🙂"}}'
  const headers = headersOf(id, timestamp, signWebhook({ id, timestamp, body }, [secret, old]))
  for (const known of [secret, old]) expect(new Webhook(known).verify(body, headers)).toEqual(JSON.parse(body))
  expect(() => new Webhook(other).verify(body, headers)).toThrow()
  expect(() => new Webhook(secret).verify(`${body} `, headers)).toThrow()
  expect(() => new Webhook(secret).verify(body, { ...headers, 'webhook-id': 'msg_2' })).toThrow()
})

test('[HOOK1] a secret is whsec_ and 24 random bytes', () => {
  const secrets = Array.from({ length: 100 }, newWebhookSecret)
  expect(new Set(secrets).size).toBe(100)
  for (const secret of secrets) {
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]+$/)
    expect(Buffer.from(secret.slice(6), 'base64').length).toBe(24)
  }
})
