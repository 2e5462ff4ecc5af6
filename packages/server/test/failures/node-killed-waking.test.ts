import { afterAll, beforeAll, expect, test } from 'bun:test'
import { invite, someone } from '@ringwire/testkit/flows'
import { until } from '@ringwire/testkit/patience'
import { Redis } from 'ioredis'
import type { WebPushServer } from '../push/web-push-server.ts'
import { agentOn, pushingTo, registerPhone, startPushServer, typesOf } from '../scenarios/calls/asleep.ts'
import { worldFor } from './world.ts'

let push: WebPushServer
const settings: Record<string, string> = {}
beforeAll(async () => {
  push = await startPushServer()
  Object.assign(settings, pushingTo(push))
})
afterAll(() => push.stop())
const world = worldFor({ env: settings })

/** Whether the nodes know of a device that a push service took the push for it. */
async function isSettled(): Promise<boolean> {
  const client = new Redis(world().redis.url)
  try {
    const rings = await client.keys('rw:wake:*')
    const devices = await Promise.all(rings.map((key) => client.hvals(key)))
    return devices.flat().includes('+')
  } finally {
    client.disconnect()
  }
}

test('[PUSH2] kill -9 of the node of a phone that rings: another node wakes it, and none that was woken', async () => {
  const { one, two } = world()
  const [callerId, calleeId] = [someone('caller'), someone('callee')]
  const [phone, tablet] = [await registerPhone(one, push, calleeId), await registerPhone(one, push, calleeId, 'tablet')]
  const callee = await two.connect(agentOn(calleeId))
  const caller = await two.connect({ user_id: callerId, role: 'customer' })
  const callUuid = await invite(caller, calleeId)
  await Promise.all([callee.next('call.ringing'), tablet.inbox.next()])
  await until('it is known that the tablet was woken', isSettled)
  await two.kill()
  expect((await phone.inbox.next()).payload).toMatchObject({ type: 'call.wake', call_uuid: callUuid })
  const back = await one.connect({ user_id: callerId, role: 'customer' })
  back.send('call.cancel', { call_uuid: callUuid })
  // Whichever node pushed.
  await Promise.all([phone, tablet].map(({ inbox }) => inbox.next(({ payload }) => payload.type !== 'call.wake')))
  expect([phone, tablet].map(typesOf)).toEqual([
    ['call.wake', 'call.wake_cancelled'],
    ['call.wake', 'call.wake_cancelled'],
  ])
  await two.start()
}, 240_000)

for (const how of ['is killed', 'stops'] as const) {
  test(`[PUSH2] a node ${how} while the push service still holds its request: another node wakes the phone`, async () => {
    const { one, two } = world()
    const calleeId = someone('callee')
    const phone = await registerPhone(one, push, calleeId)
    push.requests.skip()
    push.answers(null)
    const callerId = someone('caller')
    const caller = await two.connect({ user_id: callerId, role: 'customer' })
    const callUuid = await invite(caller, calleeId)
    await push.requests.next()
    expect(typesOf(phone)).toEqual([])
    await (how === 'is killed' ? two.kill() : two.terminate())
    expect((await phone.inbox.next()).payload).toMatchObject({ type: 'call.wake', call_uuid: callUuid })
    const back = await one.connect({ user_id: callerId, role: 'customer' })
    back.send('call.cancel', { call_uuid: callUuid })
    await phone.inbox.next()
    expect(typesOf(phone)).toEqual(['call.wake', 'call.wake_cancelled'])
    await two.start()
  }, 240_000)
}
