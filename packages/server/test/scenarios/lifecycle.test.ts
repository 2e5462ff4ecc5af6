import { afterAll, beforeAll, expect, test } from 'bun:test'
import { acceptedCall, connectPair } from '../support/flows.ts'
import { Service } from '../support/service.ts'

const service = new Service()
beforeAll(async () => {
  await service.start()
})
afterAll(() => service.dispose())

test('[interface] call.end reaches the other peer, and history says ended', async () => {
  const pair = await connectPair(service)
  const callUuid = await acceptedCall(pair)
  pair.caller.send('call.end', { call_uuid: callUuid })
  const ended = await pair.callee.next('call.ended')
  expect(ended.data).toMatchObject({ call_uuid: callUuid, status: 'ended', reason: 'hangup' })
})
