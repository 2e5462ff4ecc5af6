import { expect, test } from 'bun:test'
import { soon, until } from '@ringwire/testkit/patience'
import { earlyMs } from '../support/clocks.ts'
import { about, answeredCall, connectedCall, ringingCall } from '../support/extended-flows.ts'
import { hangUp, historyOf, pairOn, stopAll } from './people.ts'
import { becomesReady, insist, storedCalls, toldOf, worldFor } from './world.ts'

/** So short that a test can wait for it, and longer than it takes to come back. */
const lostMs = 6_000
/** From the kill until the others know of it. */
const knownMs = 8_000
/** A timer may be late on a busy machine, in ms. */
const lateMs = 1_000

const world = worldFor({
  env: { RINGWIRE_PEER_LOST_MS: String(lostMs), RINGWIRE_CALLER_LOST_MS: String(lostMs) },
})

test('[END3] [RES3] a node is killed: whoever does not come back is lost in time, though no node saw the socket close', async () => {
  const { one, two } = world()
  const [staying, calling, together, returning] = await Promise.all([
    pairOn(one, two),
    pairOn(one, two),
    pairOn(one, one),
    pairOn(one, two),
  ])
  const [lost, rung, empty, kept] = await Promise.all([
    connectedCall(staying),
    ringingCall(calling),
    answeredCall(together),
    answeredCall(returning),
  ])
  await one.kill()
  const killedAt = performance.now()
  const callerPlaceOf = async (call: string) => JSON.parse((await storedCalls(world(), call))[0].caller_place)
  await until('the places are vacant', async () => {
    const places = await Promise.all([lost, rung, empty, kept].map(callerPlaceOf))
    return places.every(({ state }) => state === 'vacant')
  })
  expect(performance.now() - killedAt).toBeLessThan(soon(knownMs))
  const since: Record<string, number> = {}
  for (const call of [lost, rung, empty]) since[call] = (await callerPlaceOf(call)).since
  // It goes on, and waits for them.
  expect(await insist(returning.callee, 'call.connected', { call_uuid: kept })).toBe(0)
  returning.caller.url = two.url
  expect((await returning.caller.connect()).data).toMatchObject({
    recovered: true,
    active_calls: [{ holds_place: true }],
  })

  const ended = await staying.callee.next('call.ended', about(lost))
  expect(Date.now() - since[lost]!).toBeWithin(lostMs - earlyMs, lostMs + soon(lateMs))
  expect(ended.data).toMatchObject({ status: 'ended', reason: 'peer_lost', by: null })
  const cancelled = await calling.callee.next('call.cancelled', about(rung))
  expect(cancelled.data).toMatchObject({ status: 'cancelled', reason: 'caller_lost', by: null })
  await until('the call that both have left is over', async () => {
    return (await historyOf(two, together, empty)).status === 'ended'
  })
  for (const [pair, call, how] of [
    [staying, lost, { status: 'ended', end_reason: 'peer_lost' }],
    [calling, rung, { status: 'cancelled', end_reason: 'caller_lost' }],
    [together, empty, { status: 'ended', end_reason: 'peer_lost' }],
  ] as const) {
    const record = await historyOf(two, pair, call)
    expect(record).toMatchObject(how)
    expect(Date.parse(record.ended_at) - since[call]!).toBeWithin(lostMs - earlyMs, lostMs + soon(lateMs))
  }
  expect(toldOf(staying.callee, 'call.ended', lost)).toBe(1)
  expect(toldOf(calling.callee, 'call.cancelled', rung)).toBe(1)
  expect(toldOf(returning.callee, 'call.ended', kept)).toBe(0)
  await hangUp(two, returning, kept)
  await one.start()
  await becomesReady(one)
  stopAll(staying, calling, together, returning)
}, 240_000)
