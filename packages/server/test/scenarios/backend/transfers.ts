import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { CallView, ParticipantExport } from '@ringwire/protocol/backend'
import { someone } from '@ringwire/testkit/flows'
import { until } from '@ringwire/testkit/patience'
import { openReceiver, type Receiver } from '@ringwire/testkit/receiver'
import type { Service } from '@ringwire/testkit/service'
import { about, connectExtended } from '../../support/extended-flows.ts'
import {
  agent,
  namesOf,
  newCall,
  ringsFor,
  roles,
  type Three,
  threeOf,
  transfer,
  transferred,
} from '../../support/transfer-flows.ts'
import { finish, type Start } from '../calls/composition.ts'
import { ask, erase } from './calls.ts'

const events = ['call.ringing', 'call.accepted', 'call.ended', 'call.cancelled']

/** A backend transfers calls, and reads, exports and erases what was transferred [XFER1, SRV2]. */
export function registerBackendTransfers(name: string, start: Start): void {
  describe(`backends and transfers, ${name}`, () => {
    let running: Service
    let receiver: Receiver
    const service = () => running
    beforeAll(async () => {
      receiver = await openReceiver()
      running = await start({ RINGWIRE_WEBHOOK_ALLOW: '127.0.0.1' })
      await ask(running, 'POST', 'webhooks', { url: receiver.url, events })
    }, 240_000)
    afterAll(async () => {
      await finish(running)
      await receiver.close()
    })
    registerDone(service)
    registerRefused(service)
    registerShown(service, () => receiver)
    registerErased(service)
  })
}

const post = (service: Service, callUuid: string, body: object) =>
  ask(service, 'POST', `calls/${callUuid}/transfer`, body)

/** The backend transfers for Ben; it rings at Eva. */
async function byBackend(service: Service, three: Three, more: object = {}): Promise<string> {
  const to = { role: 'agent', user_id: three.ids.eva }
  const { status, body } = await post(service, three.first.toUpperCase(), { by: 'callee', to, ...more })
  expect([status, body]).toEqual([
    ...[200, { success: true, call_uuid: three.first, new_call_uuid: expect.stringMatching(/^[0-9a-f-]{36}$/) }],
  ])
  await ringsFor(three, body.new_call_uuid)
  return body.new_call_uuid
}

function registerDone(service: () => Service): void {
  test('[SRV2] [XFER1] a backend transfers for a side: that side is told, and everything else is as if it had asked', async () => {
    const three = await threeOf(service())
    const { ann, ben, eva, ids, first } = three
    const next = await byBackend(service(), three, { metadata: { reason: 'billing' } })
    expect((await ben.next('call.transfer_started', newCall(next))).data).toEqual({
      ...{ call_uuid: first, new_call_uuid: next },
    })
    const by = { user_id: ids.ben, role: 'agent', display_name: 'Ben' }
    expect(eva.pushes.find(({ event }) => event === 'call.ringing')?.data).toMatchObject({
      ...{ call_uuid: next, caller_user_id: ids.ann, metadata: { reason: 'billing' } },
      ...{ transferred_from: first, transferred_by: by },
    })
    expect((await post(service(), first, { by: 'caller', to: { role: 'agent', user_id: 'max' } })).body.error).toEqual({
      code: 'CALL_INVALID_STATE',
      message: 'The call is being transferred already, or its other side is in a call with the target.',
    })
    await eva.request('call.accept', { call_uuid: next })
    const over = { status: 'ended', reason: 'transferred', by: { user_id: ids.ben, role: 'agent' } }
    for (const client of [ann, ben]) expect((await client.next('call.ended', about(first))).data).toMatchObject(over)
    const told = namesOf(ann, first, next).map(([event]) => event)
    expect(told).toEqual(['call.accepted', 'call.transferring', 'call.accepted', 'call.ended'])
    const { entries } = (await ask(service(), 'GET', `calls/${first}/timeline`)).body
    // Nobody in the call did it.
    const entry = entries.find(({ what }: { what: string }) => what === 'transferring')
    expect([entry.who, entry.session_id]).toEqual([undefined, undefined])
    const named = entries.filter(({ detail }: { detail: object }) => 'new_call_uuid' in detail)
    expect(named.map(({ what, detail }: { what: string; detail: object }) => [what, detail])).toEqual([
      ['transferring', { version: expect.any(Number), new_call_uuid: next }],
      ['ended', { version: expect.any(Number), status: 'ended', end_reason: 'transferred', new_call_uuid: next }],
    ])
  })

  test('[SRV2] [XFER1] no right of the side counts: a caller’s backend transfers to any role, and to a group', async () => {
    const three = await threeOf(service())
    const { ann, ben, ids, first } = three
    const [dora, group] = [someone('dora'), someone('group')]
    const doctor = await connectExtended(service(), { user_id: dora, role: 'doctor' })
    const { body } = await post(service(), first, { by: 'caller', to: { role: 'doctor', user_id: dora } })
    const declined = body.new_call_uuid
    expect((await doctor.next('call.ringing', about(declined))).data).toMatchObject({ caller_user_id: ids.ben })
    await ann.next('call.transfer_started', newCall(declined))
    await ben.next('call.transferring', newCall(declined))
    await doctor.request('call.reject', { call_uuid: declined })
    for (const client of [ann, ben]) {
      const failed = await client.next('call.transfer_failed', newCall(declined))
      expect(failed.data).toMatchObject({ call_uuid: first, status: 'rejected', end_reason: 'declined' })
    }
    await ask(service(), 'PUT', `groups/doctor/${group}`, { members: [dora], strategy: 'in_turn' })
    const again = await post(service(), first, { by: 'caller', to: { role: 'doctor', group, user_id: null } })
    const next = again.body.new_call_uuid
    const rings = await doctor.next('call.ringing', about(next))
    expect(rings.data).toMatchObject({ callee_group: group, transferred_from: first })
    await doctor.request('call.accept', { call_uuid: next })
    expect((await ann.next('call.ended', about(first))).data.reason).toBe('transferred')
    const { entries, summary } = (await ask(service(), 'GET', `calls/${first}/timeline`)).body
    const tried = entries.filter(({ detail }: { detail: object }) => 'new_call_uuid' in detail)
    expect(tried.map(({ what, detail }: { what: string; detail: object }) => [what, detail])).toMatchObject([
      ['transferring', { new_call_uuid: declined }],
      ['transfer_failed', { new_call_uuid: declined, status: 'rejected', end_reason: 'declined' }],
      ['transferring', { new_call_uuid: next }],
      ['ended', { new_call_uuid: next, end_reason: 'transferred' }],
    ])
    expect(summary).toEndWith('; a transfer was declined.')
  })

  test('[SRV2] [XFER1] the side that leaves may be a base client, which hears nothing new; the other one may not', async () => {
    const three = await threeOf(service())
    const { ann, eva, ids } = three
    const maxId = someone('max')
    const max = await service().connect(agent(maxId, 'Max'))
    const invited = await ann.request('call.invite', { callee_user_id: maxId, callee_role: 'agent' })
    const { call_uuid } = invited.data
    await max.next('call.ringing')
    max.send('call.accept', { call_uuid })
    await ann.next('call.accepted', about(call_uuid))
    const to = { role: 'agent', user_id: ids.eva }
    expect((await post(service(), call_uuid, { by: 'caller', to })).body.error.code).toBe('NOT_SUPPORTED_BY_PEER')
    const next = await byBackend(service(), { ...three, first: call_uuid })
    await eva.request('call.reject', { call_uuid: next })
    await ann.next('call.transfer_failed', newCall(next))
    const again = await byBackend(service(), { ...three, first: call_uuid })
    await eva.request('call.accept', { call_uuid: again })
    expect((await max.next('call.ended')).data).toMatchObject({ call_uuid, reason: 'transferred' })
    expect(max.events()).toEqual(['auth.ok', 'call.ringing', 'call.ended'])
    max.close()
  })
}

function registerRefused(service: () => Service): void {
  test('[SRV2] [XFER1] what cannot be transferred says why, and nothing of it changes', async () => {
    const three = await threeOf(service())
    const { ann, ben, ids, first } = three
    const to = { role: 'agent', user_id: ids.eva }
    const refusal = async (body: object, callUuid = first) => {
      const { status, body: answer } = await post(service(), callUuid, body)
      return [status, answer.error.code, answer.error.message.split(' ')[0]]
    }
    const wrong = [
      [{ to }, 'by'],
      [{ by: 'ben', to }, 'by'],
      [{ by: 'callee' }, 'to'],
      [{ by: 'callee', to: null }, 'to'],
      [{ by: 'callee', to: 5 }, 'to'],
      [{ by: 'callee', to: { role: 'agent' } }, 'to'],
      [{ by: 'callee', to: { ...to, group: 'support' } }, 'to'],
      [{ by: 'callee', to: { user_id: ids.eva } }, 'to.role'],
      [{ by: 'callee', to: { role: 'agent', user_id: '..' } }, 'to.user_id'],
      [{ by: 'callee', to, metadata: 'x' }, 'metadata'],
      [{ by: 'callee', to, metadata: { m: 'a'.repeat(1_024) } }, 'metadata'],
    ] as const
    for (const [body, field] of wrong)
      expect([body, await refusal(body)]).toEqual([body, [400, 'INVALID_REQUEST_BODY', field]])
    const by = { by: 'callee' }
    for (const callUuid of [crypto.randomUUID(), 'x'])
      expect((await refusal({ ...by, to }, callUuid)).slice(0, 2)).toEqual([404, 'NOT_FOUND'])
    for (const user_id of [ids.ann, ids.ben]) {
      const role = user_id === ids.ann ? 'customer' : 'agent'
      const { status, body: self } = await post(service(), first, { ...by, to: { role, user_id } })
      const named = `Both sides would be "${user_id}" (${role}). Call another user_id or role.`
      expect([status, self.error]).toEqual([400, { code: 'CALL_TO_SELF', message: named }])
    }
    const nobody = { role: 'agent', group: someone('group') }
    expect((await refusal({ ...by, to: nobody })).slice(0, 2)).toEqual([404, 'GROUP_NOT_FOUND'])
    const between = (await ann.request('call.invite', { callee_user_id: ids.eva, callee_role: 'agent' })).data.call_uuid
    expect((await refusal({ ...by, to })).slice(0, 2)).toEqual([409, 'CALL_INVALID_STATE'])
    const ringing = await post(service(), between, { ...by, to: { role: 'agent', user_id: 'max' } })
    expect(ringing.body.error.message).toBe('The call is ringing: only an answered call can be transferred.')
    await ann.request('call.cancel', { call_uuid: between })
    expect(namesOf(ben, first)).toEqual([['call.ringing', first]])
    await byBackend(service(), three)
  })
}

function registerShown(service: () => Service, receiver: () => Receiver): void {
  test('[XFER1] [HOOK2] webhooks of both calls come in the order of each, and say where the new one comes from', async () => {
    const typesOf = (callUuid: string) =>
      receiver()
        .received.filter(({ data }) => data.call_uuid === callUuid)
        .map(({ type }) => type)
    let three = await threeOf(service())
    // An endpoint is known to another node a moment later.
    await until('the endpoint is known', async () => {
      await Bun.sleep(500)
      if (typesOf(three.first).length === 2) return true
      three = await threeOf(service())
      return false
    })
    const { ben, eva, ids, first } = three
    const declined = await byBackend(service(), three)
    await eva.request('call.reject', { call_uuid: declined })
    await ben.next('call.transfer_failed', newCall(declined))
    const next = await transferred(three)
    await eva.request('call.accept', { call_uuid: next })
    await ben.next('call.ended', about(first))
    await eva.request('call.end', { call_uuid: next })
    const all = (callUuid: string) => typesOf(callUuid).join()
    // Nobody asked for call.rejected.
    await until('all is told', () => typesOf(first).length + typesOf(next).length + typesOf(declined).length === 7)
    expect(all(first)).toBe('call.ringing,call.accepted,call.ended')
    expect(all(declined)).toBe('call.ringing')
    expect(all(next)).toBe('call.ringing,call.accepted,call.ended')
    const bodies = receiver().received.map(({ data }) => data as unknown as CallView)
    const of = (callUuid: string) => bodies.filter(({ call_uuid }) => call_uuid === callUuid)
    const by = { user_id: ids.ben, role: 'agent', display_name: 'Ben' }
    for (const body of [...of(next), ...of(declined)])
      expect(body).toMatchObject({ transferred_from: first, transferred_by: by, caller: { user_id: ids.ann } })
    for (const body of of(first)) expect(body.transferred_from).toBeUndefined()
    const ended = { status: 'ended', end_reason: 'transferred', by: { user_id: ids.ben, role: 'agent' } }
    expect(of(first).at(-1)).toMatchObject(ended)
    expect(of(next)[0]?.by).toBeNull()
    for (const callUuid of [first, next]) {
      const versions = of(callUuid).map(({ version }) => version)
      expect(versions).toEqual(versions.toSorted((a, b) => a - b))
    }
  })
}

function registerErased(service: () => Service): void {
  test('[SRV2] [XFER1] who transferred a call has the first one in its export, and is named in neither after its erasure', async () => {
    const three = await threeOf(service())
    const { ann, ben, eva, ids, first } = three
    const next = await transferred(three)
    await eva.request('call.accept', { call_uuid: next })
    await ben.next('call.ended', about(first))
    await eva.request('call.end', { call_uuid: next })
    await ann.next('call.ended', about(next))
    const exported = async (role: string, userId: string) => {
      const { body } = await ask(service(), 'GET', `participants/${role}/${userId}/export`)
      return (body as ParticipantExport).calls.map(({ call }) => call.call_uuid)
    }
    expect(await exported('agent', ids.ben)).toEqual([first])
    expect(await exported('customer', ids.ann)).toEqual([next, first])
    expect(await exported('agent', ids.eva)).toEqual([next])
    const { body } = await erase(service(), 'agent', ids.ben)
    expect(body).toMatchObject({ success: true, calls: 2 })
    const nobody = { user_id: '', role: 'agent', display_name: null }
    const shown = (await ask(service(), 'GET', `calls/${next}`)).body.call
    expect(shown).toMatchObject({ transferred_from: first, transferred_by: nobody, metadata: null })
    expect(shown.callee).toMatchObject({ user_id: ids.eva, display_name: 'Eva' })
    const one = (await ask(service(), 'GET', `calls/${first}`)).body.call
    expect(one).toMatchObject({ callee: nobody, end_reason: 'transferred', by: { user_id: '', role: 'agent' } })
    for (const callUuid of [first, next]) {
      const { body } = await ask(service(), 'GET', `calls/${callUuid}/timeline`)
      expect(JSON.stringify(body)).not.toContain(ids.ben)
    }
    // The target goes, too: of its export nothing is left.
    await erase(service(), 'agent', ids.eva)
    expect(await exported('agent', ids.eva)).toEqual([])
    expect(await exported('customer', ids.ann)).toEqual([next, first])
  })

  test('[SRV2] [XFER1] a side that is erased while its call is transferred ends both calls', async () => {
    const three = await threeOf(service())
    const { ann, eva, ids, first } = three
    const next = await transferred(three)
    expect((await erase(service(), 'agent', ids.ben)).body.calls).toBe(2)
    expect((await ann.next('call.ended', about(first))).data.reason).toBe('ended_by_server')
    expect((await eva.next('call.cancelled', about(next))).data.reason).toBe('transfer_cancelled')
    const other = await connectExtended(service(), { ...roles, user_id: someone('max'), role: 'agent' }, transfer)
    const known = await connectExtended(service(), { user_id: ids.ann, role: 'customer' }, transfer)
    expect(known.hello?.data.active_calls).toEqual([])
    for (const client of [other, known]) client.stop()
  })
}
