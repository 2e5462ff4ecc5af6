import { describe, expect, test } from 'bun:test'
import { connectPair, invite, someone } from '@ringwire/testkit/flows'
import type { Service } from '@ringwire/testkit/service'
import { claimsOf, signingKeyEnv, signToken } from '../../support/session-tokens.ts'
import { inviteOf, quiet, received, recordOf, request } from '../../support/sessions.ts'
import { type Env, type Start, serviceFor } from './composition.ts'

/** What an invite may hold, what it means, and which of several faults is named. */
export function registerInvites(name: string, start: Start): void {
  describe(`invites, ${name}`, () => {
    const service = serviceFor(start, signingKeyEnv)
    registerFields(service)
    registerBounds(service)
    registerReplies(service)
  })
  describe(`order of an invite's checks, ${name}`, () => {
    registerOrder(start)
  })
}

const instant = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)

function registerFields(service: () => Service): void {
  test('[INV1] callee_user_id and callee_role are required: missing, null, blank or no text names the field', async () => {
    const { caller, calleeId } = await connectPair(service())
    const right = { callee_user_id: calleeId, callee_role: 'agent' }
    for (const field of ['callee_user_id', 'callee_role'] as const) {
      for (const wrong of [undefined, null, '', '  ', 7, {}, [calleeId], 'x'.repeat(256), 'ä'.repeat(128)]) {
        const reply = await request(caller, 'call.invite', { ...right, [field]: wrong })
        expect(reply).toMatchObject({ event: 'call.error', error: { code: 'INVALID_PAYLOAD', field } })
      }
    }
    expect(caller.events()).not.toContain('call.invited')
  })

  test('[INV1] context, call type and ring timeout have defaults, also where they are null; what is unknown is ignored', async () => {
    const callerId = someone('caller')
    const context = { context_type: 'appointment', context_id: 'a-17' }
    const caller = await service().connect({ user_id: callerId, role: 'customer', ...context })
    const nothing = {
      context_type: null,
      context_id: null,
      call_type: null,
      call_uuid: null,
      ring_timeout_ms: null,
      metadata: null,
    }
    for (const more of [{}, nothing, { surprise: { deep: [1] }, status: 'ended', caller_user_id: 'somebody' }]) {
      const calleeId = someone('callee')
      const callee = await service().connect({ user_id: calleeId, role: 'agent' })
      const reply = await request(caller, 'call.invite', inviteOf(calleeId, more))
      expect(reply?.data).toMatchObject({ status: 'ringing', call_type: 'audio', ring_timeout_ms: 45_000 })
      const ringing = await callee.next('call.ringing')
      expect(ringing.data).toEqual({
        call_uuid: reply?.data.call_uuid,
        caller_user_id: callerId,
        caller_role: 'customer',
        display_name: callerId,
        ...context,
        call_type: 'audio',
        ring_timeout_ms: expect.any(Number),
        expires_at: reply?.data.expires_at,
      })
    }
  })

  test('[INV1] the fields of the invite win over the token', async () => {
    const { caller, callee, calleeId, callerId } = await connectPair(service())
    const given = { context_type: 'ticket', context_id: '', call_type: 'screen-share_2' }
    const callUuid = await invite(caller, calleeId, given)
    expect((await callee.next('call.ringing')).data).toMatchObject(given)
    const record = await recordOf(service(), { user_id: callerId, role: 'customer' }, callUuid)
    expect(record).toMatchObject(given)
  })

  test('[INV1] metadata is passed on whole, and to nobody but the callee', async () => {
    const { caller, callee, calleeId, callerId } = await connectPair(service())
    const metadata = { priority: 3, tags: ['a', null, { deep: true }], name: 'Zoë 🙂', empty: {}, ['__proto__']: 1 }
    const callUuid = await invite(caller, calleeId, { metadata })
    expect((await callee.next('call.ringing')).data.metadata).toEqual(metadata)
    callee.send('call.reject', { call_uuid: callUuid })
    await caller.next('call.rejected')
    const record = await recordOf(service(), { user_id: callerId, role: 'customer' }, callUuid)
    expect(JSON.stringify([record, ...received(caller)])).not.toContain('Zoë')
    expect(service().log).not.toContain('Zoë')

    await invite(caller, calleeId, { metadata: {} })
    expect((await callee.next('call.ringing')).data.metadata).toEqual({})
  })
}

function registerBounds(service: () => Service): void {
  test('[INV1] metadata may have 1024 bytes of JSON, and has to be an object', async () => {
    const { caller, callee, calleeId } = await connectPair(service())
    const sized = (bytes: number) => ({ a: 'x'.repeat(bytes - '{"a":""}'.length) })
    await invite(caller, calleeId, { metadata: sized(1024) })
    expect((await callee.next('call.ringing')).data.metadata).toEqual(sized(1024))
    const reply = await request(caller, 'call.invite', inviteOf(calleeId, { metadata: sized(1025) }))
    expect(reply?.error).toMatchObject({ code: 'PAYLOAD_TOO_LARGE' })
    const wide = { a: 'é'.repeat(510) }
    const wider = await request(caller, 'call.invite', inviteOf(calleeId, { metadata: wide }))
    expect(wider?.error).toMatchObject({ code: 'PAYLOAD_TOO_LARGE' })
    for (const metadata of ['text', 7, true, ['a']]) {
      const wrong = await request(caller, 'call.invite', inviteOf(calleeId, { metadata }))
      expect(wrong?.error).toMatchObject({ code: 'INVALID_PAYLOAD', field: 'metadata' })
    }
  })

  test('[INV1] ring_timeout_ms only shortens', async () => {
    const { caller, callee, calleeId } = await connectPair(service())
    for (const [asked, gets] of [
      [5_000, 5_000],
      [44_999, 44_999],
      [45_001, 45_000],
      [86_400_000, 45_000],
      [Number.MAX_SAFE_INTEGER, 45_000],
    ] as const) {
      const reply = await request(caller, 'call.invite', inviteOf(calleeId, { ring_timeout_ms: asked }))
      expect(reply?.data.ring_timeout_ms).toBe(gets)
      const { data } = await callee.next('call.ringing')
      expect(data.ring_timeout_ms).toBeLessThanOrEqual(gets)
      caller.send('call.cancel', { call_uuid: data.call_uuid })
      await callee.next('call.cancelled')
    }
    for (const wrong of [0, -1, 1.5, '5000', true, {}]) {
      const reply = await request(caller, 'call.invite', inviteOf(calleeId, { ring_timeout_ms: wrong }))
      expect(reply?.error).toMatchObject({ code: 'INVALID_PAYLOAD', field: 'ring_timeout_ms' })
    }
  })

  test('[INV1] call_type matches [a-z0-9_-]{1,32}, call_uuid is a UUID, context is text of at most 255 bytes', async () => {
    const { caller, calleeId } = await connectPair(service())
    for (const wrong of ['', 'Video', 'a b', 'x'.repeat(33), 'video\n', 7, {}, ['audio'], false]) {
      const reply = await request(caller, 'call.invite', inviteOf(calleeId, { call_type: wrong }))
      expect(reply?.error).toMatchObject({ code: 'CALL_TYPE_INVALID', field: 'call_type' })
    }
    for (const wrong of ['', 'x', 7, `${crypto.randomUUID()}0`, crypto.randomUUID().replaceAll('-', '')]) {
      const reply = await request(caller, 'call.invite', inviteOf(calleeId, { call_uuid: wrong }))
      expect(reply?.error).toMatchObject({ code: 'INVALID_PAYLOAD', field: 'call_uuid' })
    }
    for (const field of ['context_type', 'context_id']) {
      for (const wrong of [7, {}, 'x'.repeat(256), 'nul\0', '\ud800']) {
        const reply = await request(caller, 'call.invite', inviteOf(calleeId, { [field]: wrong }))
        expect(reply?.error).toMatchObject({ code: 'INVALID_PAYLOAD', field })
      }
    }
    const longest = inviteOf(calleeId, { call_type: 'x'.repeat(32), context_id: 'ä'.repeat(127) })
    expect((await request(caller, 'call.invite', longest))?.event).toBe('call.invited')
  })
}

function registerReplies(service: () => Service): void {
  test('[INV2] call.invited: fields and types, with the request_id, and without one where there was none', async () => {
    const { caller, callee, calleeId } = await connectPair(service())
    const before = Date.now()
    const reply = await request(caller, 'call.invite', inviteOf(calleeId))
    const data = {
      call_uuid: expect.stringMatching(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/),
      status: 'ringing',
      call_type: 'audio',
      ring_timeout_ms: 45_000,
      expires_at: instant,
      delivered: true,
    }
    expect(reply).toEqual({ event: 'call.invited', request_id: expect.any(String), data })
    // Calls run on a steady clock, which follows the wall clock when it is more than a second away.
    expect(Date.parse(reply?.data.expires_at) - before).toBeGreaterThanOrEqual(45_000 - 1_000)
    const ringing = await callee.next('call.ringing')
    expect(ringing.data.expires_at).toBe(reply?.data.expires_at)

    caller.send('call.cancel', { call_uuid: ringing.data.call_uuid })
    await callee.next('call.cancelled')
    caller.send('call.invite', inviteOf(calleeId))
    const bare = await caller.next('call.invited', (message) => message.request_id === undefined)
    expect(bare).toEqual({ event: 'call.invited', data })
  })

  test('[INV2] the call_uuid of call.invited is enough to cancel, from the same session', async () => {
    const { caller, callee, calleeId } = await connectPair(service())
    const callUuid = await invite(caller, calleeId)
    caller.send('call.cancel', { call_uuid: callUuid })
    expect((await callee.next('call.cancelled')).data.call_uuid).toBe(callUuid)
  })

  test('[INV4] a callee without a session still rings: delivered is false, and who connects in time is rung', async () => {
    const caller = await service().connect({ user_id: someone('caller'), role: 'customer' })
    const calleeId = someone('callee')
    const reply = await request(caller, 'call.invite', inviteOf(calleeId, { metadata: { a: 1 } }))
    expect(reply?.data).toMatchObject({ status: 'ringing', delivered: false })
    const callee = await service().connect({ user_id: calleeId, role: 'agent' })
    const ringing = await callee.next('call.ringing')
    expect(ringing.data).toMatchObject({ call_uuid: reply?.data.call_uuid, metadata: { a: 1 } })
    callee.send('call.accept', { call_uuid: ringing.data.call_uuid })
    await caller.next('call.accepted')
  })

  test('[INV4] nobody ever comes: it is missed all the same, and the callee finds it in the history', async () => {
    const caller = await service().connect({ user_id: someone('caller'), role: 'customer' })
    const calleeId = someone('callee')
    const callUuid = await invite(caller, calleeId, { ring_timeout_ms: 20 })
    expect((await caller.next('call.missed')).data).toMatchObject({ call_uuid: callUuid, callee_user_id: calleeId })
    const record = await recordOf(service(), { user_id: calleeId, role: 'agent' }, callUuid)
    expect(record).toMatchObject({ status: 'missed', end_reason: 'no_answer', direction: 'incoming' })
  })
}

/** Each invite has two faults or more: the first in the order of INV1 is named, and nothing of the later ones shows. */
function registerOrder(start: Start): void {
  const env: Env = { ...signingKeyEnv, RINGWIRE_PAIR_INVITE_RATE: '1/600', RINGWIRE_MAX_RINGING: '100' }
  const service = serviceFor(start, env)
  const connectAs = async (userId: string, claims: object) => {
    const issued = await service().token({ user_id: userId, role: 'customer' })
    const token = signToken({ ...claimsOf(issued), ...claims })
    return service().connect({ user_id: userId, role: 'customer' }, { token })
  }
  const codeOf = async (client: Awaited<ReturnType<typeof connectAs>>, data: object) =>
    (await request(client, 'call.invite', data))?.error?.code

  test('[INV1] payload before action, action before role', async () => {
    const client = await connectAs(someone('caller'), {
      allowed_actions: ['call.accept'],
      allowed_peer_roles: ['agent'],
    })
    expect(await codeOf(client, { callee_role: 'nobody' })).toBe('INVALID_PAYLOAD')
    expect(await codeOf(client, { callee_user_id: 'x', callee_role: 'nobody' })).toBe('ACTION_NOT_ALLOWED')
  })

  test('[INV1] role before self, self before type', async () => {
    const userId = someone('caller')
    const self = { callee_user_id: userId, callee_role: 'customer', call_type: '?' }
    const strict = await connectAs(userId, { allowed_peer_roles: ['agent'] })
    expect(await codeOf(strict, self)).toBe('CALL_PEER_ROLE_NOT_ALLOWED')
    const free = await connectAs(userId, { allowed_peer_roles: ['agent', 'customer'] })
    expect(await codeOf(free, self)).toBe('CALL_TO_SELF')
    expect(await codeOf(free, { ...self, callee_role: 'agent' })).toBe('CALL_TYPE_INVALID')
  })

  test('[INV1] type before repeat, repeat before limits', async () => {
    const { caller, calleeId } = await connectPair(service())
    const callUuid = await invite(caller, calleeId)
    const other = someone('other')
    expect(await codeOf(caller, inviteOf(other, { call_uuid: callUuid, call_type: '?' }))).toBe('CALL_TYPE_INVALID')
    await invite(caller, other)
    // The pair's only invite is used up; a conflict and a repeat are named before that.
    expect(await codeOf(caller, inviteOf(other, { call_uuid: callUuid }))).toBe('CALL_ID_CONFLICT')
    const repeat = await request(caller, 'call.invite', inviteOf(calleeId, { call_uuid: callUuid }))
    expect(repeat).toMatchObject({ event: 'call.invited', data: { call_uuid: callUuid } })
  })

  test('[INV1] limits before glare', async () => {
    const { caller, callee, callerId, calleeId } = await connectPair(service())
    const callUuid = await invite(caller, calleeId)
    caller.send('call.cancel', { call_uuid: callUuid })
    await callee.next('call.cancelled')
    callee.send('call.invite', { callee_user_id: callerId, callee_role: 'customer' })
    await caller.next('call.ringing')
    expect(await codeOf(caller, inviteOf(calleeId))).toBe('RATE_LIMITED')
  })

  test('[INV1] nothing about the callee shows before the role has passed', async () => {
    const { caller, callee, callerId, calleeId } = await connectPair(service())
    callee.send('call.invite', { callee_user_id: callerId, callee_role: 'customer' })
    await caller.next('call.ringing')
    const stranger = await connectAs(callerId, { allowed_peer_roles: ['supervisor'] })
    const toReal = await request(stranger, 'call.invite', inviteOf(calleeId))
    const toNobody = await request(stranger, 'call.invite', inviteOf(someone('nobody')))
    expect(toReal?.error).toEqual(toNobody?.error)
    expect(toReal?.error.code).toBe('CALL_PEER_ROLE_NOT_ALLOWED')
    await quiet(caller, callee)
    expect(callee.events()).toEqual(['auth.ok', 'call.invited'])
  })
}
