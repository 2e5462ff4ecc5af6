import { describe, expect, test } from 'bun:test'
import type { Client } from '@ringwire/testkit/client'
import { candidate, connectPair, invite } from '@ringwire/testkit/flows'
import type { Service } from '@ringwire/testkit/service'
import {
  answer,
  connectFour,
  errorCode,
  type Four,
  inviteOf,
  offer,
  quiet,
  received,
  recordOf,
  request,
} from '../../support/sessions.ts'
import { callIn } from './call-states.ts'
import { type Env, finish, type Start } from './composition.ts'

const ways = {
  'kill -9': (service: Service) => service.kill(),
  SIGTERM: async (service: Service) => expect(await service.terminate()).toBe(0),
} as const
type Way = (service: Service) => Promise<unknown>

/**
 * The service goes and comes back on the same data; calls do not end by that [RES3]. If sessions outlive the service, it
 * knows what each was proven to have received, and does not send that again.
 */
export function registerRestart(name: string, start: Start, areSessionsKept = false): void {
  const again: Again = areSessionsKept ? hearsUnlessBefore : hears
  const withService = async (env: Env, run: (service: Service) => Promise<void>) => {
    const service = await start(env)
    try {
      await run(service)
    } catch (error) {
      await service.dispose()
      throw error
    }
    await finish(service)
  }
  for (const [wayName, way] of Object.entries(ways)) {
    describe(`restart by ${wayName}, ${name}`, () => {
      const scenario = (title: string, run: Scenario, env: Env = {}) =>
        test.concurrent(title, () => withService(env, (service) => run(service, way, again)))
      scenario('[RES3] [WS4] ringing, accepted and connected calls go on to a normal end', checkLiveCalls)
      scenario('[WS4] who was away hears how a call ended, once; who knew it is not in the way', checkFinals)
      scenario('[WS4] [PLACE1] devices that rang hear that another one answered; that one does not', checkOtherDevices)
      scenario(
        '[WS4] the device that answered comes back when its call is over: it hears how it ended, and nothing else',
        checkAnsweredDevice,
      )
      scenario('[INV1] [INV3] [INV6] [INV7] invites are repeated, crossed and redialled as before', checkInvites)
      scenario('[END3] nobody comes back: lost in full time after the start', checkNobodyBack, lostSoon)
      scenario('[RING1] the ring timeout passes meanwhile: missed, and both peers are told', checkMissed)
    })
  }
  test.concurrent(`[CLOSE] SIGTERM closes with 1012 and a jitter hint, ${name}`, () =>
    withService({}, async (service) => {
      const pair = await connectPair(service)
      await invite(pair.caller, pair.calleeId)
      await service.terminate()
      for (const client of [pair.caller, pair.callee]) {
        expect(await client.closed).toEqual({ code: 1012, reason: expect.stringMatching(/jitter_ms=\d+/) })
      }
    }))
  test.concurrent(`[INV3] killed while an invite is on its way: repeated, it is one call, ${name}`, () =>
    withService({}, checkInFlight))
}

type Scenario = (service: Service, way: Way, again: Again) => Promise<void>
/** Whether a client that came back hears what it may have heard before the restart. */
type Again = (before: Client, back: Client, event: string) => Promise<readonly string[]>

const hears: Again = async (_, back, event) => {
  await back.next(event)
  return [event]
}

/** Told before and proven, or told now; told twice where it could not be proven. */
const hearsUnlessBefore: Again = async (before, back, event) => {
  if (!before.events().includes(event)) return hears(before, back, event)
  await quiet(back)
  return back.events().filter((each) => each === event)
}

const lostMs = 500
const lostSoon: Env = { RINGWIRE_CALLER_LOST_MS: String(lostMs), RINGWIRE_PEER_LOST_MS: String(lostMs) }

const asCaller = ({ callerId }: { callerId: string }) => ({ user_id: callerId, role: 'customer' })
const asCallee = ({ calleeId }: { calleeId: string }) => ({ user_id: calleeId, role: 'agent' })

async function restart(service: Service, way: Way): Promise<void> {
  await way(service)
  await service.start()
}

async function comeBack(service: Service, four: Four): Promise<{ caller: Client; callee: Client }> {
  const [caller, callee] = await Promise.all([service.connect(asCaller(four)), service.connect(asCallee(four))])
  return { caller, callee }
}

async function checkLiveCalls(service: Service, way: Way, again: Again): Promise<void> {
  const mayRepeat = again === hears ? [] : ['call.accepted']
  const ringing = await connectFour(service)
  const accepted = await connectFour(service)
  const connected = await connectFour(service)
  const ringingUuid = await callIn('ringing', ringing, { metadata: { a: 1 } })
  const acceptedUuid = await callIn('accepted', accepted)
  const connectedUuid = await callIn('connected', connected)
  const before = ringing.callee.all.find(({ event }) => event === 'call.ringing')?.data
  await restart(service, way)

  const rings = await comeBack(service, ringing)
  const { data } = await rings.callee.next('call.ringing')
  expect(data).toEqual({ ...before, ring_timeout_ms: expect.any(Number) })
  expect(data.ring_timeout_ms).toBeLessThan(before.ring_timeout_ms)
  await quiet(rings.caller)
  expect(rings.caller.events()).toEqual(['auth.ok'])
  rings.callee.send('call.accept', { call_uuid: ringingUuid })
  await rings.caller.next('call.accepted')
  await talkAndHangUp(service, ringing, rings, ringingUuid)

  // If nobody knows whether the caller had heard of the accept, it is sent again.
  const accepts = await comeBack(service, accepted)
  for (const event of await again(accepted.caller, accepts.caller, 'call.accepted')) {
    expect(accepts.caller.all.find((each) => each.event === event)?.data).toEqual({
      call_uuid: acceptedUuid,
      status: 'accepted',
    })
  }
  await talkAndHangUp(service, accepted, accepts, acceptedUuid)

  const talks = await comeBack(service, connected)
  await quiet(talks.caller, talks.callee)
  // Nothing is new; what no pong had proven yet may come once more [PLACE5].
  const news = [talks.caller.events(), talks.callee.events()]
  expect(news.map((events) => events.filter((event) => !mayRepeat.includes(event)))).toEqual([['auth.ok'], ['auth.ok']])
  await talkAndHangUp(service, connected, talks, connectedUuid)
}

async function talkAndHangUp(
  service: Service,
  four: Four,
  { caller, callee }: { caller: Client; callee: Client },
  callUuid: string,
): Promise<void> {
  caller.send('webrtc.offer', offer(callUuid))
  await callee.next('webrtc.offer')
  callee.send('webrtc.answer', answer(callUuid))
  callee.send('webrtc.ice_candidate', candidate(callUuid, 1))
  await caller.next('webrtc.answer')
  await caller.next('webrtc.ice_candidate')
  callee.send('call.connected', { call_uuid: callUuid })
  callee.send('call.end', { call_uuid: callUuid })
  expect((await caller.next('call.ended')).data).toMatchObject({ call_uuid: callUuid, reason: 'hangup' })
  const record = await recordOf(service, asCaller(four), callUuid)
  expect(record).toMatchObject({ status: 'ended', end_reason: 'hangup' })
  expect(record.connected_at).not.toBeNull()
  expect(record.duration_ms).toBe(Date.parse(record.ended_at) - Date.parse(record.accepted_at))
}

async function checkFinals(service: Service, way: Way): Promise<void> {
  const cancelled = await connectFour(service)
  const ended = await connectFour(service)
  const cancelledUuid = await callIn('ringing', cancelled)
  const endedUuid = await callIn('connected', ended)
  await Promise.all([cancelled.callee.die(), cancelled.calleeTab.die(), ended.callee.die()])
  // A second session of the one who is gone shows that the loss is known [PLACE4].
  expect(await errorCode(ended.calleeTab, 'call.cancel', { call_uuid: endedUuid })).toBe('CALL_NOT_PARTICIPANT')
  expect(await errorCode(cancelled.caller, 'call.cancel', { call_uuid: cancelledUuid })).toBeUndefined()
  expect(await errorCode(ended.caller, 'call.end', { call_uuid: endedUuid })).toBeUndefined()
  await restart(service, way)

  const first = await service.connect(asCallee(cancelled))
  expect((await first.next('call.cancelled')).data).toMatchObject({ call_uuid: cancelledUuid, status: 'cancelled' })
  const second = await service.connect(asCallee(ended))
  expect((await second.next('call.ended')).data).toMatchObject({ call_uuid: endedUuid, status: 'ended' })
  await quiet(first, second)
  expect(first.events()).toEqual(['auth.ok', 'call.cancelled'])
  expect(second.events()).toEqual(['auth.ok', 'call.ended'])
  // Those who ended them are not told what they did themselves.
  for (const four of [cancelled, ended]) {
    const ender = await service.connect(asCaller(four))
    await ender.settle()
    expect(ender.events()).toEqual(['auth.ok'])
  }
  expect(await errorCode(first, 'call.accept', { call_uuid: cancelledUuid })).toBe('CALL_INVALID_STATE')
  expect(await errorCode(second, 'call.end', { call_uuid: endedUuid })).toBeUndefined()
}

/** A call that rang on the callee's desk and phone, and that the phone answered. */
async function answerOnPhone(service: Service) {
  const { caller, callerId, calleeId } = await connectPair(service)
  const as = (device: string) => ({ user_id: calleeId, role: 'agent', device_id: device })
  const desk = await service.connect(as('desk'))
  const phone = await service.connect(as('phone'))
  const callUuid = await invite(caller, calleeId)
  await desk.next('call.ringing')
  phone.send('call.accept', { call_uuid: callUuid })
  await caller.next('call.accepted')
  return { callerId, as, desk, callUuid }
}

async function checkOtherDevices(service: Service, way: Way, again: Again): Promise<void> {
  const { callerId, as, desk, callUuid } = await answerOnPhone(service)
  await restart(service, way)
  const deskBack = await service.connect(as('desk'))
  const told = await again(desk, deskBack, 'call.cancelled')
  const { data } = [...received(deskBack), ...received(desk)].find(({ event }) => event === 'call.cancelled') ?? {}
  expect(data).toMatchObject({ call_uuid: callUuid, status: 'accepted', reason: 'answered_elsewhere', ended_at: null })
  const phoneBack = await service.connect(as('phone'))
  const callerBack = await service.connect({ user_id: callerId, role: 'customer' })
  callerBack.send('webrtc.offer', offer(callUuid))
  await phoneBack.next('webrtc.offer')
  await quiet(phoneBack, deskBack, callerBack)
  expect(phoneBack.events()).toEqual(['auth.ok', 'webrtc.offer'])
  expect(deskBack.events()).toEqual(['auth.ok', ...told])
}

async function checkAnsweredDevice(service: Service, way: Way): Promise<void> {
  const { callerId, as, desk, callUuid } = await answerOnPhone(service)
  // The desk has heard of it before; only the phone is away when the call ends.
  await desk.next('call.cancelled')
  await restart(service, way)
  const callerBack = await service.connect({ user_id: callerId, role: 'customer' })
  expect(await errorCode(callerBack, 'call.end', { call_uuid: callUuid })).toBeUndefined()
  const phoneBack = await service.connect(as('phone'))
  expect((await phoneBack.next('call.ended')).data).toMatchObject({ call_uuid: callUuid, status: 'ended' })
  await quiet(phoneBack)
  expect(phoneBack.events()).toEqual(['auth.ok', 'call.ended'])
}

async function checkInvites(service: Service, way: Way): Promise<void> {
  const four = await connectFour(service)
  const crossed = await connectFour(service)
  const callUuid = await callIn('ringing', four)
  const crossedUuid = await callIn('ringing', crossed)
  await restart(service, way)
  const callee = await service.connect(asCallee(four))
  await callee.next('call.ringing')
  const caller = await service.connect(asCaller(four))
  const repeat = await request(caller, 'call.invite', inviteOf(four.calleeId, { call_uuid: callUuid.toUpperCase() }))
  expect(repeat).toMatchObject({ event: 'call.invited', data: { call_uuid: callUuid, status: 'ringing' } })
  const redial = await request(caller, 'call.invite', inviteOf(four.calleeId))
  expect(redial?.data).toEqual(repeat?.data)
  const back = { callee_user_id: four.callerId, callee_role: 'customer' }
  const glare = await request(callee, 'call.invite', back)
  expect(glare?.error).toMatchObject({ code: 'CALL_GLARE', call_uuid: callUuid })
  await quiet(callee)
  expect(callee.events()).toEqual(['auth.ok', 'call.ringing', 'call.error'])

  // New invites mean what they meant before [INV1].
  const free = await connectPair(service)
  const fresh = await request(free.caller, 'call.invite', inviteOf(free.calleeId, { metadata: { b: 2 } }))
  expect(fresh?.data).toMatchObject({ status: 'ringing', call_type: 'audio', ring_timeout_ms: 45_000, delivered: true })
  const fields = { context_type: 'order', context_id: 'order-1', metadata: { b: 2 } }
  expect((await free.callee.next('call.ringing')).data).toMatchObject(fields)
  const denied = await request(free.caller, 'call.invite', { callee_user_id: free.callerId, callee_role: 'customer' })
  expect(denied?.error.code).toBe('CALL_PEER_ROLE_NOT_ALLOWED')

  // A caller who is not back yet does not count: the callee's own call goes on [INV6].
  const other = await service.connect(asCallee(crossed))
  const reply = await request(other, 'call.invite', { callee_user_id: crossed.callerId, callee_role: 'customer' })
  expect(reply?.event).toBe('call.invited')
  expect(other.events()).toEqual(['auth.ok', 'call.ringing', 'call.cancelled', 'call.invited'])
  const record = await recordOf(service, asCaller(crossed), crossedUuid)
  expect(record).toMatchObject({ status: 'cancelled', end_reason: 'caller_lost' })
}

async function checkNobodyBack(service: Service, way: Way): Promise<void> {
  const ringing = await connectFour(service)
  const connected = await connectFour(service)
  const ringingUuid = await callIn('ringing', ringing)
  const connectedUuid = await callIn('connected', connected)
  await way(service)
  const began = performance.now()
  await service.start()
  const [callee, caller] = await Promise.all([service.connect(asCallee(ringing)), service.connect(asCaller(connected))])
  const cancelled = await callee.next('call.cancelled')
  const ended = await caller.next('call.ended')
  expect(performance.now() - began).toBeGreaterThanOrEqual(lostMs)
  expect(cancelled.data).toMatchObject({ call_uuid: ringingUuid, reason: 'caller_lost', by: null })
  expect(ended.data).toMatchObject({ call_uuid: connectedUuid, reason: 'peer_lost', by: null })
}

async function checkMissed(service: Service, way: Way): Promise<void> {
  const four = await connectFour(service)
  const callUuid = await callIn('ringing', four, { ring_timeout_ms: 1_000 })
  await restart(service, way)
  for (const [before, wish] of [
    [four.caller, asCaller(four)],
    [four.callee, asCallee(four)],
  ] as const) {
    const back = await service.connect(wish)
    // On a busy machine the time may be over before the service goes.
    await hearsUnlessBefore(before, back, 'call.missed')
    const { data } = [...received(back), ...received(before)].find(({ event }) => event === 'call.missed') ?? {}
    expect(data).toMatchObject({ call_uuid: callUuid, reason: 'no_answer' })
  }
  const record = await recordOf(service, asCallee(four), callUuid)
  expect(record).toMatchObject({ status: 'missed', end_reason: 'no_answer' })
}

async function checkInFlight(service: Service): Promise<void> {
  for (let round = 0; round < 3; round++) {
    const { caller, callerId, calleeId } = await connectPair(service)
    const callUuid = crypto.randomUUID()
    const invitation = inviteOf(calleeId, { call_uuid: callUuid })
    caller.send('call.invite', invitation)
    await service.kill()
    await service.start()
    const [back, callee] = await Promise.all([
      service.connect({ user_id: callerId, role: 'customer' }),
      service.connect({ user_id: calleeId, role: 'agent' }),
    ])
    const reply = await request(back, 'call.invite', invitation)
    expect(reply?.data).toMatchObject({ call_uuid: callUuid, status: 'ringing', delivered: true })
    await quiet(back, callee)
    expect(callee.events()).toEqual(['auth.ok', 'call.ringing'])
    const { data } = await service.history(await service.token({ user_id: callerId, role: 'customer' }))
    expect(data).toHaveLength(1)
    callee.send('call.accept', { call_uuid: callUuid })
    await back.next('call.accepted')
  }
}
