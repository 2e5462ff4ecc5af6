import { describe, expect, test } from 'bun:test'
import type { Client } from '@ringwire/testkit/client'
import { candidate, connectPair, someone } from '@ringwire/testkit/flows'
import { encodeFrame, opcodes } from '@ringwire/testkit/frames'
import { isLong } from '@ringwire/testkit/long'
import type { Service } from '@ringwire/testkit/service'
import {
  connectFour,
  errorCode,
  inviteOf,
  type Message,
  offer,
  quiet,
  received,
  recordOf,
  request,
} from '../../support/sessions.ts'
import { callIn } from './call-states.ts'
import { type Start, serviceFor } from './composition.ts'

const rounds = isLong ? 25 : 10

/** Sockets that open and close in the very moment in which something happens to their calls [ORD3]. */
export function registerConnecting(name: string, start: Start): void {
  describe(`connecting and closing in the middle, ${name}`, () => {
    const service = serviceFor(start)
    registerOpening(service)
    registerClosing(service)
    registerAway(service)
  })
}

/** Sends envelopes and a close frame in one write. */
function sayGoodbye(client: Client, messages: readonly Message[]): Promise<unknown> {
  const frames = messages.map(([event, data]) => encodeFrame(opcodes.text, JSON.stringify({ event, data })))
  client.raw(Buffer.concat([...frames, encodeFrame(opcodes.close, Buffer.from([3, 0xe9]))]))
  return client.closed
}

function registerOpening(service: () => Service): void {
  test(`[ORD3] a callee connects while it is invited, ${rounds} rounds: it rings once`, async () => {
    const callerId = someone('caller')
    const caller = await service().connect({ user_id: callerId, role: 'customer' })
    for (let round = 0; round < rounds; round++) {
      const calleeId = someone('callee')
      const token = await service().token({ user_id: calleeId, role: 'agent' })
      const callUuid = crypto.randomUUID()
      const callee = service().open(token)
      caller.send('call.invite', inviteOf(calleeId, { call_uuid: callUuid }))
      await callee.next('call.ringing')
      await quiet(caller, callee)
      expect(callee.events()).toEqual(['auth.ok', 'call.ringing'])
      caller.send('call.cancel', { call_uuid: callUuid })
      await callee.next('call.cancelled')
      await callee.close()
    }
  })

  test(`[ORD3] a callee connects while the caller hangs up, ${rounds} rounds: it rings and stops, or never rang`, async () => {
    const caller = await service().connect({ user_id: someone('caller'), role: 'customer' })
    for (let round = 0; round < rounds; round++) {
      const calleeId = someone('callee')
      const token = await service().token({ user_id: calleeId, role: 'agent' })
      const reply = await request(caller, 'call.invite', inviteOf(calleeId))
      const callee = service().open(token)
      // Half of the time the socket is open already when the caller hangs up.
      if (round % 2 === 0) await callee.status
      caller.send('call.cancel', { call_uuid: reply?.data.call_uuid })
      await callee.next('auth.ok')
      await quiet(caller, callee)
      const events = callee.events().slice(1)
      expect([[], ['call.ringing', 'call.cancelled']]).toContainEqual(events)
      await callee.close()
    }
  })

  test(`[ORD3] [PLACE1] a second session connects while the first one answers, ${rounds} rounds: rung and told, or neither`, async () => {
    const { caller, callee, calleeId } = await connectPair(service())
    for (let round = 0; round < rounds; round++) {
      const token = await service().token({ user_id: calleeId, role: 'agent' })
      const callUuid = crypto.randomUUID()
      caller.send('call.invite', inviteOf(calleeId, { call_uuid: callUuid }))
      await callee.next('call.ringing')
      const tab = service().open(token)
      if (round % 2 === 0) await tab.status
      callee.send('call.accept', { call_uuid: callUuid })
      await caller.next('call.accepted')
      await tab.next('auth.ok')
      await quiet(caller, callee, tab)
      expect([[], ['call.ringing', 'call.cancelled']]).toContainEqual(tab.events().slice(1))
      callee.send('call.end', { call_uuid: callUuid })
      await caller.next('call.ended')
      await tab.close()
    }
  })
}

function registerClosing(service: () => Service): void {
  test('[PLACE1] [PLACE2] accept and a goodbye in one segment: accepted, and the next session of the callee has the place', async () => {
    const { caller, callee, calleeId } = await connectPair(service())
    const callUuid = crypto.randomUUID()
    caller.send('call.invite', inviteOf(calleeId, { call_uuid: callUuid }))
    await callee.next('call.ringing')
    await sayGoodbye(callee, [['call.accept', { call_uuid: callUuid }]])
    await caller.next('call.accepted')
    const back = await service().connect({ user_id: calleeId, role: 'agent' })
    // To name the call takes the place, whether the goodbye arrived before or after the connection.
    expect(await errorCode(back, 'call.connected', { call_uuid: callUuid })).toBeUndefined()
    caller.send('webrtc.offer', offer(callUuid))
    await back.next('webrtc.offer')
    back.send('call.end', { call_uuid: callUuid })
    expect((await caller.next('call.ended')).data).toMatchObject({ call_uuid: callUuid, reason: 'hangup' })
  })

  test('[INV7] [PLACE2] invite and a goodbye in one segment: it rings, and the next session redials the same call', async () => {
    const { caller, callee, callerId, calleeId } = await connectPair(service())
    const callUuid = crypto.randomUUID()
    await sayGoodbye(caller, [['call.invite', inviteOf(calleeId, { call_uuid: callUuid })]])
    expect((await callee.next('call.ringing')).data.call_uuid).toBe(callUuid)
    const back = await service().connect({ user_id: callerId, role: 'customer' })
    const repeat = await request(back, 'call.invite', inviteOf(calleeId, { call_uuid: callUuid }))
    expect(repeat?.data).toMatchObject({ call_uuid: callUuid, status: 'ringing' })
    expect(await errorCode(back, 'call.connected', { call_uuid: callUuid })).toBe('CALL_INVALID_STATE')
    callee.send('call.accept', { call_uuid: callUuid })
    await back.next('call.accepted')
    await quiet(callee)
    expect(callee.events()).toEqual(['auth.ok', 'call.ringing'])
  })

  test('[END1] end and a goodbye in one segment: ended', async () => {
    const four = await connectFour(service())
    const callUuid = await callIn('connected', four)
    await sayGoodbye(four.caller, [['call.end', { call_uuid: callUuid, reason: 'page_closed' }]])
    expect((await four.callee.next('call.ended')).data).toMatchObject({ call_uuid: callUuid, reason: 'page_closed' })
    const record = await recordOf(service(), { user_id: four.callerId, role: 'customer' }, callUuid)
    expect(record).toMatchObject({ status: 'ended', end_reason: 'page_closed' })
  })

  test(`[PLACE2] [ORD2] the caller's network dies while the callee answers, ${rounds} rounds: the next session hears it, once`, async () => {
    for (let round = 0; round < rounds; round++) {
      const { caller, callee, callerId, calleeId } = await connectPair(service())
      const callUuid = crypto.randomUUID()
      caller.send('call.invite', inviteOf(calleeId, { call_uuid: callUuid }))
      await callee.next('call.ringing')
      callee.send('call.accept', { call_uuid: callUuid })
      callee.send('webrtc.ice_candidate', candidate(callUuid, 1))
      const gone = caller.die()
      await callee.settle()
      await gone
      const back = await service().connect({ user_id: callerId, role: 'customer' })
      await back.next('webrtc.ice_candidate')
      await quiet(callee, back)
      expect(received(back).map(({ event }) => event)).toEqual(['auth.ok', 'call.accepted', 'webrtc.ice_candidate'])
      await Promise.all([back.close(), callee.close()])
    }
  })
}

const losses: readonly (readonly [string, (client: Client) => Promise<unknown>])[] = [
  ['its network', (client) => client.die()],
  ['closed by itself', (client) => client.close(1001)],
]

function registerAway(service: () => Service): void {
  for (const [how, lose] of losses) {
    test(`[PLACE5] [REL2] for a peer who lost its socket (${how}) 256 messages are kept, in order; the 257th is refused`, async () => {
      const four = await connectFour(service())
      const callUuid = await callIn('connected', four)
      await lose(four.callee)
      // A session that asks for the place gets the answer after the loss is known [PLACE4].
      expect(await errorCode(four.calleeTab, 'call.cancel', { call_uuid: callUuid })).toBe('CALL_NOT_PARTICIPANT')
      for (let n = 0; n < 256; n++) four.caller.send('webrtc.ice_candidate', candidate(callUuid, n))
      expect(await errorCode(four.caller, 'webrtc.ice_candidate', candidate(callUuid, 256))).toBe('RELAY_BUFFER_FULL')
      const back = await service().connect({ user_id: four.calleeId, role: 'agent' })
      await quiet(back)
      expect(await errorCode(four.caller, 'webrtc.ice_candidate', candidate(callUuid, 257))).toBeUndefined()
      await quiet(back)
      const numbers = back.all
        .filter(({ event }) => event === 'webrtc.ice_candidate')
        .map(({ data }) => Number(data.candidate.candidate.split(':')[1]))
      expect(numbers).toEqual([...Array.from({ length: 256 }, (_, n) => n), 257])
    })
  }
}
