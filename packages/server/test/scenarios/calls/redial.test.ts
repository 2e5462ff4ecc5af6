import { afterAll, beforeAll, expect, test } from 'bun:test'
import { invite, someone } from '@ringwire/testkit/flows'
import { Service } from '@ringwire/testkit/service'

const service = new Service({ RINGWIRE_PROBE_TIMEOUT_MS: '2000' })
beforeAll(async () => {
  await service.start()
})
afterAll(() => service.dispose())

test('[INV7] [PLACE4] a phone that changed networks and dials again takes its own ringing call', async () => {
  const callerId = someone('caller')
  const calleeId = someone('callee')
  const wish = { user_id: callerId, role: 'customer', device_id: 'phone' }
  const before = await service.connect(wish, { answersPings: false })
  const callee = await service.connect({ user_id: calleeId, role: 'agent' })
  const first = await invite(before, calleeId)
  await callee.next('call.ringing')

  const after = await service.connect(wish)
  expect(await invite(after, calleeId)).toBe(first)
  expect((await before.closed).code).toBe(4408)
  callee.send('call.accept', { call_uuid: first })
  await after.next('call.accepted')
  await callee.settle()
  expect(callee.events()).toEqual(['auth.ok', 'call.ringing'])
})

test('[INV7] [PLACE4] another tab that is alive keeps its call until the redial cancels it', async () => {
  const callerId = someone('caller')
  const calleeId = someone('callee')
  const wish = { user_id: callerId, role: 'customer' }
  const one = await service.connect(wish)
  const callee = await service.connect({ user_id: calleeId, role: 'agent' })
  const first = await invite(one, calleeId)
  const other = await service.connect(wish)
  const second = await invite(other, calleeId)
  expect(second).not.toBe(first)
  const cancelled = await one.next('call.cancelled')
  expect(cancelled.data).toMatchObject({ call_uuid: first, reason: 'superseded' })
  expect((await callee.next('call.cancelled')).data.call_uuid).toBe(first)
  await callee.next('call.ringing', (message) => message.data.call_uuid === second)
})
