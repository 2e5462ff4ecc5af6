import { describe, expect, test } from 'bun:test'
import type { Client } from '@ringwire/testkit/client'
import { candidate, connectPair, invite } from '@ringwire/testkit/flows'
import type { Service } from '@ringwire/testkit/service'
import { connectFour, errorCode, quiet } from '../../support/sessions.ts'
import { callIn } from './call-states.ts'
import { type Start, serviceFor } from './composition.ts'

/** How a call ended, for those whose socket died while it rang [WS4]. */
export function registerNotices(name: string, start: Start, isRungKnown = false): void {
  describe(`final notices for who comes back, ${name}`, () => {
    const service = serviceFor(start, { RINGWIRE_PROBE_TIMEOUT_MS: '2000' })
    registerEach(service)
    registerHolders(service)
  })
  describe(`final notices after a restart, ${name}`, () => {
    const service = serviceFor(start)
    const who = isRungKnown
      ? 'the session that had rung hears of it when its device comes back, and nobody else'
      : 'every session that comes back hears of it, once: which ones had rung is not known any more'
    test(`[WS4] ${who}`, async () => {
      const { caller, calleeId } = await connectPair(service())
      const wish = { user_id: calleeId, role: 'agent' }
      const callUuid = await invite(caller, calleeId)
      caller.send('call.cancel', { call_uuid: callUuid })
      await caller.settle()
      await service().kill()
      await service().start()
      for (const device of ['phone', 'desk', undefined]) {
        const back = await service().connect(device === undefined ? wish : { ...wish, device_id: device })
        const hears = !isRungKnown || device === undefined
        if (hears) await back.next('call.cancelled')
        await quiet(back)
        expect(back.events()).toEqual(hears ? ['auth.ok', 'call.cancelled'] : ['auth.ok'])
      }
    })
  })
}

function registerEach(service: () => Service): void {
  for (const [event, end] of [
    ['call.cancelled', (caller: Client, callUuid: string) => caller.send('call.cancel', { call_uuid: callUuid })],
    ['call.missed', () => {}],
  ] as const) {
    test(`[WS4] two tabs lose their network while it rings: each hears of ${event}, and once`, async () => {
      const four = await connectFour(service())
      // What the ring ends with may still come to them: it is lost with their network.
      for (const tab of [four.callee, four.calleeTab]) tab.answersPings = false
      const callUuid = await callIn('ringing', four, event === 'call.missed' ? { ring_timeout_ms: 300 } : {})
      await Promise.all([four.callee.die(), four.calleeTab.die()])
      end(four.caller, callUuid)
      if (event === 'call.missed') await four.caller.next('call.missed')
      await quiet(four.caller)
      for (let n = 0; n < 2; n++) {
        const back = await service().connect({ user_id: four.calleeId, role: 'agent' })
        expect((await back.next(event)).data.call_uuid).toBe(callUuid)
        await quiet(back)
        expect(back.events()).toEqual(['auth.ok', event])
      }
    })
  }

  test('[WS4] two tabs lose their network, a third one answers: each hears answered_elsewhere, and once', async () => {
    const four = await connectFour(service())
    const third = await service().connect({ user_id: four.calleeId, role: 'agent' })
    const callUuid = await callIn('ringing', four)
    await Promise.all([four.callee.die(), four.calleeTab.die()])
    third.send('call.accept', { call_uuid: callUuid })
    await four.caller.next('call.accepted')
    for (let n = 0; n < 2; n++) {
      const back = await service().connect({ user_id: four.calleeId, role: 'agent' })
      const { data } = await back.next('call.cancelled')
      expect(data).toMatchObject({ call_uuid: callUuid, status: 'accepted', reason: 'answered_elsewhere' })
      await quiet(back, third)
      expect(back.events()).toEqual(['auth.ok', 'call.cancelled'])
    }
    four.caller.send('webrtc.ice_candidate', candidate(callUuid, 1))
    await third.next('webrtc.ice_candidate')
  })

  test('[WS4] a tab that closed its socket hears of the end when it is back, and no other device does', async () => {
    const { caller, callee, calleeId } = await connectPair(service())
    const wish = { user_id: calleeId, role: 'agent' }
    const phone = await service().connect({ ...wish, device_id: 'phone' })
    const callUuid = await invite(caller, calleeId)
    await Promise.all([callee.next('call.ringing'), phone.next('call.ringing')])
    await callee.close()
    await phone.die()
    caller.send('call.cancel', { call_uuid: callUuid })
    await caller.settle()
    for (const [device, events] of [
      [undefined, ['auth.ok', 'call.cancelled']],
      [undefined, ['auth.ok']],
      ['desk', ['auth.ok']],
      ['phone', ['auth.ok', 'call.cancelled']],
    ] as const) {
      const back = await service().connect(device === undefined ? wish : { ...wish, device_id: device })
      await back.settle()
      expect(back.events()).toEqual([...events])
    }
  })
}

function registerHolders(service: () => Service): void {
  test('[WS4] [PLACE4] a phone that answered and changes networks twice never hears that its call was answered elsewhere', async () => {
    const { caller, callee, calleeId } = await connectPair(service())
    await callee.close()
    const wish = { user_id: calleeId, role: 'agent', device_id: 'phone' }
    const first = await service().connect(wish)
    const callUuid = await invite(caller, calleeId)
    await first.next('call.ringing')
    await first.die()
    const second = await service().connect(wish)
    await second.next('call.ringing')
    second.send('call.accept', { call_uuid: callUuid })
    await caller.next('call.accepted')
    // The second network is gone without a word: its socket looks alive until it is probed.
    second.answersPings = false
    const third = await service().connect(wish)
    expect((await second.closed).code).toBe(4408)
    caller.send('webrtc.ice_candidate', candidate(callUuid, 1))
    await third.next('webrtc.ice_candidate')
    third.send('call.end', { call_uuid: callUuid })
    await caller.next('call.ended')
    await quiet(third)
    expect(third.events()).toEqual(['auth.ok', 'webrtc.ice_candidate'])
  })
  test('[ORD2] [PLACE4] what ends while a new session waits for such a verdict is told once', async () => {
    const four = await connectFour(service())
    const answered = await callIn('accepted', four)
    const other = await connectPair(service())
    await four.calleeTab.settle()
    const callUuid = await invite(other.caller, four.calleeId)
    await four.calleeTab.next('call.ringing', ({ data }) => data.call_uuid === callUuid)
    await four.calleeTab.die()
    four.callee.answersPings = false
    const back = await service().connect({ user_id: four.calleeId, role: 'agent' })
    await back.next('call.ringing')
    other.caller.send('call.cancel', { call_uuid: callUuid })
    await back.next('call.cancelled')
    expect((await four.callee.closed).code).toBe(4408)
    // It has the place as soon as the verdict is known, and everything else with it.
    expect(await errorCode(back, 'call.connected', { call_uuid: answered })).toBeUndefined()
    await quiet(back)
    expect(back.events()).toEqual(['auth.ok', 'call.ringing', 'call.cancelled'])
  })
}
