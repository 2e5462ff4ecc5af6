import { expect, test } from 'bun:test'
import { until } from '@ringwire/testkit/patience'
import type { Device } from '../ports/devices.ts'
import { createSender, type SentResult } from './sender.ts'
import type { Pushed, PushMessage } from './service.ts'

const device: Device = {
  participant: { product: 'shop', role: 'agent', userId: 'ben' },
  deviceId: 'phone',
  address: { platform: 'fcm', token: 'x' },
  registeredAt: 0,
}
const message = (forMs = 60_000): PushMessage => ({
  type: 'call.wake',
  callUuid: 'x',
  payload: {},
  expiresAt: Date.now() + forMs,
})
const accepted: Pushed = { result: 'accepted', reason: '200' }

/** A push service that answers as the test says; the requests and their results. */
function setUp(
  answer: (n: number, signal: AbortSignal) => Promise<Pushed>,
  { attemptMs = 5_000, now = Date.now }: { attemptMs?: number; now?: () => number } = {},
) {
  const sent: SentResult[] = []
  const repeated: string[] = []
  const forgotten: Device['address'][] = []
  let asked = 0
  const sender = createSender({
    services: { fcm: { send: (_, __, signal) => answer(++asked, signal), close() {} } },
    devices: {
      forget(_, __, address) {
        if (address !== undefined) forgotten.push(address)
        return true
      },
    },
    now,
    onSent: (_, result) => void sent.push(result),
    onRepeated: (platform) => void repeated.push(platform),
    onError(error) {
      throw error
    },
    attemptMs,
  })
  return { sender, sent, repeated, forgotten, asked: () => asked }
}

test('[PUSH2] what failed is tried again while the call rings, and told once', async () => {
  const { sender, sent, repeated, asked } = setUp(async (n) => (n < 3 ? { result: 'failed', reason: '503' } : accepted))
  expect(await sender.send(device, message())).toBe('accepted')
  expect([asked(), sent, repeated]).toEqual([3, ['accepted'], ['fcm', 'fcm']])
})

test('[PUSH2] [MET1] a push service that is overloaded is counted while its pushes wait for their next attempt', async () => {
  const { sender, sent, repeated } = setUp(async () => ({ ...failed, retryAfterMs: 30_000 }))
  const sending = sender.send(device, message())
  await until('the push is counted', () => repeated.length > 0)
  expect([repeated, sent]).toEqual([['fcm'], []])
  sender.close()
  expect(await sending).toBe('expired')
})

test('[PUSH2] [MET1] an attempt that is given up with its call is not made again, nor counted so', async () => {
  const giveUp = new AbortController()
  const { sender, sent, repeated } = setUp(async () => {
    giveUp.abort()
    return failed
  })
  expect(await sender.send(device, message(), giveUp.signal)).toBe('expired')
  expect([sent, repeated]).toEqual([['expired'], []])
})

test('[PUSH2] not beyond the ring: a Retry-After that ends after it is the end', async () => {
  const late: Pushed = { result: 'limited', reason: '429', retryAfterMs: 60_000 }
  const { sender, sent, asked } = setUp(async () => late)
  expect(await sender.send(device, message(45_000))).toBe('limited')
  expect(await sender.send(device, message(0))).toBe('expired')
  expect([asked(), sent]).toEqual([1, ['limited', 'expired']])
})

test('[PUSH2] the pauses grow also where a push service says that it may be asked at once', async () => {
  let now = 0
  const answer = async (n: number): Promise<Pushed> => {
    // The pauses are over in time, however busy the machine is.
    now = 500 * (n - 1)
    return { result: 'limited', reason: '429', retryAfterMs: 0 }
  }
  const { sender, asked } = setUp(answer, { now: () => now })
  // At the beginning and after half a second; the next one would be a second later.
  expect(await sender.send(device, { ...message(), expiresAt: 1_400 })).toBe('limited')
  expect(asked()).toBe(2)
})

test('[PUSH2] what is refused is not tried again; an address that is dead is forgotten, as it was', async () => {
  for (const result of ['refused', 'too_large', 'gone'] as const) {
    const { sender, forgotten, asked } = setUp(async () => ({ result, reason: '400' }))
    expect(await sender.send(device, message())).toBe(result)
    expect([asked(), forgotten]).toEqual([1, result === 'gone' ? [device.address] : []])
  }
})

const untilAborted = (signal: AbortSignal) =>
  new Promise<Pushed>((resolve) =>
    signal.addEventListener('abort', () => resolve({ result: 'failed', reason: 'timeout' })),
  )

test('[PUSH2] an attempt has its time, and the next one its own', async () => {
  const { sender, asked } = setUp((n, signal) => (n === 1 ? untilAborted(signal) : Promise.resolve(accepted)), {
    attemptMs: 20,
  })
  expect(await sender.send(device, message())).toBe('accepted')
  expect(asked()).toBe(2)
})

test('[PUSH2] given up with the call, under way or between two attempts, and all of it when the service stops', async () => {
  for (const answer of [(_: number, signal: AbortSignal) => untilAborted(signal), async () => failed]) {
    const { sender } = setUp(answer)
    const call = new AbortController()
    const sending = sender.send(device, message(), call.signal)
    call.abort()
    expect(await sending).toBe('expired')
    const other = sender.send(device, message())
    sender.close()
    expect(await other).toBe('expired')
  }
})
const failed: Pushed = { result: 'failed', reason: '503' }

test('[PUSH2] a push service that stands still: a hundred are under way, some wait, and the rest is dropped', async () => {
  const { promise: standing, resolve: go } = Promise.withResolvers<Pushed>()
  const { sender, sent, asked } = setUp(() => standing)
  const all = Array.from({ length: 10_200 }, () => sender.send(device, message()))
  await Promise.all(all.slice(10_100))
  expect([asked(), sent.length, new Set(sent)]).toEqual([100, 100, new Set(['dropped'])])
  go(accepted)
  await Promise.all(all)
  expect(asked()).toBe(10_100)
  expect(sent.filter((result) => result === 'accepted').length).toBe(10_100)
})

const browserAt = (origin: string): Device => ({
  ...device,
  address: { platform: 'webpush', endpoint: `${origin}/push/x`, p256dh: 'x', auth: 'x' },
})

test('[PUSH2] an origin that hangs delays no other one, and what waits for it is dropped where it is too much', async () => {
  const asked: string[] = []
  const sent: SentResult[] = []
  const sender = createSender({
    services: {
      webpush: {
        send({ endpoint }, _, signal) {
          const { origin } = new URL(endpoint)
          asked.push(origin)
          return origin.endsWith('hangs.example') ? untilAborted(signal) : Promise.resolve(accepted)
        },
        close() {},
      },
    },
    devices: { forget: () => true },
    now: Date.now,
    onSent: (_, result) => void sent.push(result),
    onRepeated() {},
    onError(error) {
      throw error
    },
    attemptMs: 60_000,
  })
  const hanging = Array.from({ length: 2_200 }, () => sender.send(browserAt('https://hangs.example'), message()))
  await Promise.all(hanging.slice(2_100))
  expect([asked.length, sent.length, new Set(sent)]).toEqual([100, 100, new Set(['dropped'])])
  expect(await sender.send(browserAt('https://serves.example'), message())).toBe('accepted')
  // Nine more of them: every place is taken, and a push that gives up leaves its place to one that waits.
  const call = new AbortController()
  const others = Array.from({ length: 900 }, (_, n) => {
    const origin = `https://${n % 9}.hangs.example`
    return sender.send(browserAt(origin), message(), n === 0 ? call.signal : undefined)
  })
  const late = sender.send(browserAt('https://serves.example'), message())
  expect(asked.at(-1)).toBe('https://8.hangs.example')
  call.abort()
  expect(await late).toBe('accepted')
  sender.close()
  await Promise.all([...hanging, ...others])
})
