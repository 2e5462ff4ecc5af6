import { expect, test } from 'bun:test'
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

/** A push service that answers as it is told; what is asked for and becomes of it. */
function setUp(answer: (n: number, signal: AbortSignal) => Promise<Pushed>, attemptMs = 5_000) {
  const sent: SentResult[] = []
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
    now: Date.now,
    onSent: (_, result) => void sent.push(result),
    onError(error) {
      throw error
    },
    attemptMs,
  })
  return { sender, sent, forgotten, asked: () => asked }
}

test('[PUSH2] what failed is tried again while the call rings, and told once', async () => {
  const { sender, sent, asked } = setUp(async (n) => (n < 3 ? { result: 'failed', reason: '503' } : accepted))
  expect(await sender.send(device, message())).toBe('accepted')
  expect([asked(), sent]).toEqual([3, ['accepted']])
})

test('[PUSH2] not beyond the ring: a Retry-After that ends after it is the end', async () => {
  const late: Pushed = { result: 'limited', reason: '429', retryAfterMs: 60_000 }
  const { sender, sent, asked } = setUp(async () => late)
  expect(await sender.send(device, message(45_000))).toBe('limited')
  expect(await sender.send(device, message(0))).toBe('expired')
  expect([asked(), sent]).toEqual([1, ['limited', 'expired']])
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
  const { sender, asked } = setUp((n, signal) => (n === 1 ? untilAborted(signal) : Promise.resolve(accepted)), 20)
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
