import { expect, test } from 'bun:test'
import { accepted, created, ended, ringing } from '../../test/contracts/calls.ts'
import type { Call, RingingCall } from '../call/call.ts'
import type { Device, PushAddress } from '../ports/devices.ts'
import type { PushMessage } from '../push/service.ts'
import { createWaking } from './waking.ts'

const addresses: Readonly<Record<string, PushAddress>> = {
  iphone: { platform: 'apns', token: 'aa', voip: true, environment: 'production' },
  android: { platform: 'fcm', token: 'bb' },
  browser: { platform: 'webpush', endpoint: 'https://push.example.com/x', p256dh: 'x', auth: 'x' },
}

/** Somebody with a device of each platform, none of them connected; resolves with the next so many pushes. */
function setUp(call: RingingCall, known: Call = call) {
  const { product, callee } = call
  const devices = Object.entries(addresses).map(
    ([deviceId, address]): Device => ({
      participant: { product, role: callee.role, userId: callee.userId },
      deviceId,
      address,
      registeredAt: 0,
    }),
  )
  const sent: string[] = []
  const waking = createWaking({
    devices: { of: () => devices },
    sessions: { seen: () => [] },
    sender: {
      serves: () => true,
      servesAny: true,
      async send({ deviceId }: Device, { type }: PushMessage) {
        sent.push(`${deviceId} ${type}`)
        // All of a step are sent in one turn: the one after it comes after all of them.
        if (deviceId === 'browser') heard.resolve(sent.splice(0))
        return 'accepted'
      },
      close() {},
    },
    tickets: { sign: () => 'ticket' },
    now: () => call.startedAt,
    known: () => known,
    onError: (error) => heard.reject(error),
  })
  let heard = Promise.withResolvers<string[]>()
  return async (step: Parameters<typeof waking.committed>[0]) => {
    heard = Promise.withResolvers()
    waking.committed(step)
    return heard.promise
  }
}

test('[PUSH2] all devices are woken; when it stops ringing APNs is sent nothing, which would have to ring', async () => {
  for (const over of [accepted, ended]) {
    const call = ringing()
    const told = setUp(call)
    expect(await told(created(call))).toEqual(['iphone call.wake', 'android call.wake', 'browser call.wake'])
    expect(await told(over(call))).toEqual(['android call.wake_cancelled', 'browser call.wake_cancelled'])
  }
})

test('[PUSH2] what was answered elsewhere before its commit was answered here wakes nobody', async () => {
  const call = ringing()
  const answer = accepted(call)
  const told = setUp(call, answer.call)
  void told(created(call))
  expect(await told(answer)).toEqual(['android call.wake_cancelled', 'browser call.wake_cancelled'])
})

test('[PUSH2] a step that is told again, late, wakes nobody again, and of a ring that is over only its end is told', async () => {
  const call = ringing()
  const told = setUp(call)
  await told(created(call))
  void told(created(call))
  const over = ended(call)
  void told({ ...created(call), call: { ...over.call, version: 1 } })
  expect(await told(over)).toEqual(['android call.wake_cancelled', 'browser call.wake_cancelled'])
})
