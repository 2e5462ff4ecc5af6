import { describe, expect, test } from 'bun:test'
import type { Client } from '@ringwire/testkit/client'
import { candidate, connectPair, invite } from '@ringwire/testkit/flows'
import type { Service } from '@ringwire/testkit/service'
import {
  connectFour,
  errorCode,
  eventsOf,
  listen,
  quiet,
  recordOf,
  type SessionName,
  sessionNames,
} from '../../support/sessions.ts'
import { callIn } from './call-states.ts'
import { type Start, serviceFor } from './composition.ts'

const lostMs = 500
/** For those who come back: enough for a connection, on a slow machine too. */
const patientMs = 8_000
/** Enough for what has to happen before it. */
const longestMs = 5_000
const readingMs = 2

/** A place that nobody holds, and for how long the call waits for its holder [END3]. */
export function registerLosses(name: string, start: Start): void {
  describe(`lost places, ${name}`, () => {
    const service = serviceFor(start, losesAfter(lostMs))
    registerCallerLost(service)
    registerPeerLost(service)
  })
  describe(`places that are taken again, ${name}`, () => {
    registerReturns(serviceFor(start, losesAfter(patientMs)))
  })
  describe(`the longest call, ${name}`, () => {
    registerLongest(serviceFor(start, { RINGWIRE_MAX_CALL_MS: String(longestMs) }))
  })
}

const losesAfter = (ms: number) => ({ RINGWIRE_CALLER_LOST_MS: String(ms), RINGWIRE_PEER_LOST_MS: String(ms) })

const ways: Record<string, (client: Client) => Promise<unknown>> = {
  'its network': (client) => client.die(),
  'its page': (client) => client.close(1001),
}

async function heardBy(clients: readonly Client[], event: string): Promise<void> {
  await Promise.all(clients.map((client) => client.next(event)))
}

function registerCallerLost(service: () => Service): void {
  for (const [way, lose] of Object.entries(ways)) {
    test.concurrent(`[END3] ringing: the caller loses ${way}: cancelled as caller_lost, to the callee's sessions`, async () => {
      const four = await connectFour(service())
      const callUuid = await callIn('ringing', four)
      const news = listen(four, sessionNames)
      const began = performance.now()
      await lose(four.caller)
      await heardBy([four.callee, four.calleeTab], 'call.cancelled')
      expect(performance.now() - began).toBeGreaterThanOrEqual(lostMs - readingMs)
      await quiet(four.callerTab, four.callee, four.calleeTab)
      const record = await recordOf(service(), { user_id: four.callerId, role: 'customer' }, callUuid)
      expect(record).toMatchObject({ status: 'cancelled', end_reason: 'caller_lost' })
      const data = {
        call_uuid: callUuid,
        status: 'cancelled',
        reason: 'caller_lost',
        by: null,
        ended_at: record.ended_at,
      }
      const notice = { event: 'call.cancelled', data }
      expect(news()).toEqual({ caller: [], callerTab: [], callee: [notice], calleeTab: [notice] } as never)

      // However it was lost, a client that comes back hears how the call ended [PLACE5, WS4].
      const back = await service().connect({ user_id: four.callerId, role: 'customer' })
      await back.next('call.cancelled')
      await quiet(back)
      expect(back.events()).toEqual(['auth.ok', 'call.cancelled'])
    })
  }

  test.concurrent('[END3] ringing: a callee who is gone ends nothing, and rings again when it is back', async () => {
    const four = await connectFour(service())
    const callUuid = await callIn('ringing', four)
    await four.callee.die()
    await four.calleeTab.close()
    await lossOf(service())
    const back = await service().connect({ user_id: four.calleeId, role: 'agent' })
    expect((await back.next('call.ringing')).data.call_uuid).toBe(callUuid)
    back.send('call.accept', { call_uuid: callUuid })
    await four.caller.next('call.accepted')
  })
}

/** Another call loses its caller: when it is over, as much time has passed for every other one. */
async function lossOf(service: Service): Promise<void> {
  const { caller, callee, calleeId } = await connectPair(service)
  await invite(caller, calleeId)
  await callee.next('call.ringing')
  await caller.die()
  await callee.next('call.cancelled')
}

function registerPeerLost(service: () => Service): void {
  for (const status of ['accepted', 'connected'] as const) {
    for (const side of ['caller', 'callee'] as const) {
      test.concurrent(`[END3] ${status}: the ${side} is gone: ended as peer_lost, to the other peer alone`, async () => {
        const four = await connectFour(service())
        const callUuid = await callIn(status, four)
        const other = side === 'caller' ? 'callee' : 'caller'
        const news = listen(four, sessionNames)
        const began = performance.now()
        await four[side].die()
        await four[other].next('call.ended')
        expect(performance.now() - began).toBeGreaterThanOrEqual(lostMs - readingMs)
        await quiet(...sessionNames.filter((who) => who !== side).map((who) => four[who]))
        const record = await recordOf(service(), { user_id: four.callerId, role: 'customer' }, callUuid)
        expect(record).toMatchObject({ status: 'ended', end_reason: 'peer_lost' })
        const data = { call_uuid: callUuid, status: 'ended', reason: 'peer_lost', by: null, ended_at: record.ended_at }
        const silent: Record<SessionName, unknown[]> = { caller: [], callerTab: [], callee: [], calleeTab: [] }
        expect(news() as object).toEqual({ ...silent, [other]: [{ event: 'call.ended', data }] })

        const wish =
          side === 'caller' ? { user_id: four.callerId, role: 'customer' } : { user_id: four.calleeId, role: 'agent' }
        const back = await service().connect(wish)
        expect((await back.next('call.ended')).data).toEqual(data)
        await back.settle()
        expect(back.events()).toEqual(['auth.ok', 'call.ended'])
      })
    }
  }

  test.concurrent('[END3] both are gone: the call ends, and both hear of it when they are back', async () => {
    const four = await connectFour(service())
    const callUuid = await callIn('connected', four)
    await Promise.all([four.caller.die(), four.callee.die()])
    await lossOf(service())
    await quiet(four.callerTab)
    for (const wish of [
      { user_id: four.callerId, role: 'customer' },
      { user_id: four.calleeId, role: 'agent' },
    ]) {
      const back = await service().connect(wish)
      expect((await back.next('call.ended')).data).toMatchObject({ call_uuid: callUuid, reason: 'peer_lost' })
      expect(await recordOf(service(), wish, callUuid)).toMatchObject({ status: 'ended', end_reason: 'peer_lost' })
    }
  })
}

function registerReturns(service: () => Service): void {
  test.concurrent('[END3] [PLACE2] a caller who is back in time keeps the ringing call', async () => {
    const four = await connectFour(service(), { device_id: 'phone' })
    const callUuid = await callIn('ringing', four)
    await four.caller.die()
    const back = await service().connect({ user_id: four.callerId, role: 'customer', device_id: 'phone' })
    await back.settle()
    await lossOf(service())
    await quiet(back, four.callee, four.calleeTab)
    expect(four.callee.events()).toEqual(['auth.ok', 'call.ringing'])
    four.callee.send('call.accept', { call_uuid: callUuid })
    expect((await back.next('call.accepted')).data.call_uuid).toBe(callUuid)
  })

  for (const side of ['caller', 'callee'] as const) {
    test.concurrent(`[END3] [PLACE2] a ${side} who is back in time keeps the call, and messages flow again`, async () => {
      const four = await connectFour(service(), { device_id: 'phone' })
      const callUuid = await callIn('connected', four)
      const wish =
        side === 'caller' ? { user_id: four.callerId, role: 'customer' } : { user_id: four.calleeId, role: 'agent' }
      const peer = side === 'caller' ? four.callee : four.caller
      const heard = peer.events().length
      await four[side].die()
      peer.send('webrtc.ice_candidate', candidate(callUuid, 1))
      await peer.settle()
      const back = await service().connect({ ...wish, device_id: 'phone' })
      await lossOf(service())
      peer.send('webrtc.ice_candidate', candidate(callUuid, 2))
      await quiet(peer, back)
      const came = back.all.filter(({ event }) => event === 'webrtc.ice_candidate')
      expect(came.map(({ data }) => data.candidate.candidate)).toEqual(['candidate:1', 'candidate:2'])
      back.send('webrtc.ice_candidate', candidate(callUuid, 3))
      back.send('call.end', { call_uuid: callUuid })
      await quiet(back, peer)
      expect(peer.events().slice(heard)).toEqual(['webrtc.ice_candidate', 'call.ended'])
    })
  }

  test.concurrent('[END3] a tab that was there before and names the call keeps it, too', async () => {
    const four = await connectFour(service())
    const callUuid = await callIn('connected', four)
    await four.callee.die()
    expect(await errorCode(four.calleeTab, 'call.connected', { call_uuid: callUuid })).toBeUndefined()
    await lossOf(service())
    const news = listen(four, sessionNames)
    four.caller.send('webrtc.ice_candidate', candidate(callUuid, 1))
    await quiet(four.caller, four.calleeTab)
    expect(eventsOf(news())).toEqual({ caller: [], callerTab: [], callee: [], calleeTab: ['webrtc.ice_candidate'] })
  })
}

function registerLongest(service: () => Service): void {
  for (const status of ['accepted', 'connected'] as const) {
    test.concurrent(`${status} for too long: it ends as max_duration, to both peers and nobody else`, async () => {
      const four = await connectFour(service())
      const began = performance.now()
      const callUuid = await callIn(status, four)
      const news = listen(four, sessionNames)
      await heardBy([four.caller, four.callee], 'call.ended')
      expect(performance.now() - began).toBeGreaterThanOrEqual(longestMs - readingMs)
      await quiet(...sessionNames.map((who) => four[who]))
      const record = await recordOf(service(), { user_id: four.callerId, role: 'customer' }, callUuid)
      expect(record).toMatchObject({ status: 'ended', end_reason: 'max_duration' })
      const data = { call_uuid: callUuid, status: 'ended', reason: 'max_duration', by: null, ended_at: record.ended_at }
      const notice = { event: 'call.ended', data }
      expect(news()).toEqual({ caller: [notice], callerTab: [], callee: [notice], calleeTab: [] } as never)
    })
  }
}
