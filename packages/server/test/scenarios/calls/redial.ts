import { describe, expect, test } from 'bun:test'
import { connectPair, invite } from '@ringwire/testkit/flows'
import { isLong } from '@ringwire/testkit/long'
import type { Service } from '@ringwire/testkit/service'
import {
  connectFour,
  errorCode,
  eventsOf,
  inviteOf,
  listen,
  quiet,
  recordOf,
  request,
  sessionNames,
} from '../../support/sessions.ts'
import { callIn } from './call-states.ts'
import { type Start, serviceFor } from './composition.ts'

const rounds = isLong ? 25 : 15

/** A second invite to the same callee [INV7]. */
export function registerRedial(name: string, start: Start): void {
  describe(`redial, ${name}`, () => {
    const service = serviceFor(start)
    registerWhileHeld(service)
    registerAtOnce(service)
    registerAfterCrash(service)
    registerAnswered(service)
  })
}

function registerWhileHeld(service: () => Service): void {
  test('[INV7] by the session that calls already: the same reply, whatever call_uuid it gives, and nobody is rung twice', async () => {
    const four = await connectFour(service())
    const callUuid = await callIn('ringing', four)
    const news = listen(four, sessionNames)
    for (const more of [{}, { call_uuid: crypto.randomUUID() }]) {
      const reply = await request(four.caller, 'call.invite', inviteOf(four.calleeId, more))
      expect(reply).toMatchObject({ event: 'call.invited', data: { call_uuid: callUuid, status: 'ringing' } })
    }
    await quiet(...sessionNames.map((who) => four[who]))
    const { caller, ...others } = eventsOf(news())
    expect(caller).toEqual(['call.invited', 'call.invited'])
    expect(others).toEqual({ callerTab: [], callee: [], calleeTab: [] })
  })

  for (const field of ['context_type', 'context_id', 'call_type']) {
    for (const isThere of [true, false]) {
      const where = isThere ? 'by the session that calls already' : 'by a session that came back'
      test(`[INV7] ${where}, for another ${field}: the old call is cancelled as superseded, and the new one rings`, async () => {
        const { caller, callee, callerId, calleeId } = await connectPair(service())
        const old = await invite(caller, calleeId)
        await callee.next('call.ringing')
        if (!isThere) await caller.close(1001)
        const inviter = isThere ? caller : await service().connect({ user_id: callerId, role: 'customer' })
        const fresh = await invite(inviter, calleeId, { [field]: 'another' })
        expect(fresh).not.toBe(old)
        const over = { call_uuid: old, status: 'cancelled', reason: 'superseded' }
        for (const client of [callee, inviter]) expect((await client.next('call.cancelled')).data).toMatchObject(over)
        expect((await callee.next('call.ringing')).data).toMatchObject({ call_uuid: fresh, [field]: 'another' })
        expect(inviter.events().slice(-2)).toEqual(['call.cancelled', 'call.invited'])
      })
    }
  }

  test('[INV7] [END2] from another tab: the old call is cancelled as superseded, and then the new one rings', async () => {
    const four = await connectFour(service())
    const old = await callIn('ringing', four)
    const news = listen(four, sessionNames)
    const reply = await request(four.callerTab, 'call.invite', inviteOf(four.calleeId))
    await quiet(...sessionNames.map((who) => four[who]))
    const record = await recordOf(service(), { user_id: four.callerId, role: 'customer' }, old)
    expect(record).toMatchObject({ status: 'cancelled', end_reason: 'superseded' })
    const cancelled = {
      event: 'call.cancelled',
      data: {
        call_uuid: old,
        status: 'cancelled',
        reason: 'superseded',
        by: { user_id: four.callerId, role: 'customer' },
        ended_at: record.ended_at,
      },
    }
    const ringing = { event: 'call.ringing', data: expect.objectContaining({ call_uuid: reply?.data.call_uuid }) }
    expect(news()).toEqual({
      caller: [cancelled],
      callerTab: [reply as object],
      callee: [cancelled, ringing],
      calleeTab: [cancelled, ringing],
    } as never)
    four.calleeTab.send('call.accept', { call_uuid: reply?.data.call_uuid })
    await four.callerTab.next('call.accepted')
  })
}

function registerAtOnce(service: () => Service): void {
  test(`[INV7] two tabs call at once, ${rounds} rounds: one call rings in the end, and one is superseded`, async () => {
    const four = await connectFour(service())
    for (let round = 0; round < rounds; round++) {
      const news = listen(four, sessionNames)
      const tabs = [four.caller, four.callerTab]
      for (const tab of round % 2 === 0 ? tabs : tabs.reverse()) tab.send('call.invite', inviteOf(four.calleeId))
      await quiet(...sessionNames.map((who) => four[who]))
      const heard = news()
      const events = eventsOf(heard)
      expect([events.caller, events.callerTab].toSorted((a, b) => a.length - b.length)).toEqual([
        ['call.invited'],
        ['call.invited', 'call.cancelled'],
      ])
      for (const side of [heard.callee, heard.calleeTab]) {
        expect(side.map(({ event }) => event)).toEqual(['call.ringing', 'call.cancelled', 'call.ringing'])
        expect(side[1]?.data).toMatchObject({ call_uuid: side[0]?.data.call_uuid, reason: 'superseded' })
        expect(side[2]?.data.call_uuid).not.toBe(side[0]?.data.call_uuid)
      }
      four.callee.send('call.reject', { call_uuid: heard.callee[2]?.data.call_uuid })
      await quiet(four.callee, four.calleeTab, four.caller, four.callerTab)
    }
  })

  test(`[INV3] two tabs send the same invite at once, ${rounds} rounds: one call, two equal replies`, async () => {
    const four = await connectFour(service())
    for (let round = 0; round < rounds; round++) {
      const callUuid = crypto.randomUUID()
      const news = listen(four, sessionNames)
      const invitation = inviteOf(four.calleeId, { call_uuid: callUuid })
      for (const tab of [four.caller, four.callerTab]) tab.send('call.invite', invitation)
      await quiet(...sessionNames.map((who) => four[who]))
      const heard = news()
      expect(heard.caller[0]).toEqual(heard.callerTab[0] as never)
      expect(eventsOf(heard)).toEqual({
        caller: ['call.invited'],
        callerTab: ['call.invited'],
        callee: ['call.ringing'],
        calleeTab: ['call.ringing'],
      })
      four.callee.send('call.reject', { call_uuid: callUuid })
      await quiet(four.callee, four.calleeTab, four.caller, four.callerTab)
    }
  })
}

function registerAfterCrash(service: () => Service): void {
  test('[INV7] [PLACE2] after a crash, from a new connection: the call that rings already, and it is its call from then on', async () => {
    for (const device of [undefined, 'phone']) {
      const wish = device === undefined ? {} : { device_id: device }
      const four = await connectFour(service(), wish)
      const callUuid = await callIn('ringing', four)
      await four.caller.die()
      // A verb that asks for the place is refused with the state as soon as the loss is known [PLACE4].
      expect(await errorCode(four.callerTab, 'call.connected', { call_uuid: callUuid })).toBe('CALL_INVALID_STATE')
      const back = await service().connect({ ...wish, user_id: four.callerId, role: 'customer' })
      const reply = await request(back, 'call.invite', inviteOf(four.calleeId))
      expect(reply?.data).toMatchObject({ call_uuid: callUuid, status: 'ringing' })
      const news = listen(four, sessionNames)
      four.callee.send('call.accept', { call_uuid: callUuid })
      await back.next('call.accepted')
      await quiet(back, four.callerTab, four.callee, four.calleeTab)
      expect(eventsOf(news())).toEqual({ caller: [], callerTab: [], callee: [], calleeTab: ['call.cancelled'] })
    }
  })

  test('[INV7] [PLACE2] after a crash, from a tab that was there before: it takes the call that rings', async () => {
    const four = await connectFour(service())
    const callUuid = await callIn('ringing', four)
    await four.caller.die()
    expect(await errorCode(four.callerTab, 'call.connected', { call_uuid: callUuid })).toBe('CALL_INVALID_STATE')
    const news = listen(four, sessionNames)
    const reply = await request(four.callerTab, 'call.invite', inviteOf(four.calleeId))
    expect(reply).toMatchObject({ event: 'call.invited', data: { call_uuid: callUuid, status: 'ringing' } })
    four.callee.send('call.accept', { call_uuid: callUuid })
    await four.callerTab.next('call.accepted')
    await quiet(four.callerTab, four.callee, four.calleeTab)
    expect(eventsOf(news())).toEqual({
      caller: [],
      callerTab: ['call.invited', 'call.accepted'],
      callee: [],
      calleeTab: ['call.cancelled'],
    })
  })
}

function registerAnswered(service: () => Service): void {
  for (const status of ['accepted', 'connected'] as const) {
    test(`[INV7] the inviter's place in a call that is ${status} is vacant: that call ends as superseded first`, async () => {
      for (const side of ['caller', 'callee'] as const) {
        const four = await connectFour(service())
        const old = await callIn(status, four)
        const [gone, tab, peer] =
          side === 'caller' ? [four.caller, four.callerTab, four.callee] : [four.callee, four.calleeTab, four.caller]
        await gone.die()
        // Refused, and nothing taken; but after it the loss is known [PLACE4].
        const wrongSide = side === 'caller' ? 'call.accept' : 'call.cancel'
        expect(await errorCode(tab, wrongSide, { call_uuid: old })).toBe('CALL_NOT_PARTICIPANT')
        const heard = peer.events().length
        const invitation =
          side === 'caller' ? inviteOf(four.calleeId) : { callee_user_id: four.callerId, callee_role: 'customer' }
        const reply = await request(tab, 'call.invite', invitation)
        expect(reply?.event).toBe('call.invited')
        expect(reply?.data.call_uuid).not.toBe(old)
        await quiet(tab, peer)
        expect(peer.events().slice(heard)).toEqual(['call.ended', 'call.ringing'])
        const ended = await peer.next('call.ended')
        expect(ended.data).toMatchObject({ call_uuid: old, status: 'ended', reason: 'superseded' })
        const record = await recordOf(service(), { user_id: four.callerId, role: 'customer' }, old)
        expect(record).toMatchObject({ status: 'ended', end_reason: 'superseded' })
      }
    })
  }

  test("[INV7] the inviter's place is held: both calls go on", async () => {
    const four = await connectFour(service())
    const old = await callIn('connected', four)
    const reply = await request(four.callerTab, 'call.invite', inviteOf(four.calleeId))
    expect(reply?.event).toBe('call.invited')
    const record = await recordOf(service(), { user_id: four.callerId, role: 'customer' }, old)
    expect(record.status).toBe('connected')
  })
}
