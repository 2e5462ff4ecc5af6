import { describe, expect, test } from 'bun:test'
import { connectPair, invite, someone } from '@ringwire/testkit/flows'
import { createManualClock, InProcessService, type ManualClock } from '../../support/in-process.ts'
import { connectFour, errorCode, type Four, inviteOf, quiet, recordOf, request } from '../../support/sessions.ts'
import { callIn } from './call-states.ts'

const hourMs = 3_600_000
/** Ring timeouts and lost clocks: short enough that the service does not take a pause for an absence of its own [END3]. */
const lastsMs = 2_000
const longestMs = 3_000
/** Over this the wall clock has jumped. */
const smallestJumpMs = 1_000

interface World {
  readonly clock: ManualClock
  readonly service: InProcessService
}

/** A service on a clock that stands still: what is early or late by a millisecond shows. */
async function onManualClock(run: (world: World) => Promise<void>, maxCallMs = 24 * hourMs): Promise<void> {
  const clock = createManualClock()
  const service = new InProcessService(clock, {
    RINGWIRE_CALLER_LOST_MS: String(lastsMs),
    RINGWIRE_PEER_LOST_MS: String(lastsMs),
    RINGWIRE_MAX_CALL_MS: String(maxCallMs),
    RINGWIRE_TOKEN_TTL_S: '86400',
  })
  try {
    await service.start()
    await run({ clock, service })
  } finally {
    await service.dispose()
  }
}

/** Time passes, and the service has looked at every call afterwards: one of them was due at this very instant. */
async function pass({ service, clock }: World, ms: number): Promise<void> {
  const probe = await service.connect({ user_id: someone('probe'), role: 'customer' })
  await invite(probe, someone('nobody'), { ring_timeout_ms: ms })
  clock.advance(ms)
  await probe.next('call.missed')
  await probe.close()
}

/** The wall clock jumps, and the service has noticed: a repeated invite shows the call's own clock. */
async function jump({ service, clock }: World, ms: number): Promise<void> {
  const probe = await service.connect({ user_id: someone('probe'), role: 'customer' })
  const calleeId = someone('nobody')
  const first = await request(probe, 'call.invite', inviteOf(calleeId))
  clock.jump(ms)
  const follows = Math.abs(ms) > smallestJumpMs ? ms : 0
  let moved: number
  do {
    const again = await request(probe, 'call.invite', inviteOf(calleeId, { call_uuid: first?.data.call_uuid }))
    moved = Date.parse(again?.data.expires_at) - Date.parse(first?.data.expires_at)
  } while (moved !== follows)
  await request(probe, 'call.cancel', { call_uuid: first?.data.call_uuid })
  await probe.close()
}

/** Four calls at the same instant, each waiting for something else that time does. */
async function startCalls(service: InProcessService) {
  const [ringing, callerGone, calleeGone, lasting] = await Promise.all([
    connectFour(service),
    connectFour(service),
    connectFour(service),
    connectFour(service),
  ])
  const uuids = {
    ringing: await callIn('ringing', ringing, { ring_timeout_ms: lastsMs }),
    callerGone: await callIn('ringing', callerGone),
    calleeGone: await callIn('accepted', calleeGone),
    lasting: await callIn('connected', lasting),
  }
  await callerGone.caller.die()
  await calleeGone.callee.die()
  // A session that asks for a place gets the answer after the loss is known [PLACE4].
  expect(await errorCode(callerGone.callerTab, 'call.connected', { call_uuid: uuids.callerGone })).toBe(
    'CALL_INVALID_STATE',
  )
  expect(await errorCode(calleeGone.calleeTab, 'call.cancel', { call_uuid: uuids.calleeGone })).toBe(
    'CALL_NOT_PARTICIPANT',
  )
  return { ringing, callerGone, calleeGone, lasting, uuids }
}

const finals = ['call.missed', 'call.cancelled', 'call.ended']

async function expectLive(four: Four, alive: readonly ('caller' | 'callee')[]): Promise<void> {
  for (const who of alive) {
    await four[who].settle()
    expect(four[who].events().filter((event) => finals.includes(event))).toEqual([])
  }
}

describe('[RING1] [END3] a wall clock that jumps ends no call early and none late', () => {
  for (const [name, ms] of [
    ['one hour ahead', hourMs],
    ['one hour back', -hourMs],
    ['a day ahead', 24 * hourMs - 60_000],
    ['two seconds back', -2_000],
    ['half a second ahead, which is no jump', 500],
    ['half a second back, which is no jump', -500],
  ] as const) {
    test.concurrent(name, () => onManualClock((world) => checkJump(world, ms), longestMs))
  }

  test.concurrent('the jump and the deadline before anybody could look: missed all the same', async () => {
    for (const ms of [hourMs, -hourMs]) {
      await onManualClock(async ({ service, clock }) => {
        const { caller, callee, calleeId } = await connectPair(service)
        await invite(caller, calleeId, { ring_timeout_ms: lastsMs })
        clock.jump(ms)
        clock.advance(lastsMs)
        await Promise.all([caller.next('call.missed'), callee.next('call.missed')])
      })
    }
  })
})

async function checkJump(world: World, ms: number): Promise<void> {
  const { service, clock } = world
  const { ringing, callerGone, calleeGone, lasting, uuids } = await startCalls(service)
  clock.advance(lastsMs / 2)
  await jump(world, ms)
  const late = await service.connect({ user_id: ringing.calleeId, role: 'agent' })
  expect((await late.next('call.ringing')).data.ring_timeout_ms).toBe(lastsMs / 2)

  await pass(world, lastsMs / 2 - 1)
  await expectLive(ringing, ['caller', 'callee'])
  await expectLive(callerGone, ['callee'])
  await expectLive(calleeGone, ['caller'])

  clock.advance(1)
  for (const client of [ringing.caller, ringing.callee, ringing.calleeTab, late]) {
    expect((await client.next('call.missed')).data.call_uuid).toBe(uuids.ringing)
  }
  expect((await callerGone.callee.next('call.cancelled')).data.reason).toBe('caller_lost')
  expect((await calleeGone.caller.next('call.ended')).data.reason).toBe('peer_lost')
  await expectLive(lasting, ['caller', 'callee'])

  await pass(world, longestMs - lastsMs - 1)
  await expectLive(lasting, ['caller', 'callee'])
  clock.advance(1)
  expect((await lasting.caller.next('call.ended')).data.reason).toBe('max_duration')
  const record = await recordOf(service, { user_id: lasting.calleeId, role: 'agent' }, uuids.lasting)
  expect(record.duration_ms).toBe(longestMs)
  expect(service.log).not.toContain('"level":"error"')
}

describe('a service that was away', () => {
  test.concurrent('[RES3] [RING1] ringing goes on with the time that remained; overdue ones are missed at the start', () =>
    onManualClock(async ({ service, clock }) => {
      const due = await connectFour(service)
      const going = await connectFour(service)
      const dueUuid = await callIn('ringing', due, { ring_timeout_ms: 10_000 })
      const goingUuid = await callIn('ringing', going, { ring_timeout_ms: 30_000 })
      await service.stop()
      clock.advance(20_000)
      await service.start()
      const record = await recordOf(service, { user_id: due.callerId, role: 'customer' }, dueUuid)
      expect(record).toMatchObject({ status: 'missed', end_reason: 'no_answer' })
      for (const wish of [
        { user_id: due.callerId, role: 'customer' },
        { user_id: due.calleeId, role: 'agent' },
      ]) {
        const back = await service.connect(wish)
        expect((await back.next('call.missed')).data.call_uuid).toBe(dueUuid)
        await back.settle()
        expect(back.events()).toEqual(['auth.ok', 'call.missed'])
      }
      const callee = await service.connect({ user_id: going.calleeId, role: 'agent' })
      const { data } = await callee.next('call.ringing')
      expect(data).toMatchObject({ call_uuid: goingUuid, ring_timeout_ms: 10_000 })
    }))

  test.concurrent('[END3] lost clocks stand still meanwhile, and start again in full', () =>
    onManualClock(async (world) => {
      const { service, clock } = world
      const { callerGone, calleeGone, uuids } = await startCalls(service)
      await pass(world, lastsMs - 1)
      await service.stop()
      clock.advance(10 * lastsMs)
      await service.start()
      const callerWish = { user_id: calleeGone.callerId, role: 'customer' }
      const caller = await service.connect(callerWish)
      const callee = await service.connect({ user_id: callerGone.calleeId, role: 'agent' })
      await callee.next('call.ringing')
      await pass(world, lastsMs - 1)
      await quiet(caller, callee)
      expect([...caller.events(), ...callee.events()].filter((event) => finals.includes(event))).toEqual([])
      expect(await recordOf(service, callerWish, uuids.calleeGone)).toMatchObject({ status: 'accepted' })

      clock.advance(1)
      expect((await callee.next('call.cancelled')).data.reason).toBe('caller_lost')
      expect((await caller.next('call.ended')).data.reason).toBe('peer_lost')
    }))

  test.concurrent('[RING1] the wall clock was set back meanwhile: nothing rings longer than it was meant to', () =>
    onManualClock(async (world) => {
      const { service, clock } = world
      const { caller, callerId, calleeId } = await connectPair(service)
      const callUuid = await invite(caller, calleeId, { ring_timeout_ms: lastsMs })
      await service.stop()
      clock.jump(-hourMs)
      await service.start()
      const back = await service.connect({ user_id: callerId, role: 'customer' })
      const callee = await service.connect({ user_id: calleeId, role: 'agent' })
      const { data } = await callee.next('call.ringing')
      expect(data).toMatchObject({ call_uuid: callUuid, ring_timeout_ms: lastsMs })
      await pass(world, lastsMs - 1)
      await quiet(back, callee)
      expect(callee.events()).toEqual(['auth.ok', 'call.ringing'])
      clock.advance(1)
      await Promise.all([back.next('call.missed'), callee.next('call.missed')])
    }))
})
