import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createECDH } from 'node:crypto'
import { readVapidKey } from '../../src/config/push-keys.ts'
import { createAddressGuard } from '../../src/outgoing/addresses.ts'
import { createPost, noConnection } from '../../src/outgoing/post.ts'
import type { PushMessage } from '../../src/push/service.ts'
import { createWebPush } from '../../src/push/web-push.ts'
import { encryptForSubscription, maxPlaintextBytes } from '../../src/push/web-push-encryption.ts'
import { startWebPushServer, status, type WebPushServer } from './web-push-server.ts'

const ecdh = createECDH('prime256v1')
ecdh.generateKeys()
/** 32 bytes, also where the first ones are 0. */
const privateKey = () =>
  Buffer.concat([Buffer.alloc(32), ecdh.getPrivateKey()])
    .subarray(-32)
    .toString('base64url')
const key = readVapidKey(privateKey())
if (key === undefined) throw new Error('no key')

let server: WebPushServer
beforeAll(async () => {
  server = await startWebPushServer(key.publicKey)
})
afterAll(() => server.stop())

const subject = 'mailto:calls@example.com'
const postTo = (trusted: string | null) =>
  createPost({ guard: createAddressGuard([]), trusted: trusted === null ? [] : [trusted] })
const service = (trusted: string | null = server.url) =>
  createWebPush({ key, subject, post: postTo(trusted), now: Date.now })
const callUuid = '0b9f7a4e-6a52-4f0e-9d3c-2f1b6c1d7e55'
const message = (payload: Record<string, unknown> = { type: 'call.wake', text: 'Zoë 😀' }): PushMessage => ({
  type: 'call.wake',
  callUuid,
  payload,
  expiresAt: Date.now() + 45_500,
})
const addressOf = ({ subscription: { endpoint, keys } }: ReturnType<WebPushServer['subscribe']>) =>
  ({ platform: 'webpush', endpoint, ...keys }) as const
const soonEnough = () => AbortSignal.timeout(20_000)

test('[PUSH2] RFC 8291 appendix A: the same bytes', () => {
  const from = (text: string) => Buffer.from(text, 'base64url')
  const body = encryptForSubscription(
    Buffer.from('When I grow up, I want to be a watermelon'),
    {
      p256dh: 'BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4',
      auth: 'BTBZMqHH6r4Tts7J_aSIgg',
    },
    { salt: from('DGv6ra1nlYgDCS1FRnbzlw'), privateKey: from('yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw') },
  )
  expect(Buffer.from(body).toString('base64url')).toBe(
    'DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN',
  )
})

test('[PUSH2] a push: decrypted by the browser alone, signed, urgent, collapsed by the call, as long as the ring', async () => {
  const browser = server.subscribe()
  expect(await service().send(addressOf(browser), message(), soonEnough())).toEqual({
    result: 'accepted',
    reason: '201',
  })
  const { headers, payload } = await browser.inbox.next()
  expect(payload).toEqual({ type: 'call.wake', text: 'Zoë 😀' })
  expect(headers).toMatchObject({
    urgency: 'high',
    topic: callUuid.replaceAll('-', ''),
    'content-encoding': 'aes128gcm',
  })
  expect(Number(headers.ttl)).toBeLessThanOrEqual(45)
  expect(Number(headers.ttl)).toBeGreaterThan(20)
})

test('[PUSH2] the largest that fits, and one byte more', async () => {
  const browser = server.subscribe()
  const sized = (bytes: number) => message({ x: 'x'.repeat(bytes - '{"x":""}'.length) })
  expect((await service().send(addressOf(browser), sized(maxPlaintextBytes), soonEnough())).result).toBe('accepted')
  expect((await browser.inbox.next()).bytes).toBe(4096)
  const over = await service().send(addressOf(browser), sized(maxPlaintextBytes + 1), soonEnough())
  expect(over.result).toBe('too_large')
})

test('[PUSH2] what a push service answers, and what is made of it', async () => {
  const address = addressOf(server.subscribe())
  const made = async (...[code, headers]: Parameters<typeof status>) => {
    server.answers(status(code, headers))
    return service().send(address, message(), soonEnough())
  }
  expect((await made(404)).result).toBe('gone')
  expect((await made(410)).result).toBe('gone')
  expect((await made(413)).result).toBe('too_large')
  expect(await made(429, { 'Retry-After': '7' })).toEqual({ result: 'limited', reason: '429', retryAfterMs: 7000 })
  const date = new Date(Date.now() + 60_000).toUTCString()
  expect((await made(429, { 'Retry-After': date })).retryAfterMs).toBeGreaterThan(10_000)
  expect((await made(503)).result).toBe('failed')
  expect((await made(403)).result).toBe('refused')
  // A redirect is not an answer, and is not followed.
  const before = server.requests.all.length
  expect((await made(307, { Location: `${server.url}/elsewhere` })).result).toBe('refused')
  expect(server.requests.all.length).toBe(before + 1)
})

test('[PUSH2] a push service that checks the key refuses another one, and is silent only as long as it may be', async () => {
  const browser = server.subscribe()
  ecdh.generateKeys()
  const other = readVapidKey(privateKey())
  if (other === undefined) throw new Error('no key')
  const wrong = createWebPush({ key: other, subject, post: postTo(server.url), now: Date.now })
  expect(await wrong.send(addressOf(browser), message(), soonEnough())).toEqual({ result: 'refused', reason: '403' })
  server.answers(null)
  // Its time is over when the request is there, however long that takes.
  const late = new AbortController()
  const silent = service().send(addressOf(browser), message(), late.signal)
  await server.requests.next(({ status }) => status === undefined)
  late.abort(new DOMException('The time is over.', 'TimeoutError'))
  expect(await silent).toEqual({ result: 'failed', reason: 'timeout' })
  expect((await service().send(addressOf(browser), message(), soonEnough())).result).toBe('accepted')
})

test('[PUSH2] no request goes to a private address, by no name, nor without TLS', async () => {
  const browser = server.subscribe()
  const before = server.requests.all.length
  const port = new URL(server.url).port
  const urls = [
    browser.subscription.endpoint,
    `https://127.0.0.1:${port}/`,
    `https://localhost:${port}/`,
    `https://[::1]:${port}/`,
    `https://[::ffff:127.0.0.1]:${port}/`,
    `https://2130706433:${port}/`,
    `https://0.0.0.0:${port}/`,
    'https://10.0.0.1/',
    'https://192.168.1.1/',
    'https://169.254.169.254/latest/meta-data/',
    'https://[fd00:ec2::254]/',
    'http://198.51.100.1/',
    'http://8.8.8.8/',
  ]
  for (const endpoint of urls) {
    const pushed = await service(null).send({ ...addressOf(browser), endpoint }, message(), soonEnough())
    expect([endpoint, pushed]).toEqual([endpoint, { result: 'failed', reason: noConnection }])
  }
  expect(server.requests.all.length).toBe(before)
})

test('[PUSH1] invalid keys are refused, and nothing is thrown', async () => {
  const { endpoint } = addressOf(server.subscribe())
  const off = Buffer.concat([Buffer.from([4]), Buffer.alloc(64, 1)]).toString('base64url')
  for (const p256dh of ['', 'AAAA', off]) {
    const address = { platform: 'webpush', endpoint, p256dh, auth: 'BTBZMqHH6r4Tts7J_aSIgg' } as const
    expect((await service().send(address, message(), soonEnough())).result).toBe('refused')
  }
})
