import { describe, expect, test } from 'bun:test'
import type { ExtendedClient } from '@ringwire/testkit/extended-client'
import { someone } from '@ringwire/testkit/flows'
import type { Service } from '@ringwire/testkit/service'
import { clockMs } from '../../support/clocks.ts'
import { about, answeredCall, connectExtended, type ExtendedPair } from '../../support/extended-flows.ts'
import { expectAwayOnlyIfLate, jitterOf, lateBackMs } from '../../support/told-back.ts'
import { finish, type Start } from '../calls/composition.ts'

/** The service stops and starts again: clients that it told to come back are away only if they are late [PEER1]. */
export function registerToldBack(name: string, start: Start): void {
  describe(`clients that were told to come back, ${name}`, () => {
    const scenario = (title: string, run: (service: Service) => Promise<void>) =>
      test.concurrent(title, async () => {
        const service = await start()
        try {
          await run(service)
        } catch (error) {
          await service.dispose()
          throw error
        }
        await finish(service)
      })
    scenario('[PEER1] those who are back in time were never away, whichever comes first', checkInTime)
    scenario('[PEER1] a base client that is back in time was never away', checkBase)
    scenario('[PEER1] who is not back by then is away, and back when it comes', checkLate)
    scenario('[PEER1] kill -9 in that time: the other side hears of the absence all the same', checkKilled)
  })
}

async function pairOf(service: Service): Promise<ExtendedPair> {
  const [callerId, calleeId] = [someone('caller'), someone('callee')]
  const [caller, callee] = await Promise.all([
    connectExtended(service, { user_id: callerId, role: 'customer', device_id: 'desk' }),
    connectExtended(service, { user_id: calleeId, role: 'agent', device_id: 'phone' }),
  ])
  return { caller, callee, callerId, calleeId }
}

/** The jitter in the close reason. */
async function restart(service: Service, { caller, callee }: ExtendedPair): Promise<number> {
  const closed = Promise.all([caller.closed, callee.closed])
  expect(await service.terminate()).toBe(0)
  await service.start()
  return Math.max(...(await closed).map(jitterOf))
}

async function comeBack(client: ExtendedClient): Promise<number> {
  await client.connect()
  return Date.now()
}

async function checkInTime(service: Service): Promise<void> {
  const pair = await pairOf(service)
  const call = await answeredCall(pair)
  for (const [first, second] of [
    [pair.caller, pair.callee],
    [pair.callee, pair.caller],
  ] as const) {
    const jitterMs = await restart(service, pair)
    await first.connect()
    const backAt = await comeBack(second)
    await first.settle()
    await second.settle()
    expectAwayOnlyIfLate(first, call, jitterMs, backAt)
    expectAwayOnlyIfLate(second, call, jitterMs, backAt)
  }
  await pair.callee.request('call.end', { call_uuid: call })
  await pair.caller.next('call.ended', about(call))
}

async function checkBase(service: Service): Promise<void> {
  const [callerId, calleeId] = [someone('caller'), someone('base')]
  const caller = await connectExtended(service, { user_id: callerId, role: 'customer', device_id: 'desk' })
  const base = await service.connect({ user_id: calleeId, role: 'agent' })
  const data = { callee_user_id: calleeId, callee_role: 'agent' }
  const call = (await caller.request('call.invite', data)).data.call_uuid
  await base.next('call.ringing')
  base.send('call.accept', { call_uuid: call })
  await caller.next('call.accepted', about(call))
  base.send('call.connected', { call_uuid: call })
  await caller.next('call.status', about(call))
  expect(await service.terminate()).toBe(0)
  const jitterMs = jitterOf(await base.closed)
  await service.start()
  await caller.connect()
  const back = await service.connect({ user_id: calleeId, role: 'agent' })
  const backAt = Date.now()
  await caller.settle()
  expectAwayOnlyIfLate(caller, call, jitterMs, backAt)
  await back.settle()
  expect(back.events()).toEqual(['auth.ok'])
}

async function checkLate(service: Service): Promise<void> {
  const pair = await pairOf(service)
  const call = await answeredCall(pair)
  const jitterMs = await restart(service, pair)
  const helloAt = await comeBack(pair.caller)
  const { data } = await pair.caller.next('call.peer_away', about(call))
  const due = Date.parse(data.since) + jitterMs + lateBackMs
  expect(Date.now()).toBeGreaterThanOrEqual(due - clockMs)
  expect(Date.parse(data.ends_at) - Date.parse(data.since)).toBeGreaterThanOrEqual(120_000)
  if (helloAt < due - clockMs) expect(pair.caller.hello?.data.active_calls[0].peer.away).toBeUndefined()
  await pair.callee.connect()
  await pair.caller.next('call.peer_back', about(call))
}

async function checkKilled(service: Service): Promise<void> {
  const pair = await pairOf(service)
  const call = await answeredCall(pair)
  await restart(service, pair)
  await pair.caller.connect()
  await service.kill()
  await service.start()
  await pair.caller.connect()
  await pair.caller.next('call.peer_away', about(call))
}
