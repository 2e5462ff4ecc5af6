import { describe, expect, test } from 'bun:test'
import { acceptedCall, candidate, connectPair, invite, someone } from '@ringwire/testkit/flows'
import { answer, burst, inviteOf, offer, quiet, received, recordOf, request } from '../../support/sessions.ts'
import { type Start, serviceFor } from './composition.ts'

const uuid = expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/)
const instant = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)

/** Every event of the interface's tables: fields, types, direction. Events are compared whole: nothing else is in them. */
export function registerInterfaceEvents(name: string, start: Start): void {
  describe(`events of the interface, ${name}`, () => {
    const service = serviceFor(start)
    registerPushed(service)
    registerRequests(service)
    registerRelays(service)
    registerRules(service)
  })
}

type TheService = ReturnType<typeof serviceFor>

function registerPushed(service: TheService): void {
  test('[interface] event auth.ok: fields, types, and success on top', async () => {
    const userId = someone('user')
    const client = await service().connect({ user_id: userId, role: 'customer', display_name: 'Ada' })
    expect(client.all).toEqual([
      {
        event: 'auth.ok',
        success: true,
        data: { user_id: userId, role: 'customer', display_name: 'Ada', socket_id: expect.stringMatching(/^\S{20,}$/) },
      },
    ])
  })

  test('[interface] event call.ringing: fields and types, to the callee alone', async () => {
    const { caller, callee, callerId, calleeId } = await connectPair(service())
    const callUuid = await invite(caller, calleeId, { context_type: 'ticket', context_id: 't-7', call_type: 'video' })
    await quiet(caller, callee)
    expect(received(callee).slice(1)).toEqual([
      {
        event: 'call.ringing',
        data: {
          call_uuid: callUuid,
          caller_user_id: callerId,
          caller_role: 'customer',
          display_name: callerId,
          context_type: 'ticket',
          context_id: 't-7',
          call_type: 'video',
          ring_timeout_ms: expect.any(Number),
          expires_at: instant,
        },
      },
    ])
    expect(callUuid).toEqual(uuid)
    expect(received(caller).map(({ event }) => event)).toEqual(['auth.ok', 'call.invited'])
  })

  test('[interface] event call.accepted: fields and types, to the caller alone', async () => {
    const pair = await connectPair(service())
    const callUuid = await acceptedCall(pair)
    await quiet(pair.caller, pair.callee)
    expect(received(pair.caller).slice(2)).toEqual([
      { event: 'call.accepted', data: { call_uuid: callUuid, status: 'accepted' } },
    ])
    expect(received(pair.callee).map(({ event }) => event)).toEqual(['auth.ok', 'call.ringing'])
  })

  test('[interface] event call.missed: fields and types, to both peers', async () => {
    const { caller, callee, callerId, calleeId } = await connectPair(service())
    const callUuid = await invite(caller, calleeId, { ring_timeout_ms: 1, call_type: 'video' })
    const missed = {
      event: 'call.missed',
      data: {
        call_uuid: callUuid,
        status: 'missed',
        reason: 'no_answer',
        caller_user_id: callerId,
        caller_role: 'customer',
        callee_user_id: calleeId,
        callee_role: 'agent',
        display_name: callerId,
        context_type: 'order',
        context_id: 'order-1',
        call_type: 'video',
        started_at: instant,
        ended_at: instant,
      },
    }
    expect(await caller.next('call.missed')).toEqual(missed)
    expect(await callee.next('call.missed')).toEqual(missed)
  })

  test('[interface] event call.error: fields and types, with the request_id of the request', async () => {
    const { caller } = await connectPair(service())
    caller.send('call.accept', { call_uuid: crypto.randomUUID() }, 'my-request')
    const error = { code: 'CALL_NOT_FOUND', message: expect.any(String) }
    expect(await caller.next('call.error')).toEqual({
      event: 'call.error',
      request_id: 'my-request',
      error,
      data: { error },
    })
  })
}

function registerRequests(service: TheService): void {
  test('[interface] event call.invite: starts an outgoing call', async () => {
    const { caller, callee, calleeId } = await connectPair(service())
    caller.send('call.invite', {
      callee_user_id: calleeId,
      callee_role: 'agent',
      context_type: 'ticket',
      context_id: 't-7',
    })
    const ringing = await callee.next('call.ringing')
    expect(ringing.data).toMatchObject({ context_type: 'ticket', context_id: 't-7' })
  })

  test('[interface] event call.accept, call.connected, call.end: the callee answers, media flows, either peer ends', async () => {
    for (const ender of ['caller', 'callee'] as const) {
      const pair = await connectPair(service())
      const callUuid = await acceptedCall(pair)
      const other = ender === 'caller' ? pair.callee : pair.caller
      pair[ender].send('call.connected', { call_uuid: callUuid })
      await quiet(pair.caller, pair.callee)
      const wish = { user_id: pair.callerId, role: 'customer' }
      expect(await recordOf(service(), wish, callUuid)).toMatchObject({ status: 'connected', connected_at: instant })

      pair[ender].send('call.end', { call_uuid: callUuid })
      expect((await other.next('call.ended')).data).toMatchObject({ call_uuid: callUuid, status: 'ended' })
      expect(await recordOf(service(), wish, callUuid)).toMatchObject({ status: 'ended', ended_at: instant })
      await quiet(pair.caller, pair.callee)
      for (const client of [pair.caller, pair.callee]) {
        expect(client.events()).not.toContain('call.connected')
        expect(client.events()).not.toContain('call.error')
      }
    }
  })

  test('[interface] call.end reaches the other peer, and history says ended', async () => {
    const pair = await connectPair(service())
    const callUuid = await acceptedCall(pair)
    pair.caller.send('call.end', { call_uuid: callUuid })
    const ended = await pair.callee.next('call.ended')
    expect(ended.data).toMatchObject({ call_uuid: callUuid, status: 'ended', reason: 'hangup' })
    const record = await recordOf(service(), { user_id: pair.calleeId, role: 'agent' }, callUuid)
    expect(record).toMatchObject({ status: 'ended', end_reason: 'hangup' })
  })

  test('[interface] event call.reject: rejects an incoming call', async () => {
    const { caller, callee, calleeId, callerId } = await connectPair(service())
    const callUuid = await invite(caller, calleeId)
    callee.send('call.reject', { call_uuid: callUuid })
    expect((await caller.next('call.rejected')).data).toMatchObject({ call_uuid: callUuid, status: 'rejected' })
    const record = await recordOf(service(), { user_id: callerId, role: 'customer' }, callUuid)
    expect(record).toMatchObject({ status: 'rejected' })
  })

  test('[interface] event call.cancel: cancels before the media connects', async () => {
    for (const answered of [false, true]) {
      const pair = await connectPair(service())
      const callUuid = answered ? await acceptedCall(pair) : await invite(pair.caller, pair.calleeId)
      pair.caller.send('call.cancel', { call_uuid: callUuid })
      expect((await pair.callee.next('call.cancelled')).data).toMatchObject({
        call_uuid: callUuid,
        status: 'cancelled',
      })
    }
  })

  test('[interface] a client sends no event that only the service sends', async () => {
    const pair = await connectPair(service())
    const callUuid = await acceptedCall(pair)
    for (const event of ['auth.ok', 'call.ringing', 'call.accepted', 'call.missed', 'call.error', 'call.invited']) {
      const reply = await request(pair.caller, event, { call_uuid: callUuid })
      expect(reply).toMatchObject({ event: 'call.error', error: { code: 'UNKNOWN_EVENT' } })
    }
    await quiet(pair.caller, pair.callee)
    expect(received(pair.callee).map(({ event }) => event)).toEqual(['auth.ok', 'call.ringing'])
  })
}

function registerRelays(service: TheService): void {
  const sdpOf = (event: string, callUuid: string) => (event === 'webrtc.offer' ? offer(callUuid) : answer(callUuid))

  for (const event of ['webrtc.offer', 'webrtc.answer'] as const) {
    test(`[interface] event ${event}: fields and types, from either peer to the other`, async () => {
      const pair = await connectPair(service())
      const callUuid = await acceptedCall(pair)
      const type = event === 'webrtc.offer' ? 'offer' : 'answer'
      for (const [from, to, userId, role] of [
        [pair.caller, pair.callee, pair.callerId, 'customer'],
        [pair.callee, pair.caller, pair.calleeId, 'agent'],
      ] as const) {
        from.send(event, sdpOf(event, callUuid), 'with-a-request-id')
        expect(await to.next(event)).toEqual({
          event,
          data: { call_uuid: callUuid, sdp: { type, sdp: `v=0 ${type}` }, from_user_id: userId, from_role: role },
        })
      }
    })
  }

  test('[interface] event webrtc.ice_candidate: fields and types, from either peer to the other', async () => {
    const pair = await connectPair(service())
    const callUuid = await acceptedCall(pair)
    for (const [from, to, userId, role] of [
      [pair.caller, pair.callee, pair.callerId, 'customer'],
      [pair.callee, pair.caller, pair.calleeId, 'agent'],
    ] as const) {
      from.send('webrtc.ice_candidate', candidate(callUuid, 1), 'with-a-request-id')
      expect(await to.next('webrtc.ice_candidate')).toEqual({
        event: 'webrtc.ice_candidate',
        data: {
          call_uuid: callUuid,
          candidate: { candidate: 'candidate:1', sdpMid: '0', sdpMLineIndex: 0 },
          from_user_id: userId,
          from_role: role,
        },
      })
    }
  })
}

function registerRules(service: TheService): void {
  test('[interface] rule 1: an invite outside allowed_peer_roles is refused with the request_id and rings nobody', async () => {
    const { caller, callee, callerId } = await connectPair(service())
    const stranger = someone('customer')
    const other = await service().connect({ user_id: stranger, role: 'customer' })
    caller.send('call.invite', { callee_user_id: stranger, callee_role: 'customer' }, 'r-1')
    const message = 'No role "customer" may be called with this token. It allows: agent.'
    const error = { code: 'CALL_PEER_ROLE_NOT_ALLOWED', message }
    expect(await caller.next('call.error')).toEqual({
      event: 'call.error',
      request_id: 'r-1',
      error,
      data: { error },
    })
    await quiet(caller, callee, other)
    expect(received(other).map(({ event }) => event)).toEqual(['auth.ok'])
    const history = await service().history(await service().token({ user_id: callerId, role: 'customer' }))
    expect(history.data).toEqual([])
  })

  test('[interface] rules 2 and 3: an accepted invite rings at the callee, an accept reaches the caller', async () => {
    const { caller, callee, calleeId } = await connectPair(service())
    caller.send('call.invite', inviteOf(calleeId))
    const callUuid = (await callee.next('call.ringing')).data.call_uuid
    callee.send('call.accept', { call_uuid: callUuid })
    expect((await caller.next('call.accepted')).data).toEqual({ call_uuid: callUuid, status: 'accepted' })
  })

  test('[interface] rule 4: all three webrtc events reach the other peer, in order, and nobody else', async () => {
    const pair = await connectPair(service())
    const strangers = await connectPair(service())
    const callUuid = await acceptedCall(pair)
    burst(pair.caller, [
      ['webrtc.offer', offer(callUuid)],
      ['webrtc.ice_candidate', candidate(callUuid, 1)],
      ['webrtc.answer', answer(callUuid)],
    ])
    await quiet(pair.caller, pair.callee, strangers.caller, strangers.callee)
    const relayed = ['webrtc.offer', 'webrtc.ice_candidate', 'webrtc.answer']
    expect(pair.callee.events().slice(2)).toEqual(relayed)
    for (const client of [pair.caller, strangers.caller, strangers.callee]) {
      expect(client.events().filter((event) => event.startsWith('webrtc.'))).toEqual([])
    }
  })

  test('[ENV4] pushes carry no request_id, though every request had one', async () => {
    const pair = await connectPair(service())
    const callUuid = crypto.randomUUID()
    const [caller, callee] = [pair.caller, pair.callee]
    burst(caller, [
      ['call.invite', inviteOf(pair.calleeId, { call_uuid: callUuid }), 'r-1'],
      ['webrtc.offer', offer(callUuid), 'r-2'],
    ])
    await callee.next('call.ringing')
    burst(callee, [
      ['call.accept', { call_uuid: callUuid }, 'r-3'],
      ['webrtc.answer', answer(callUuid), 'r-4'],
    ])
    await caller.next('webrtc.answer')
    burst(caller, [
      ['webrtc.ice_candidate', candidate(callUuid, 1), 'r-5'],
      ['call.connected', { call_uuid: callUuid }, 'r-6'],
      ['call.end', { call_uuid: callUuid }, 'r-7'],
    ])
    await callee.next('call.ended')
    await quiet(caller, callee)
    for (const message of [...received(caller), ...received(callee)]) {
      if (message.event === 'call.invited') expect(message.request_id).toBe('r-1')
      else expect(message).not.toHaveProperty('request_id')
    }
    expect(received(callee).map(({ event }) => event)).toEqual([
      'auth.ok',
      'call.ringing',
      'webrtc.offer',
      'webrtc.ice_candidate',
      'call.ended',
    ])
  })
}
