import { describe, expect, test } from 'bun:test'
import type { ExtendedClient } from '@ringwire/testkit/extended-client'
import { someone } from '@ringwire/testkit/flows'
import { until } from '@ringwire/testkit/patience'
import type { Service } from '@ringwire/testkit/service'
import { about, answeredCall, candidatesOf, connectExtended } from '../../support/extended-flows.ts'
import { setProduct } from '../../support/products.ts'
import { namesOf, newCall, roles, threeOf, toEva, transfer, transferred } from '../../support/transfer-flows.ts'
import { ask } from '../backend/calls.ts'
import { type Start, serviceFor } from '../calls/composition.ts'

const candidate = (n: number) => ({ candidate: `candidate:${n}`, sdpMid: '0', sdpMLineIndex: 0 })

/** A side of an answered call is handed over to somebody else [XFER1]. */
export function registerTransfers(name: string, start: Start): void {
  describe(`transfers, ${name}`, () => {
    const service = serviceFor(start)
    registerAnswered(service)
    registerFailed(service)
    registerRefused(service)
    registerShown(service)
  })
}

function registerAnswered(service: () => Service): void {
  test('[XFER1] the target answers: the first call ends for both, after the caller has heard of the answer, and media flows', async () => {
    const three = await threeOf(service())
    const { ann, ben, eva, ids, first } = three
    const next = await transferred(three)
    const by = { user_id: ids.ben, role: 'agent', display_name: 'Ben' }
    const ringing = eva.pushes.find(({ event }) => event === 'call.ringing')
    expect(ringing?.data).toMatchObject({
      ...{ call_uuid: next, caller_user_id: ids.ann, caller_role: 'customer', display_name: 'Ann' },
      ...{ transferred_from: first, transferred_by: by },
    })
    expect(ann.pushes.find(({ event }) => event === 'call.transferring')?.data).toEqual({
      ...{ call_uuid: first, new_call_uuid: next, status: 'ringing', direction: 'outgoing' },
      to: { user_id: ids.eva, role: 'agent', display_name: null },
    })
    await eva.request('call.accept', { call_uuid: next })
    const [ended] = await Promise.all([ben.next('call.ended', about(first)), ann.next('call.ended', about(first))])
    expect(ended.data).toMatchObject({
      ...{ status: 'ended', reason: 'transferred', by: { user_id: ids.ben, role: 'agent' } },
    })
    const told = namesOf(ann, first, next).map(([event]) => event)
    expect(told).toEqual(['call.accepted', 'call.transferring', 'call.accepted', 'call.ended'])
    expect(namesOf(ben, next)).toEqual([])
    await ann.request('webrtc.ice_candidate', { call_uuid: next, candidate: candidate(7) })
    await eva.next('webrtc.ice_candidate', about(next))
    expect(candidatesOf(eva, next)).toEqual([7])
    const late = await ben.request('webrtc.ice_candidate', { call_uuid: next, candidate: candidate(8) })
    expect(late.error.code).toBe('CALL_NOT_FOUND')
    await eva.request('call.end', { call_uuid: next })
    expect((await ann.next('call.ended', about(next))).data.reason).toBe('hangup')
  })

  test('[XFER1] a caller may transfer, too, a target may be a base client, and the new call may be transferred again', async () => {
    const three = await threeOf(service())
    const { ann, ben, ids, first } = three
    const max = someone('max')
    const base = await service().connect({ ...roles, user_id: max, role: 'agent' })
    const started = await ann.request('call.transfer', { call_uuid: first, to_role: 'agent', to_user_id: max })
    const next = started.data.new_call_uuid
    const { data } = await base.next('call.ringing')
    expect(data).toMatchObject({ call_uuid: next, caller_user_id: ids.ben, caller_role: 'agent' })
    expect(Object.keys(data).filter((key) => key.startsWith('transferred'))).toEqual([])
    base.send('call.accept', { call_uuid: next })
    await Promise.all([ben.next('call.accepted', about(next)), ann.next('call.ended', about(first))])
    // The target cannot be transferred: it did not say that it understands that. It may transfer the other side.
    const back = await ben.request('call.transfer', { call_uuid: next, to_role: 'agent', to_user_id: ids.eva })
    expect(back.error.code).toBe('NOT_SUPPORTED_BY_PEER')
    base.send('call.transfer', { call_uuid: next, to_role: 'agent', to_user_id: ids.eva }, 'r')
    expect((await base.next('call.error')).error.code).toBe('UNKNOWN_EVENT')
  })
}

function registerFailed(service: () => Service): void {
  test('[XFER1] the target declines: both hear it, the first call goes on, and may be transferred again', async () => {
    const three = await threeOf(service())
    const { ann, ben, eva, first } = three
    const declined = await transferred(three)
    await eva.request('call.reject', { call_uuid: declined, reason: 'in_a_meeting' })
    const data = { call_uuid: first, new_call_uuid: declined, status: 'rejected', end_reason: 'in_a_meeting' }
    for (const client of [ann, ben]) {
      expect((await client.next('call.transfer_failed', newCall(declined))).data).toEqual(data)
    }
    await ann.request('webrtc.ice_candidate', { call_uuid: first, candidate: candidate(1) })
    await ben.next('webrtc.ice_candidate', about(first))
    // The one that is transferred may not want it, either.
    const cancelled = await transferred(three)
    await ann.request('call.cancel', { call_uuid: cancelled })
    expect((await ben.next('call.transfer_failed', newCall(cancelled))).data).toMatchObject({
      ...{ status: 'cancelled', end_reason: 'caller_cancelled' },
    })
    expect((await eva.next('call.cancelled', about(cancelled))).data.reason).toBe('caller_cancelled')
    const answered = await transferred(three)
    await eva.request('call.accept', { call_uuid: answered })
    await ben.next('call.ended', about(first))
  })

  test('[XFER1] the first call ends meanwhile, whoever hangs up: the target stops ringing', async () => {
    for (const who of ['ann', 'ben'] as const) {
      const three = await threeOf(service())
      const { ann, ben, eva, first } = three
      const next = await transferred(three)
      await three[who].request('call.end', { call_uuid: first })
      const over = { call_uuid: next, status: 'cancelled', reason: 'transfer_cancelled', by: null }
      expect((await eva.next('call.cancelled', about(next))).data).toMatchObject(over)
      expect((await ann.next('call.cancelled', about(next))).data).toMatchObject(over)
      if (who === 'ann') await ben.next('call.ended', about(first))
      const late = await eva.request('call.accept', { call_uuid: next })
      expect(late.error).toMatchObject({ code: 'CALL_INVALID_STATE', status: 'cancelled' })
    }
  })

  test('[XFER1] [END6] the side that is transferred closes its client: nothing was hung up, and the ring goes on', async () => {
    const three = await threeOf(service())
    const { ann, ben, eva, first } = three
    const next = await transferred(three)
    await ann.leave(1000)
    await ben.next('call.peer_away', about(first))
    await eva.settle()
    expect(namesOf(eva, next)).toEqual([['call.ringing', next]])
    await eva.request('call.accept', { call_uuid: next })
    await ben.next('call.ended', about(first))
  })
}

function registerRefused(service: () => Service): void {
  test('[XFER1] who may transfer, whom, and to whom', async () => {
    const three = await threeOf(service())
    const { ann, ben, eva, ids, first } = three
    const code = async (client: ExtendedClient, data: object) =>
      (await client.request('call.transfer', { ...toEva(three), ...data })).error?.code
    expect(await code(eva, { to_user_id: 'max' })).toBe('CALL_NOT_FOUND')
    expect(await code(ben, { call_uuid: crypto.randomUUID() })).toBe('CALL_NOT_FOUND')
    expect(await code(ben, { to_user_id: ids.ben })).toBe('CALL_TO_SELF')
    expect(await code(ann, { to_user_id: ids.ben })).toBe('CALL_TO_SELF')
    expect(await code(ben, { to_role: 'doctor' })).toBe('CALL_PEER_ROLE_NOT_ALLOWED')
    expect(await code(ben, { to_group: 'sales' })).toBe('INVALID_PAYLOAD')
    expect(await code(ben, { to_group: 'sales', to_user_id: null })).toBe('GROUP_NOT_FOUND')
    expect(await code(ben, { to_user_id: null })).toBe('INVALID_PAYLOAD')
    expect(await code(ben, { to_role: null })).toBe('INVALID_PAYLOAD')
    expect(await code(ben, { metadata: { m: 'a'.repeat(1024) } })).toBe('PAYLOAD_TOO_LARGE')
    const tab = await connectExtended(service(), { ...roles, user_id: ids.ben, role: 'agent', device_id: 'tab' })
    expect(await code(tab, {})).toBe('CALL_NOT_PARTICIPANT')
    // Eva talks to Ann already, whom Ben would transfer to her.
    await ann.request('call.invite', { callee_user_id: ids.eva, callee_role: 'agent' })
    const between = (await eva.next('call.ringing')).data.call_uuid
    expect(await code(ben, {})).toBe('CALL_INVALID_STATE')
    await ann.request('call.cancel', { call_uuid: between })
    // Nothing of all that has ended or changed anything.
    const next = await transferred(three)
    expect(await code(ben, {})).toBe('CALL_INVALID_STATE')
    expect(await code(ann, { to_user_id: someone('max') })).toBe('CALL_INVALID_STATE')
    expect(await code(ann, { call_uuid: next, to_user_id: ids.ben })).toBe('CALL_INVALID_STATE')
    await eva.request('call.accept', { call_uuid: next })
    await ben.next('call.ended', about(first))
    expect(await code(ben, {})).toBe('CALL_INVALID_STATE')
  })

  test('[XFER1] both sides transfer at once: one of them does', async () => {
    const three = await threeOf(service())
    const { ann, ben, first } = three
    const max = someone('max')
    const replies = await Promise.all([
      ben.request('call.transfer', toEva(three)),
      ann.request('call.transfer', { call_uuid: first, to_role: 'agent', to_user_id: max }),
    ])
    const answers = replies.map(({ event, error }) => error?.code ?? event).sort()
    expect(answers).toEqual(['CALL_INVALID_STATE', 'call.transfer_started'])
  })

  test('[XFER1] [EXT6] a base client or one that does not list it is not transferred, and hears nothing of it', async () => {
    const [annId, benId, evaId] = [someone('ann'), someone('ben'), someone('eva')]
    const ann = await connectExtended(service(), { user_id: annId, role: 'customer' })
    const ben = await connectExtended(service(), { ...roles, user_id: benId, role: 'agent' }, transfer)
    const first = await answeredCall({ caller: ann, callee: ben, callerId: annId, calleeId: benId })
    const data = { call_uuid: first, to_role: 'agent', to_user_id: evaId }
    expect((await ben.request('call.transfer', data)).error.code).toBe('NOT_SUPPORTED_BY_PEER')
    await ann.settle()
    expect(namesOf(ann, first).map(([event]) => event)).toEqual(['call.accepted'])
  })

  test('[XFER1] [INV5] where the product refuses calls to busy people, so it does a transfer', async () => {
    const three = await threeOf(service())
    const max = someone('max')
    const other = await service().connect({ ...roles, user_id: max, role: 'agent' })
    other.send('call.invite', { callee_user_id: three.ids.eva, callee_role: 'agent' })
    const { call_uuid } = (await three.eva.next('call.ringing')).data
    await three.eva.request('call.accept', { call_uuid })
    await setProduct(service(), 'shop', '--busy', 'reject')
    try {
      await until('it is refused', async () => {
        const reply = await three.ben.request('call.transfer', toEva(three))
        if (reply.error?.code === 'CALLEE_BUSY') return true
        // The setting is not known everywhere yet.
        if (!reply.error) await three.ann.request('call.cancel', { call_uuid: reply.data.new_call_uuid })
        return false
      })
    } finally {
      await setProduct(service(), 'shop', '--busy', 'allow')
    }
    await three.ben.settle()
    expect(namesOf(three.ben, three.first).filter(([event]) => event === 'call.ended')).toEqual([])
  })
}

function registerShown(service: () => Service): void {
  test('[XFER1] history, record, timeline and what a reconnect finds say where the call came from', async () => {
    const three = await threeOf(service())
    const { ben, eva, ids, first } = three
    const next = await transferred(three)
    const by = { user_id: ids.ben, role: 'agent', display_name: 'Ben' }
    const again = await connectExtended(service(), { user_id: ids.eva, role: 'agent' })
    expect(again.hello?.data.active_calls).toMatchObject([
      { call_uuid: next, transferred_from: first, transferred_by: by },
    ])
    await eva.request('call.accept', { call_uuid: next })
    await ben.next('call.ended', about(first))
    const shown = await ask(service(), 'GET', `calls/${next}`)
    expect(shown.body.call).toMatchObject({ status: 'accepted', transferred_from: first, transferred_by: by })
    expect((await ask(service(), 'GET', `calls/${first}`)).body.call).toMatchObject({
      ...{ status: 'ended', end_reason: 'transferred', by: { user_id: ids.ben, role: 'agent' } },
    })
    const { body } = await ask(service(), 'GET', `calls/${next}/timeline`)
    expect(body.summary).toMatch(/^Ben transferred Ann to Eva, who answered after [\d.]+ s\.$/)
    const { body: of } = await ask(service(), 'GET', `calls/${first}/timeline`)
    expect(of.entries.map(({ what }: { what: string }) => what)).toContain('transferring')
    expect(of.summary).toStartWith('Ben transferred the call after ')
    const token = await service().token({ user_id: ids.eva, role: 'agent' })
    const { data } = await service().history(token)
    expect(data[0]).toMatchObject({ call_uuid: next, transferred_from: first, transferred_by: by })
  })
}
