import { describe, expect, test } from 'bun:test'
import type { Client } from '@ringwire/testkit/client'
import { someone } from '@ringwire/testkit/flows'
import type { Service } from '@ringwire/testkit/service'
import { connectExtended } from '../../support/extended-flows.ts'
import { quiet, request } from '../../support/sessions.ts'
import { ask, erase } from '../backend/calls.ts'
import { type Start, serviceFor } from './composition.ts'
import { codeOf, type People, people, stopped } from './groups.ts'

/** The shortest turn, in ms. */
const turnMs = 5_000
const inTurn = { strategy: 'in_turn', member_ring_ms: turnMs }

/** Calls to groups that ring at one member after another [GROUP1]. */
export function registerTurns(name: string, start: Start): void {
  describe(`calls to groups in turn, ${name}`, () => {
    const service = serviceFor(start)
    registerOrder(service)
    registerTime(service)
    registerSkips(service)
    registerLeavers(service)
  })
}

/** The call rings at nobody yet. */
async function invited({ invite }: People, data: object = {}): Promise<string> {
  const reply = await invite(data)
  expect(reply).toMatchObject({ event: 'call.invited', data: { status: 'ringing' } })
  return reply?.data.call_uuid
}

const rings = (client: Client | undefined, call_uuid: string) =>
  (client as Client).next('call.ringing', ({ data }) => data.call_uuid === call_uuid)
const countOf = (client: Client | undefined, event: string) =>
  (client as Client).events().filter((each) => each === event).length

function registerOrder(service: () => Service): void {
  test('[GROUP1] in turn, a decline rings the next one at once; when all have declined, the call is rejected', async () => {
    const all = await people(service(), { group: inTurn })
    const [ann, ben, eve] = all.members
    const tab = await service().connect({ user_id: all.ids[0] ?? '', role: 'agent' })
    const call_uuid = await invited(all)
    const { data } = await rings(ann, call_uuid)
    expect(data).toMatchObject({ callee_group: all.name, caller_user_id: all.callerId })
    expect(data.ring_timeout_ms).toBeLessThanOrEqual(turnMs)
    await rings(tab, call_uuid)
    await quiet(...all.members)
    expect([ben, eve].map((member) => countOf(member, 'call.ringing'))).toEqual([0, 0])
    ann?.send('call.reject', { call_uuid })
    expect((await tab.next('call.cancelled')).data).toMatchObject(stopped('rejected_elsewhere', 'ringing'))
    await rings(ben, call_uuid)
    expect(codeOf(await request(ann as never, 'call.accept', { call_uuid }))).toBe('CALL_INVALID_STATE')
    ben?.send('call.reject', { call_uuid, reason: 'busy' })
    await rings(eve, call_uuid)
    await quiet(all.caller, ...all.members)
    expect(all.caller.events()).toEqual(['auth.ok', 'call.invited'])
    eve?.send('call.end', { call_uuid })
    const rejected = await all.caller.next('call.rejected')
    expect(rejected.data).toMatchObject({ status: 'rejected', reason: 'all_declined' })
    await quiet(...all.members, tab)
    for (const member of all.members) expect(countOf(member, 'call.cancelled')).toBe(0)
  })

  test('[GROUP1] in turn, whoever answers is the callee, and only its own sessions hear of that', async () => {
    const all = await people(service(), { group: inTurn })
    const [ann, ben, eve] = all.members
    const tab = await service().connect({ user_id: all.ids[1] ?? '', role: 'agent' })
    const call_uuid = await invited(all)
    await rings(ann, call_uuid)
    ann?.send('call.reject', { call_uuid })
    await Promise.all([rings(ben, call_uuid), rings(tab, call_uuid)])
    ben?.send('call.accept', { call_uuid })
    await all.caller.next('call.accepted')
    expect((await tab.next('call.cancelled')).data).toMatchObject(stopped('answered_elsewhere', 'accepted'))
    all.caller.send('call.end', { call_uuid })
    await ben?.next('call.ended')
    await quiet(all.caller, ...all.members)
    expect(ann?.events()).toEqual(['auth.ok', 'call.ringing'])
    expect(eve?.events()).toEqual(['auth.ok'])
    const shown = (await ask(service(), 'GET', `calls/${call_uuid}`)).body.call
    expect(shown).toMatchObject({ status: 'ended', callee: { user_id: all.ids[1], group: all.name } })
    const { entries } = (await ask(service(), 'GET', `calls/${call_uuid}/timeline`)).body
    const turns = entries.filter(({ what }: { what: string }) => what === 'turn')
    expect(turns.map(({ who }: { who: object }) => who)).toEqual(
      all.ids.slice(0, 2).map((user_id) => ({ user_id, role: 'agent' })),
    )
  })

  test('[GROUP1] the longest idle member is first: one who answered no call, then by the end of the last answered one', async () => {
    const all = await people(service(), { group: { ...inTurn, strategy: 'longest_idle' } })
    const [ann, ben, eve] = all.members
    const other = await service().connect({ user_id: someone('other'), role: 'customer' })
    for (const [member, id] of [
      [ben, all.ids[1]],
      [ann, all.ids[0]],
    ] as const) {
      const call = await request(other, 'call.invite', { callee_role: 'agent', callee_user_id: id })
      await rings(member, call?.data.call_uuid)
      member?.send('call.accept', call?.data)
      await other.next('call.accepted')
      other.send('call.end', call?.data)
      await member?.next('call.ended')
    }
    const call_uuid = await invited(all)
    for (const member of [eve, ben, ann]) {
      await rings(member, call_uuid)
      member?.send('call.reject', { call_uuid })
    }
    await all.caller.next('call.rejected')
    for (const member of all.members)
      expect(member.all.filter(({ data }) => data.call_uuid === call_uuid)).toHaveLength(1)
  })
}

function registerTime(service: () => Service): void {
  test('[GROUP1] a turn is over after member_ring_ms, and the member hears that', async () => {
    const all = await people(service(), { members: 2, group: inTurn })
    const [ann, ben] = all.members
    const began = performance.now()
    const call_uuid = await invited(all)
    await rings(ann, call_uuid)
    const { data } = (await ann?.next('call.cancelled')) ?? {}
    expect(performance.now() - began).toBeGreaterThan(turnMs - 500)
    expect(data).toMatchObject({ ...stopped('next_member', 'ringing'), by: null })
    await rings(ben, call_uuid)
    expect(codeOf(await request(ann as never, 'call.accept', { call_uuid }))).toBe('CALL_INVALID_STATE')
    all.caller.send('call.cancel', { call_uuid })
    expect((await ben?.next('call.cancelled'))?.data).toMatchObject({ reason: 'caller_cancelled' })
    await quiet(...all.members)
    expect(ann?.events().filter((event) => event === 'call.cancelled')).toHaveLength(1)
  })

  test('[GROUP1] [ORD2] a later round rings only clients that know groups, and who declined is not rung again', async () => {
    const [annId, benId] = [someone('ann'), someone('ben')]
    const all = await people(service(), { members: 1, more: [annId, benId], group: inTurn })
    const [eve] = all.members
    const ann = await connectExtended(service(), { user_id: annId, role: 'agent' }, { can: 'group' })
    const tab = await connectExtended(service(), { user_id: annId, role: 'agent' })
    const ben = await connectExtended(service(), { user_id: benId, role: 'agent' }, { can: 'transfer' })
    const call_uuid = await invited(all)
    await rings(eve, call_uuid)
    eve?.send('call.reject', { call_uuid })
    const first = await ann.next('call.ringing')
    await tab.next('call.ringing')
    for (const client of [ann, tab])
      expect((await client.next('call.cancelled')).data).toMatchObject(stopped('next_member', 'ringing'))
    await ben.next('call.ringing')
    expect((await ben.next('call.cancelled')).data).toMatchObject(stopped('next_member', 'ringing'))
    const second = await ann.next('call.ringing')
    expect(second.data).toMatchObject({ call_uuid, callee_group: all.name })
    expect(Number(second.version)).toBeGreaterThan(Number(first.version))
    expect(await ann.request('call.accept', { call_uuid })).toMatchObject({ event: 'call.ack' })
    await all.caller.next('call.accepted')
    await quiet(eve as Client)
    for (const client of [tab, ben])
      expect(client.pushes.filter(({ event }) => event === 'call.ringing')).toHaveLength(1)
    expect(eve?.events()).toEqual(['auth.ok', 'call.ringing'])
  })

  test('[GROUP1] [RING1] nobody answers: missed when the time of the call is over, for the member whose turn it is', async () => {
    const all = await people(service(), { group: inTurn })
    const [ann, ben] = all.members
    const ringMs = 4_000
    const call_uuid = await invited(all, { ring_timeout_ms: ringMs })
    const { data } = await rings(ann, call_uuid)
    ann?.send('call.reject', { call_uuid })
    expect(data.ring_timeout_ms).toBeLessThanOrEqual(ringMs)
    await rings(ben, call_uuid)
    for (const one of [all.caller, ben]) expect((await one?.next('call.missed'))?.data).toMatchObject({ call_uuid })
    await quiet(...all.members)
    expect(all.members.map((member) => countOf(member, 'call.missed'))).toEqual([0, 1, 0])
  })
}

function registerSkips(service: () => Service): void {
  test('[GROUP1] members who are in a call, or neither connected nor with a device, are passed over', async () => {
    const [away, sleeping] = [someone('away'), someone('sleeping')]
    const all = await people(service(), { members: 2, more: [away, sleeping], group: inTurn })
    const [ann, ben] = all.members
    const wish = { user_id: sleeping, role: 'agent', device_id: 'phone' }
    const registered = await fetch(`${service().url}/v1/call/device`, {
      method: 'PUT',
      headers: { Authorization: `Bearer ${await service().token(wish)}`, 'Content-Type': 'application/json' },
      body: JSON.stringify({ platform: 'fcm', token: crypto.randomUUID() }),
    })
    expect(registered.status).toBe(200)
    const other = await service().connect({ user_id: someone('other'), role: 'customer' })
    const busy = await request(other, 'call.invite', { callee_role: 'agent', callee_user_id: all.ids[0] })
    await ann?.next('call.ringing')
    ann?.send('call.accept', busy?.data)
    await other.next('call.accepted')
    const call_uuid = await invited(all)
    await rings(ben, call_uuid)
    ben?.send('call.reject', { call_uuid })
    await quiet(...all.members)
    // It is the turn of the one who has a device: it rings there as soon as that is awake.
    const woken = await service().connect(wish)
    await rings(woken, call_uuid)
    woken.send('call.reject', { call_uuid })
    // The next round has one member who is not in a call, and nobody is there until it connects.
    const late = await service().connect({ user_id: away, role: 'agent' })
    await rings(late, call_uuid)
    late.send('call.accept', { call_uuid })
    await all.caller.next('call.accepted')
    expect(ann?.all.filter(({ data }) => data.call_uuid === call_uuid)).toEqual([])
  })

  test('[GROUP1] where nobody can be rung it is tried again each second, until the time of the call is over', async () => {
    const all = await people(service(), { members: 0, more: [someone('away'), someone('gone')], group: inTurn })
    const reply = await all.invite({ ring_timeout_ms: 2_500 })
    expect(reply?.data).toMatchObject({ status: 'ringing', delivered: false })
    await all.caller.next('call.missed')
    const { entries } = (await ask(service(), 'GET', `calls/${reply?.data.call_uuid}/timeline`)).body
    expect(entries.map(({ what }: { what: string }) => what)).toEqual(['invited', 'missed'])
  })

  test('[GROUP1] [INV5] all members are in calls: the invite is refused only where the product is set so', async () => {
    const all = await people(service(), { members: 1, group: inTurn })
    const [ann] = all.members
    const other = await service().connect({ user_id: someone('other'), role: 'customer' })
    const busy = await request(other, 'call.invite', { callee_role: 'agent', callee_user_id: all.ids[0] })
    await ann?.next('call.ringing')
    ann?.send('call.accept', busy?.data)
    await other.next('call.accepted')
    const call_uuid = await invited(all)
    await quiet(ann as Client)
    expect(countOf(ann, 'call.ringing')).toBe(1)
    ann?.send('call.end', busy?.data)
    await rings(ann, call_uuid)
  })
}

function registerLeavers(service: () => Service): void {
  test('[GROUP1] [SRV2] a member who is erased in its turn hears that, and the next one rings at once', async () => {
    const all = await people(service(), { group: inTurn })
    const [ann, ben] = all.members
    const call_uuid = await invited(all)
    await rings(ann, call_uuid)
    const erased = erase(service(), 'agent', all.ids[0] ?? '')
    await rings(ben, call_uuid)
    expect((await erased).status).toBe(200)
    ben?.send('call.accept', { call_uuid })
    await all.caller.next('call.accepted')
  })

  test('[GROUP1] a member of two groups that are called at once rings for both, and answers one of them', async () => {
    const all = await people(service(), { members: 2, group: inTurn })
    const [ann, ben] = all.members
    const second = await people(service(), { members: 0, more: all.ids, group: inTurn })
    const [one, two] = await Promise.all([invited(all), invited(second)])
    await Promise.all([rings(ann, one), rings(ann, two)])
    ann?.send('call.accept', { call_uuid: one })
    await all.caller.next('call.accepted')
    ann?.send('call.reject', { call_uuid: two })
    await rings(ben, two)
    ben?.send('call.accept', { call_uuid: two })
    await second.caller.next('call.accepted')
    await quiet(...all.members, all.caller, second.caller)
    expect(ben?.all.filter(({ data }) => data.call_uuid === one)).toEqual([])
  })

  test('[GROUP1] a group that is removed in mid-turn: the call is over, at the member at whom it rings', async () => {
    const all = await people(service(), { group: inTurn })
    const [ann, ben] = all.members
    const call_uuid = await invited(all)
    await rings(ann, call_uuid)
    expect((await ask(service(), 'DELETE', `groups/agent/${all.name}`)).status).toBe(204)
    const told = { call_uuid, status: 'cancelled', by: null }
    expect((await all.caller.next('call.cancelled')).data).toMatchObject({ ...told, reason: 'ended_by_server' })
    expect((await (ann as Client).next('call.cancelled')).data).toMatchObject({ ...told, reason: 'left_group' })
    await quiet(all.caller, ...all.members)
    expect((ben as Client).events()).toEqual(['auth.ok'])
  })

  test('[GROUP1] who leaves the group before its turn hears nothing of the call', async () => {
    const all = await people(service(), { group: inTurn })
    const [ann, ben, eve] = all.members
    const call_uuid = await invited(all)
    await rings(ann, call_uuid)
    const members = [all.ids[0], all.ids[2]]
    expect((await ask(service(), 'PUT', `groups/agent/${all.name}`, { ...inTurn, members })).status).toBe(200)
    ann?.send('call.reject', { call_uuid })
    await rings(eve, call_uuid)
    await quiet(...all.members)
    expect((ben as Client).events()).toEqual(['auth.ok'])
  })
}
