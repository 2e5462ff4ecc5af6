import { describe, expect, test } from 'bun:test'
import { someone } from '@ringwire/testkit/flows'
import type { Service } from '@ringwire/testkit/service'
import { connectExtended } from '../../support/extended-flows.ts'
import { quiet, recordOf, request } from '../../support/sessions.ts'
import { ask } from '../backend/calls.ts'
import { type Start, serviceFor } from './composition.ts'

/** Calls to groups that ring at every member [GROUP1]. */
export function registerGroups(name: string, start: Start): void {
  describe(`calls to groups, ${name}`, () => {
    const service = serviceFor(start)
    registerRings(service)
    registerEnds(service)
    registerInvites(service)
    registerWho(service)
  })
}

interface Wish {
  readonly members?: number
  readonly more?: readonly string[]
  readonly group?: object
}

/** A group, its members, each with a session, and a caller. */
export async function people(service: Service, { members = 3, more = [], group = {} }: Wish = {}) {
  const callerId = someone('caller')
  const ids = Array.from({ length: members }, () => someone('member'))
  const name = someone('group')
  const body = { members: [...ids, ...more], strategy: 'all', ...group }
  expect((await ask(service, 'PUT', `groups/agent/${name}`, body)).status).toBe(200)
  const caller = await service.connect({ user_id: callerId, role: 'customer' })
  const connected = await Promise.all(ids.map((user_id) => service.connect({ user_id, role: 'agent' })))
  const invite = async (data: object = {}) =>
    request(caller, 'call.invite', { callee_role: 'agent', callee_group: name, ...data })
  return { callerId, ids, name, caller, members: connected, invite }
}
export type People = Awaited<ReturnType<typeof people>>

/** The call rings at everybody. */
async function ringing({ invite, members, name }: People, data: object = {}): Promise<string> {
  const reply = await invite(data)
  expect(reply).toMatchObject({ event: 'call.invited', data: { status: 'ringing' } })
  const rings = await Promise.all(members.map((member) => member.next('call.ringing')))
  const { call_uuid } = reply?.data ?? {}
  for (const { data } of rings) expect(data).toMatchObject({ call_uuid, callee_group: name })
  return call_uuid
}

export const codeOf = (reply: Awaited<ReturnType<typeof request>>) => reply?.error?.code

export const stopped = (reason: string, status: string) => ({ reason, status, ended_at: null })

function registerRings(service: () => Service): void {
  test('[GROUP1] it rings at every member, the first accept wins, and the others hear that it was answered', async () => {
    const all = await people(service())
    const call_uuid = await ringing(all)
    const [ann, ben, eve] = all.members
    const who = { user_id: all.callerId, role: 'customer' }
    expect((await recordOf(service(), who, call_uuid)).peer).toEqual({
      ...{ user_id: null, role: 'agent', group: all.name, display_name: null },
    })
    const shown = (await ask(service(), 'GET', `calls/${call_uuid}`)).body.call
    expect(shown.callee).toEqual({ user_id: null, role: 'agent', group: all.name, display_name: null })
    ben?.send('call.accept', { call_uuid })
    await all.caller.next('call.accepted')
    for (const other of [ann, eve])
      expect((await other?.next('call.cancelled'))?.data).toMatchObject(stopped('answered_elsewhere', 'accepted'))
    expect((await recordOf(service(), who, call_uuid)).peer).toMatchObject({ user_id: all.ids[1], group: all.name })
    // Nobody else has a say any more.
    expect(codeOf(await request(ann as never, 'call.accept', { call_uuid }))).toBe('CALL_ALREADY_ANSWERED')
    expect(codeOf(await request(ann as never, 'call.end', { call_uuid }))).toBe('CALL_NOT_PARTICIPANT')
    all.caller.send('call.end', { call_uuid })
    await ben?.next('call.ended')
    await quiet(all.caller, ...all.members)
    expect(eve?.events()).toEqual(['auth.ok', 'call.ringing', 'call.cancelled'])
    expect(ben?.events()).toEqual(['auth.ok', 'call.ringing', 'call.ended'])
  })

  test('[GROUP1] relays of the two who talk reach them, and no other member', async () => {
    const all = await people(service())
    const call_uuid = await ringing(all)
    const [ann, ben, eve] = all.members
    const offer = { call_uuid, sdp: { type: 'offer', sdp: 'v=0' } }
    all.caller.send('webrtc.offer', offer)
    ann?.send('call.accept', { call_uuid })
    expect((await ann?.next('webrtc.offer'))?.data).toMatchObject({ call_uuid, from_user_id: all.callerId })
    ann?.send('webrtc.answer', { call_uuid, sdp: { type: 'answer', sdp: 'v=0' } })
    expect((await all.caller.next('webrtc.answer')).data).toMatchObject({ from_user_id: all.ids[0] })
    expect(codeOf(await request(ben as never, 'webrtc.offer', offer))).toBe('CALL_NOT_PARTICIPANT')
    await quiet(all.caller, ...all.members)
    expect(eve?.events()).toEqual(['auth.ok', 'call.ringing', 'call.cancelled'])
  })

  test('[GROUP1] a member who comes while it rings hears it, and so does one who comes back', async () => {
    const late = someone('late')
    const all = await people(service(), { more: [late] })
    const call_uuid = await ringing(all)
    const base = await service().connect({ user_id: late, role: 'agent' })
    expect((await base.next('call.ringing')).data).toMatchObject({ call_uuid })
    const extended = await connectExtended(service(), { user_id: late, role: 'agent' })
    expect((await extended.next('call.ringing')).data).toMatchObject({ call_uuid })
    const stranger = await service().connect({ user_id: someone('stranger'), role: 'agent' })
    base.send('call.accept', { call_uuid })
    expect((await extended.next('call.cancelled')).data).toMatchObject(stopped('answered_elsewhere', 'accepted'))
    await Promise.all(all.members.map((member) => member.next('call.cancelled')))
    expect(codeOf(await request(stranger, 'call.accept', { call_uuid }))).toBe('CALL_NOT_FOUND')
    await quiet(stranger)
    expect(stranger.events().filter((event) => event === 'call.ringing')).toEqual([])
  })

  test('[GROUP1] a member who is in a call is not rung, nor is the caller', async () => {
    const callerId = someone('caller')
    const all = await people(service(), { more: [callerId] })
    const [ann, ben, eve] = all.members
    const other = await service().connect({ user_id: someone('other'), role: 'customer' })
    const busy = await request(other, 'call.invite', { callee_role: 'agent', callee_user_id: all.ids[1] })
    await ben?.next('call.ringing')
    ben?.send('call.accept', { call_uuid: busy?.data.call_uuid })
    await other.next('call.accepted')
    const agent = { user_id: callerId, role: 'agent', allowed_peer_role: 'agent' }
    const [caller, tab] = [await service().connect(agent), await service().connect(agent)]
    const call = await request(caller, 'call.invite', { callee_role: 'agent', callee_group: all.name })
    await Promise.all([ann, eve].map((member) => member?.next('call.ringing')))
    expect(codeOf(await request(ben as never, 'call.accept', call?.data))).toBe('CALL_NOT_FOUND')
    await quiet(...all.members, tab)
    expect(tab.events()).toEqual(['auth.ok'])
    expect(ben?.events().filter((event) => event === 'call.ringing')).toHaveLength(1)
  })
}

function registerEnds(service: () => Service): void {
  test('[GROUP1] a decline silences that member only; when all have declined, the call is rejected', async () => {
    const all = await people(service())
    const [ann, ben, eve] = all.members
    const tab = await service().connect({ user_id: all.ids[0] ?? '', role: 'agent' })
    const call_uuid = await ringing(all)
    await tab.next('call.ringing')
    ann?.send('call.reject', { call_uuid })
    expect((await tab.next('call.cancelled')).data).toMatchObject(stopped('rejected_elsewhere', 'ringing'))
    expect(codeOf(await request(ann as never, 'call.accept', { call_uuid }))).toBe('CALL_INVALID_STATE')
    eve?.send('call.reject', { call_uuid, reason: 'busy' })
    await quiet(all.caller, ...all.members, tab)
    expect(all.caller.events()).toEqual(['auth.ok', 'call.invited'])
    ben?.send('call.end', { call_uuid })
    const { data } = await all.caller.next('call.rejected')
    expect(data).toMatchObject({ status: 'rejected', reason: 'all_declined' })
    await quiet(...all.members, tab)
    expect(eve?.events().slice(0, 2)).toEqual(['auth.ok', 'call.ringing'])
    expect(tab.events()).toEqual(['auth.ok', 'call.ringing', 'call.cancelled'])
  })

  test('[GROUP1] the caller cancels: everybody at whom it still rings hears that', async () => {
    const all = await people(service())
    const [ann, ...others] = all.members
    const call_uuid = await ringing(all)
    ann?.send('call.reject', { call_uuid })
    await quiet(ann as never)
    all.caller.send('call.cancel', { call_uuid })
    for (const member of others)
      expect((await member.next('call.cancelled')).data).toMatchObject({ reason: 'caller_cancelled' })
    await quiet(...all.members)
    expect(ann?.events().filter((event) => event === 'call.cancelled')).toEqual([])
  })

  test('[GROUP1] [RING1] nobody answers: missed after ring_ms, or sooner if the invite says so', async () => {
    const all = await people(service(), { group: { ring_ms: 5_000 } })
    const reply = await all.invite({ ring_timeout_ms: 600_000 })
    expect(reply?.data.ring_timeout_ms).toBe(5_000)
    const short = await people(service())
    const call_uuid = await ringing(short, { ring_timeout_ms: 1_000 })
    for (const one of [short.caller, ...short.members])
      expect((await one.next('call.missed')).data).toMatchObject({
        ...{ call_uuid, callee_user_id: null, callee_role: 'agent', callee_group: short.name },
      })
    const shown = (await ask(service(), 'GET', `calls/${call_uuid}`)).body.call
    expect(shown).toMatchObject({ status: 'missed', callee: { user_id: null, group: short.name } })
  })
}

function registerInvites(service: () => Service): void {
  test('[GROUP1] [INV3] [INV7] the same invite again is a repeat, and another one takes its place', async () => {
    const all = await people(service())
    const call_uuid = crypto.randomUUID()
    await ringing(all, { call_uuid })
    expect((await all.invite({ call_uuid }))?.data.call_uuid).toBe(call_uuid)
    expect((await all.invite())?.data.call_uuid).toBe(call_uuid)
    const wrong = await request(all.caller, 'call.invite', {
      call_uuid,
      callee_role: 'agent',
      callee_user_id: all.ids[0],
    })
    expect(codeOf(wrong)).toBe('CALL_ID_CONFLICT')
    const next = await all.invite({ context_id: 'another' })
    expect(next?.data.call_uuid).not.toBe(call_uuid)
    for (const member of all.members) {
      const { data } = await member.next('call.cancelled')
      expect(data).toMatchObject({ call_uuid, reason: 'superseded' })
    }
  })

  test('[GROUP1] what an invite must not say is refused', async () => {
    const all = await people(service())
    const wrong = async (data: object) =>
      codeOf(await request(all.caller, 'call.invite', { callee_role: 'agent', ...data }))
    expect(await wrong({})).toBe('INVALID_PAYLOAD')
    expect(await wrong({ callee_group: all.name, callee_user_id: all.ids[0] })).toBe('INVALID_PAYLOAD')
    expect(await wrong({ callee_group: 'nobody knows it' })).toBe('GROUP_NOT_FOUND')
    expect(await wrong({ callee_group: all.name, callee_role: 'customer' })).toBe('CALL_PEER_ROLE_NOT_ALLOWED')
  })

  test('[GROUP1] a group without anybody rings nobody', async () => {
    const all = await people(service(), { members: 0 })
    const reply = await all.invite({ ring_timeout_ms: 500 })
    expect(reply?.data).toMatchObject({ status: 'ringing', delivered: false })
    await all.caller.next('call.missed')
  })
}

function registerWho(service: () => Service): void {
  test('[GROUP1] [EXT5] an extended caller hears who of the group answered, a base one does not', async () => {
    const { name, members, ids, caller: base, invite } = await people(service())
    const caller = await connectExtended(service(), { user_id: someone('caller'), role: 'customer' })
    const { data } = await caller.request('call.invite', { callee_role: 'agent', callee_group: name })
    await members[0]?.next('call.ringing')
    members[0]?.send('call.accept', { call_uuid: data.call_uuid })
    expect((await caller.next('call.accepted')).data).toMatchObject({ callee_user_id: ids[0], display_name: ids[0] })
    const other = (await invite())?.data.call_uuid
    members[1]?.send('call.accept', { call_uuid: other })
    expect((await base.next('call.accepted')).data).toEqual({ call_uuid: other, status: 'accepted' })
  })
}
