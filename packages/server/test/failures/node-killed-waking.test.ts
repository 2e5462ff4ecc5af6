import { afterAll, beforeAll, expect, test } from 'bun:test'
import { invite, someone } from '@ringwire/testkit/flows'
import { until } from '@ringwire/testkit/patience'
import { Redis } from 'ioredis'
import type { WebPushServer } from '../push/web-push-server.ts'
import { ask } from '../scenarios/backend/calls.ts'
import { agentOn, pushingTo, registerPhone, startPushServer, typesOf } from '../scenarios/calls/asleep.ts'
import { request } from '../support/sessions.ts'
import { worldFor } from './world.ts'

let push: WebPushServer
const settings: Record<string, string> = {}
beforeAll(async () => {
  push = await startPushServer()
  Object.assign(settings, pushingTo(push))
})
afterAll(() => push.stop())
const world = worldFor({ env: settings })

/** Of how many devices with such a text in their names it is known that a push service took the push. */
async function settledDevices(...names: readonly string[]): Promise<number> {
  const client = new Redis(world().redis.url)
  try {
    const rings = await client.keys('rw:wake:*')
    const devices = await Promise.all(rings.map(async (key) => Object.entries(await client.hgetall(key))))
    const isMeant = (device: string) => names.some((name) => device.includes(name))
    return devices.flat().filter(([device, holder]) => holder === '+' && isMeant(device)).length
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
  await until('it is known that the tablet was woken', async () => (await settledDevices('tablet')) === 1)
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

test('[GROUP1] [PUSH2] kill -9 of the node that wakes members: another node wakes those that were not woken, and no other', async () => {
  const { one, two } = world()
  const ids = Array.from({ length: 3 }, () => someone('member'))
  const phones = await Promise.all(ids.map((userId) => registerPhone(one, push, userId)))
  const group = someone('group')
  expect((await ask(one, 'PUT', `groups/agent/${group}`, { members: ids, strategy: 'all' })).status).toBe(200)
  const callerId = someone('caller')
  const caller = await two.connect({ user_id: callerId, role: 'customer' })
  push.requests.skip()
  // The push service holds one request when the node dies, and has taken the others.
  push.answers(null)
  const callUuid = (await request(caller, 'call.invite', { callee_role: 'agent', callee_group: group }))?.data.call_uuid
  const areTaken = () => phones.filter((phone) => typesOf(phone).length > 0).length === 2
  await until('two are woken', areTaken)
  await until('that is known', async () => (await settledDevices(...ids)) === 2)
  await two.kill()
  await until('the third one is woken', () => phones.every((phone) => typesOf(phone).length > 0))
  const back = await one.connect({ user_id: callerId, role: 'customer' })
  back.send('call.cancel', { call_uuid: callUuid })
  await Promise.all(phones.map(({ inbox }) => inbox.next(({ payload }) => payload.type !== 'call.wake')))
  for (const phone of phones) expect(typesOf(phone)).toEqual(['call.wake', 'call.wake_cancelled'])
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
