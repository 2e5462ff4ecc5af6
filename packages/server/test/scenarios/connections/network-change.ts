import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { candidate, invite, someone } from '@ringwire/testkit/flows'
import { soon } from '@ringwire/testkit/patience'
import type { Service } from '@ringwire/testkit/service'
import { candidateNumbers, Networks, proven, range } from '../../support/network.ts'
import { errorCode, quiet } from '../../support/sessions.ts'
import type { StartService } from './start.ts'

/** Enough for a pong on a busy machine. */
const probeTimeoutMs = 2_500

/** The phone that changed networks: its old socket looks alive for a while [PLACE4, PLACE5, WS4]. */
export function registerNetworkChangeScenarios(name: string, start: StartService): void {
  describe(`${name}: a change of networks`, () => {
    let service: Service
    const networks = new Networks()
    beforeAll(async () => {
      service = await start({ RINGWIRE_PROBE_TIMEOUT_MS: String(probeTimeoutMs), RINGWIRE_WS_RATE: 'off' })
    })
    afterAll(async () => {
      networks.stop()
      await service.dispose()
    })

    /** A phone behind the proxy and its peer, in an accepted call; the phone is the callee. */
    async function callWithPhone(device?: string) {
      const calleeId = someone('callee')
      const wish = { user_id: calleeId, role: 'agent', ...(device === undefined ? {} : { device_id: device }) }
      const caller = await service.connect({ user_id: someone('caller'), role: 'customer' })
      const { client: phone, link, said } = await networks.connect(service, wish)
      const callUuid = await invite(caller, calleeId)
      await phone.next('call.ringing')
      phone.send('call.accept', { call_uuid: callUuid })
      await caller.next('call.accepted')
      const send = (from: number, to: number) => {
        for (const n of range(from, to)) caller.send('webrtc.ice_candidate', candidate(callUuid, n))
        return caller.settle()
      }
      return { caller, phone, link, said, wish, calleeId, callUuid, send }
    }

    for (const device of [undefined, 'phone']) {
      const which = device === undefined ? 'without a device_id' : 'with the same device_id'
      test.concurrent(`[PLACE4] a new socket ${which}: the holder is asked at once, the request waits for the verdict and succeeds`, async () => {
        const { caller, phone, link, said, wish, callUuid, send } = await callWithPhone(device)
        await send(0, 10)
        await proven(phone)
        link.stall()
        await send(10, 30)
        const pings = said.pings
        const asked = performance.now()
        const successor = await service.connect(wish)
        successor.send('webrtc.ice_candidate', candidate(callUuid, 99), 'mine')
        await said.until((it) => it.pings > pings)
        expect(performance.now() - asked).toBeLessThan(soon(probeTimeoutMs))
        await send(30, 40)

        expect((await caller.next('webrtc.ice_candidate')).data.candidate.candidate).toBe('candidate:99')
        expect(performance.now() - asked).toBeGreaterThan(probeTimeoutMs - 50)
        await said.until((it) => it.closeCode !== undefined)
        expect(said.closeCode).toBe(4408)
        await send(40, 50)
        await successor.settle()
        // Everything that the old socket was sent and never proved, what came meanwhile, and what comes now.
        expect(candidateNumbers(successor)).toEqual(range(10, 50))
        expect(successor.events()).not.toContain('call.error')
        successor.send('call.end', { call_uuid: callUuid })
        await caller.next('call.ended')
      })
    }

    test.concurrent('[PLACE4] one that asks for nothing gets the place, too, once the old socket is found dead', async () => {
      const { phone, link, wish, send } = await callWithPhone('phone')
      await proven(phone)
      link.stall()
      await send(0, 5)
      const successor = await service.connect(wish)
      for (const n of range(0, 5)) {
        expect((await successor.next('webrtc.ice_candidate')).data.candidate.candidate).toBe(`candidate:${n}`)
      }
    })

    const requests: [string, (callUuid: string) => object, string][] = [
      ['call.end', (callUuid) => ({ call_uuid: callUuid }), 'call.ended'],
      ['call.reject', (callUuid) => ({ call_uuid: callUuid }), 'call.ended'],
      ['webrtc.answer', (callUuid) => ({ call_uuid: callUuid, sdp: { type: 'answer', sdp: 'v=0' } }), 'webrtc.answer'],
    ]
    for (const [event, data, heard] of requests) {
      test.concurrent(`[PLACE4] ${event} of the new socket waits and then takes effect`, async () => {
        const { caller, link, wish, callUuid } = await callWithPhone('phone')
        link.stall()
        const successor = await service.connect(wish)
        successor.send(event, data(callUuid), 'waits')
        await caller.next(heard)
        await quiet(successor)
        expect(successor.events()).not.toContain('call.error')
      })
    }

    test.concurrent('[PLACE4] accept of the phone whose own accept went through before it moved', async () => {
      const { link, wish, callUuid, caller } = await callWithPhone('phone')
      link.stall()
      const successor = await service.connect(wish)
      expect(await errorCode(successor, 'call.accept', { call_uuid: callUuid })).toBeUndefined()
      successor.send('webrtc.ice_candidate', candidate(callUuid, 1))
      await caller.next('webrtc.ice_candidate')
    })

    test.concurrent('[PLACE4] a caller that moves while it rings cancels from its new socket', async () => {
      const wish = { user_id: someone('caller'), role: 'customer', device_id: 'phone' }
      const calleeId = someone('callee')
      const callee = await service.connect({ user_id: calleeId, role: 'agent' })
      const { client: phone, link } = await networks.connect(service, wish)
      const callUuid = await invite(phone, calleeId)
      await callee.next('call.ringing')
      link.stall()
      const successor = await service.connect(wish)
      successor.send('call.cancel', { call_uuid: callUuid })
      expect((await callee.next('call.cancelled')).data.reason).toBe('caller_cancelled')
    })

    test.concurrent('[PLACE3] [PLACE4] another device is not believed: refused at once, the holder is not even asked', async () => {
      const { caller, phone, link, said, calleeId, callUuid } = await callWithPhone('phone')
      await proven(phone)
      link.stall()
      const pings = said.pings
      for (const device of [{ device_id: 'laptop' }, {}]) {
        const other = await service.connect({ user_id: calleeId, role: 'agent', ...device })
        const asked = performance.now()
        expect(await errorCode(other, 'call.end', { call_uuid: callUuid })).toBe('CALL_NOT_PARTICIPANT')
        expect(await errorCode(other, 'call.accept', { call_uuid: callUuid })).toBe('CALL_ALREADY_ANSWERED')
        expect(performance.now() - asked).toBeLessThan(soon(probeTimeoutMs))
      }
      expect(said.pings).toBe(pings)
      expect(said.closeCode).toBeUndefined()
      // It was only a tunnel: the phone is there again, and nothing happened to its call.
      link.flow()
      phone.send('webrtc.ice_candidate', candidate(callUuid, 1))
      await caller.next('webrtc.ice_candidate')
    })

    test.concurrent('[PLACE4] a phone that comes back within the time keeps its place', async () => {
      const { caller, phone, link, said, wish, callUuid } = await callWithPhone('phone')
      link.stall()
      const pings = said.pings
      const second = await service.connect(wish)
      second.send('call.end', { call_uuid: callUuid }, 'second')
      await said.until((it) => it.pings > pings)
      link.flow()
      expect(await second.error('second')).toMatchObject({ code: 'CALL_NOT_PARTICIPANT' })
      phone.send('webrtc.ice_candidate', candidate(callUuid, 1))
      await caller.next('webrtc.ice_candidate')
      expect(caller.events()).not.toContain('call.ended')
    })

    test.concurrent('[PLACE4] several new sockets at once: one gets the place, the others are refused, nothing is lost', async () => {
      const { caller, phone, link, wish, callUuid, send } = await callWithPhone('phone')
      await proven(phone)
      link.stall()
      await send(0, 10)
      const successors = await Promise.all([0, 1, 2].map(() => service.connect(wish)))
      for (const [i, it] of successors.entries()) it.send('webrtc.ice_candidate', candidate(callUuid, 90 + i), 'mine')
      await caller.next('webrtc.ice_candidate')
      await quiet(...successors)
      const refused = successors.filter((it) => it.events().includes('call.error'))
      const [holder] = successors.filter((it) => !refused.includes(it))
      expect(refused).toHaveLength(2)
      expect(candidateNumbers(holder!)).toEqual(range(0, 10))
      await send(10, 15)
      await quiet(holder!)
      expect(candidateNumbers(holder!)).toEqual(range(0, 15))
    })

    test.concurrent('[WS4] [PLACE4] the end of a call that the old socket never heard comes to the new one', async () => {
      const { caller, phone, link, said, wish, callUuid } = await callWithPhone('phone')
      await proven(phone)
      link.stall()
      caller.send('call.end', { call_uuid: callUuid })
      await caller.settle()
      // The old socket looks alive when the new one connects, and the call is over: nothing else would tell it.
      const successor = await service.connect(wish)
      expect((await successor.next('call.ended')).data).toMatchObject({ call_uuid: callUuid, reason: 'hangup' })
      await said.until((it) => it.closeCode !== undefined)
      expect(said.closeCode).toBe(4408)
      await successor.settle()
      expect(successor.events()).toEqual(['auth.ok', 'call.ended'])
    })

    test.concurrent('[WS4] the end of a ring that the old socket never heard comes to the new one, and only once', async () => {
      const calleeId = someone('callee')
      const wish = { user_id: calleeId, role: 'agent' }
      const caller = await service.connect({ user_id: someone('caller'), role: 'customer' })
      const { client: phone, link } = await networks.connect(service, wish)
      const callUuid = await invite(caller, calleeId)
      await phone.next('call.ringing')
      await proven(phone)
      link.stall()
      caller.send('call.cancel', { call_uuid: callUuid })
      await caller.settle()
      const successor = await service.connect(wish)
      expect((await successor.next('call.cancelled')).data.call_uuid).toBe(callUuid)
      const later = await service.connect(wish)
      await later.settle()
      expect(later.events()).toEqual(['auth.ok'])
    })

    test.concurrent('[WS4] a socket that has heard the end keeps it to itself', async () => {
      const { caller, phone, said, wish, callUuid } = await callWithPhone('phone')
      caller.send('call.end', { call_uuid: callUuid })
      await phone.next('call.ended')
      const second = await service.connect(wish)
      await quiet(phone, second)
      expect(said.closeCode).toBeUndefined()
      expect(second.events()).toEqual(['auth.ok'])
      await phone.settle()
    })
  })
}

/** The verdict does not come before the test lets it come. */
export function registerWaitingScenarios(name: string, start: StartService): void {
  describe(`${name}: requests that wait for a sign of life`, () => {
    let service: Service
    const networks = new Networks()
    beforeAll(async () => {
      service = await start({ RINGWIRE_PROBE_TIMEOUT_MS: '60000', RINGWIRE_WS_RATE: 'off' })
    })
    afterAll(async () => {
      networks.stop()
      await service.dispose()
    })

    /** A phone in a call that does not answer, and what another socket of its device would be. */
    async function silentPhone() {
      const wish = { user_id: someone('callee'), role: 'agent', device_id: 'phone' }
      const caller = await service.connect({ user_id: someone('caller'), role: 'customer' })
      const { client: phone, link } = await networks.connect(service, wish)
      const callUuid = await invite(caller, wish.user_id)
      await phone.next('call.ringing')
      phone.send('call.accept', { call_uuid: callUuid })
      await caller.next('call.accepted')
      link.stall()
      return { caller, phone, link, wish, callUuid }
    }

    test.concurrent('[ORD1] [PLACE4] what is about something else goes on, what is about the same call comes after', async () => {
      const { link, wish, callUuid } = await silentPhone()
      const otherId = someone('other')
      const other = await service.connect({ user_id: otherId, role: 'customer' })
      const successor = await service.connect(wish)
      successor.send('call.connected', { call_uuid: callUuid }, 'waits')
      successor.send('webrtc.ice_candidate', candidate(callUuid, 1), 'behind it')
      successor.send('call.end', { call_uuid: crypto.randomUUID() }, 'other')
      expect((await successor.error('other')).code).toBe('CALL_NOT_FOUND')
      const ringing = await invite(successor, otherId, { callee_role: 'customer' })
      await other.next('call.ringing')
      successor.send('call.cancel', { call_uuid: ringing })
      await other.next('call.cancelled')
      expect(successor.events()).toEqual(['auth.ok', 'call.error', 'call.invited'])
      link.flow()
      await successor.settle()
      const errors = successor.all.filter((it) => it.error?.code === 'CALL_NOT_PARTICIPANT')
      expect(errors.map((it) => it.request_id)).toEqual(['waits', 'behind it'])
    })

    test.concurrent('[ORD1] what waits on one socket, or on all of a participant, is bounded in bytes: 4429', async () => {
      const { link, phone, wish, callUuid } = await silentPhone()
      const offer = (bytes: number) => ({ call_uuid: callUuid, sdp: { type: 'offer', sdp: 'x'.repeat(bytes) } })
      const waitWith = async (offers: number) => {
        const client = await service.connect(wish)
        client.send('call.connected', { call_uuid: callUuid }, 'waits')
        for (let i = 0; i < offers; i++) client.send('webrtc.offer', offer(48_000))
        return client
      }
      expect(await (await waitWith(6)).closed).toMatchObject({ code: 4429 })
      const several = await Promise.all(Array.from({ length: 12 }, () => waitWith(5)))
      expect(await Promise.race(several.map((it) => it.closed))).toMatchObject({ code: 4429 })
      // The phone was only in a tunnel.
      link.flow()
      phone.send('call.end', { call_uuid: callUuid })
      await phone.settle()
      expect(phone.events()).toEqual(['auth.ok', 'call.ringing'])
    })
  })
}
