import { describe, expect, test } from 'bun:test'
import { someone } from '@ringwire/testkit/flows'
import type { Service } from '@ringwire/testkit/service'
import { about, answeredCall, candidatesOf, connectExtended } from '../../support/extended-flows.ts'
import { agent, namesOf, newCall, threeOf, transfer, transferred } from '../../support/transfer-flows.ts'
import { ask } from '../backend/calls.ts'
import { type Start, serviceFor } from '../calls/composition.ts'

const candidate = (n: number) => ({ candidate: `candidate:${n}`, sdpMid: '0', sdpMLineIndex: 0 })

/** Calls that are transferred again, three people in a circle, and people who are away or cannot follow [XFER1]. */
export function registerTransferChains(name: string, start: Start): void {
  describe(`transfers of transfers, ${name}`, () => {
    const service = serviceFor(start)
    registerCircles(service)
    registerMissed(service)
    registerConsultations(service)
  })
}

function registerCircles(service: () => Service): void {
  test('[XFER1] a call goes round: Ben gives Ann to Eva, and Eva gives her back', async () => {
    const three = await threeOf(service())
    const { ann, ben, eva, ids, first } = three
    const second = await transferred(three)
    await eva.request('call.accept', { call_uuid: second })
    await ben.next('call.ended', about(first))
    const reply = await eva.request('call.transfer', { call_uuid: second, to_role: 'agent', to_user_id: ids.ben })
    const third = reply.data.new_call_uuid
    expect((await ben.next('call.ringing', about(third))).data).toMatchObject({
      ...{ caller_user_id: ids.ann, transferred_from: second, transferred_by: { user_id: ids.eva } },
    })
    await ben.request('call.accept', { call_uuid: third })
    await eva.next('call.ended', about(second))
    await ann.request('webrtc.ice_candidate', { call_uuid: third, candidate: candidate(4) })
    await ben.next('webrtc.ice_candidate', about(third))
    expect(candidatesOf(ben, third)).toEqual([4])
    const told = namesOf(ann, first, second, third)
    const pair = (from: string, to: string) => [
      ['call.transferring', from],
      ['call.accepted', to],
      ['call.ended', from],
    ]
    expect(told).toEqual([['call.accepted', first], ...pair(first, second), ...pair(second, third)])
    const { data } = await service().history(await service().token({ user_id: ids.ann, role: 'customer' }))
    const origins = data.map((call: { transferred_from?: string }) => call.transferred_from)
    expect(origins).toEqual([second, first, undefined])
  })

  test('[XFER1] three people talk to each other in three calls: none of them can hand one over to another', async () => {
    const three = await threeOf(service())
    const { ann, ben, eva, ids, first } = three
    const second = await answeredCall({ caller: ben, callee: eva, callerId: ids.ben, calleeId: ids.eva })
    const third = await answeredCall({ caller: ann, callee: eva, callerId: ids.ann, calleeId: ids.eva })
    const state = async (data: object) => (await ben.request('call.transfer', data)).error?.code
    expect(await state({ call_uuid: first, to_call_uuid: second })).toBe('CALL_INVALID_STATE')
    expect(await state({ call_uuid: first, to_role: 'agent', to_user_id: ids.eva })).toBe('CALL_INVALID_STATE')
    expect(await state({ call_uuid: second, to_call_uuid: first })).toBe('CALL_PEER_ROLE_NOT_ALLOWED')
    // Once Ann and Eva have hung up, nothing is between them.
    await eva.request('call.end', { call_uuid: third })
    await ann.next('call.ended', about(third))
    const { data } = await ben.request('call.transfer', { call_uuid: first, to_call_uuid: second })
    await Promise.all([ann.next('call.ended', about(first)), eva.next('call.ended', about(second))])
    expect((await ask(service(), 'GET', `calls/${data.new_call_uuid}`)).body.call.status).toBe('accepted')
  })

  test('[XFER1] two transfers and a consultation at once: whatever becomes of them, no two people are in two calls', async () => {
    const three = await threeOf(service())
    const { ann, ben, eva, ids, first } = three
    const second = await answeredCall({ caller: ben, callee: eva, callerId: ids.ben, calleeId: ids.eva })
    await Promise.all([
      ben.request('call.transfer', { call_uuid: first, to_role: 'agent', to_user_id: ids.eva }),
      eva.request('call.transfer', { call_uuid: second, to_role: 'agent', to_user_id: someone('max') }),
      ben.request('call.transfer', { call_uuid: first, to_call_uuid: second }),
    ])
    await Promise.all([ann.settle(), ben.settle(), eva.settle()])
    const pairs = new Set<string>()
    const { data } = (await ask(service(), 'GET', `calls?status=live&user_id=${ids.ben}&role=agent`)).body
    const more = (await ask(service(), 'GET', `calls?status=live&user_id=${ids.eva}&role=agent`)).body.data
    const live = new Map([...data, ...more].map((call) => [call.call_uuid, call]))
    for (const { caller, callee } of live.values()) {
      const pair = [caller.user_id, callee.user_id].sort().join()
      expect([pair, pairs.has(pair)]).toEqual([pair, false])
      pairs.add(pair)
    }
    for (const call_uuid of live.keys()) await ask(service(), 'POST', `calls/${call_uuid}/end`)
  })
}

function registerMissed(service: () => Service): void {
  test('[XFER1] [GROUP1] nobody of a group answers in its time: the transfer has failed, and the call goes on', async () => {
    const three = await threeOf(service())
    const { ann, ben, eva, ids, first } = three
    const group = someone('group')
    const settings = { members: [ids.eva], strategy: 'all', ring_ms: 5_000 }
    await ask(service(), 'PUT', `groups/agent/${group}`, settings)
    const reply = await ben.request('call.transfer', { call_uuid: first, to_role: 'agent', to_group: group })
    const next = reply.data.new_call_uuid
    await eva.next('call.ringing', about(next))
    const failed = { call_uuid: first, new_call_uuid: next, status: 'missed', end_reason: 'no_answer' }
    for (const client of [ann, ben]) {
      expect((await client.next('call.transfer_failed', newCall(next))).data).toEqual(failed)
    }
    expect((await eva.next('call.missed', about(next))).data).toMatchObject({ caller_user_id: ids.ann })
    await ann.request('webrtc.ice_candidate', { call_uuid: first, candidate: candidate(2) })
    await ben.next('webrtc.ice_candidate', about(first))
    const shown = (await ask(service(), 'GET', `calls/${next}`)).body.call
    expect(shown).toMatchObject({ status: 'missed', transferred_from: first, accepted_at: null })
  }, 60_000)
}

function registerConsultations(service: () => Service): void {
  test('[XFER1] [EXT6] a base client as the other side of a consultation: refused, and both calls go on', async () => {
    const three = await threeOf(service())
    const { ann, ben, ids, first } = three
    const maxId = someone('max')
    const base = await service().connect(agent(maxId, 'Max'))
    const second = (await ben.request('call.invite', { callee_user_id: maxId, callee_role: 'agent' })).data.call_uuid
    await base.next('call.ringing')
    base.send('call.accept', { call_uuid: second })
    await ben.next('call.accepted', about(second))
    const refused = await ben.request('call.transfer', { call_uuid: first, to_call_uuid: second })
    expect(refused.error).toMatchObject({ code: 'NOT_SUPPORTED_BY_PEER', field: 'to_call_uuid' })
    // The same where that call is the one to transfer.
    const turned = await ben.request('call.transfer', { call_uuid: second, to_role: 'agent', to_user_id: ids.eva })
    expect(turned.error).toMatchObject({ code: 'NOT_SUPPORTED_BY_PEER' })
    expect(turned.error.field).toBeUndefined()
    await ann.request('webrtc.ice_candidate', { call_uuid: first, candidate: candidate(1) })
    await ben.next('webrtc.ice_candidate', about(first))
    base.send('webrtc.ice_candidate', { call_uuid: second, candidate: candidate(2) })
    await ben.next('webrtc.ice_candidate', about(second))
    expect(base.events()).toEqual(['auth.ok', 'call.ringing'])
    base.close()
  })

  test('[XFER1] [PEER1] who is connected with somebody who is away reads that with the new call, and when it is back', async () => {
    const three = await threeOf(service())
    const { ann, ben, eva, ids, first } = three
    const second = await answeredCall({ caller: ben, callee: eva, callerId: ids.ben, calleeId: ids.eva })
    await eva.die()
    const away = (await ben.next('call.peer_away', about(second))).data
    const { data } = await ben.request('call.transfer', { call_uuid: first, to_call_uuid: second })
    const next = data.new_call_uuid
    const told = await ann.next('call.transferring', newCall(next))
    expect(told.data.to).toEqual({
      ...{ user_id: ids.eva, role: 'agent', display_name: 'Eva' },
      away: { since: away.since, ends_at: away.ends_at },
    })
    // A client that comes back reads the same.
    await ann.die()
    await ann.connect()
    expect(ann.hello?.data.active_calls).toMatchObject([{ call_uuid: next, peer: { away: told.data.to.away } }])
    await eva.connect()
    const news = await eva.next('call.transferring', newCall(next))
    expect(news.data.to).toEqual({ user_id: ids.ann, role: 'customer', display_name: 'Ann' })
    await ann.next('call.peer_back', about(next))
    expect(namesOf(ann, next).filter(([event]) => event === 'call.peer_away')).toEqual([])
  })

  test('[XFER1] [EXT6] a tab of the side that is transferred, which holds no place, hears nothing of it', async () => {
    const three = await threeOf(service())
    const tab = await connectExtended(
      service(),
      { user_id: three.ids.ann, role: 'customer', device_id: 'tab' },
      transfer,
    )
    const next = await transferred(three)
    await three.eva.request('call.accept', { call_uuid: next })
    await three.ben.next('call.ended', about(three.first))
    await tab.settle()
    expect(namesOf(tab, three.first, next)).toEqual([])
    tab.stop()
  })
}
