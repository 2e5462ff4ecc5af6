import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { ExtendedClient } from '@ringwire/testkit/extended-client'
import { someone } from '@ringwire/testkit/flows'
import { until } from '@ringwire/testkit/patience'
import { openReceiver, type Receiver } from '@ringwire/testkit/receiver'
import type { Service } from '@ringwire/testkit/service'
import { about, answeredCall, candidatesOf, connectExtended } from '../../support/extended-flows.ts'
import { ask } from '../backend/calls.ts'
import { finish, type Start } from '../calls/composition.ts'

const transfer = { can: 'transfer' }
const candidate = (n: number) => ({ candidate: `candidate:${n}`, sdpMid: '0', sdpMLineIndex: 0 })
const agent = (user_id: string, display_name: string) => ({
  ...{ user_id, role: 'agent', display_name, allowed_peer_role: 'agent' },
})

const events = ['call.ringing', 'call.accepted', 'call.wake_cancelled', 'call.ended']

/** Ann calls Ben, who calls Eva to ask her something. All three understand a transfer. */
interface Three {
  readonly ann: ExtendedClient
  readonly ben: ExtendedClient
  readonly eva: ExtendedClient
  readonly ids: { readonly ann: string; readonly ben: string; readonly eva: string }
  readonly first: string
  readonly second: string
}

async function threeOf(service: Service, evaCan: { can?: string } = transfer): Promise<Three> {
  const ids = { ann: someone('ann'), ben: someone('ben'), eva: someone('eva') }
  const customer = { user_id: ids.ann, role: 'customer', device_id: 'desk', display_name: 'Ann' }
  const [ann, ben, eva] = await Promise.all([
    connectExtended(service, customer, transfer),
    connectExtended(service, agent(ids.ben, 'Ben'), transfer),
    connectExtended(service, agent(ids.eva, 'Eva'), evaCan),
  ])
  const first = await answeredCall({ caller: ann, callee: ben, callerId: ids.ann, calleeId: ids.ben })
  const second = await answeredCall({ caller: ben, callee: eva, callerId: ids.ben, calleeId: ids.eva })
  return { ann, ben, eva, ids, first, second }
}

const namesOf = ({ pushes }: ExtendedClient, ...calls: string[]) =>
  pushes.filter(({ data }) => calls.includes(data.call_uuid)).map(({ event, data }) => [event, data.call_uuid])

const joins = ({ first, second }: Three) => ({ call_uuid: first, to_call_uuid: second })

/** Ben connects Ann and Eva, and both have heard of it. */
async function joined(three: Three): Promise<string> {
  const reply = await three.ben.request('call.transfer', joins(three))
  expect(reply.event).toBe('call.transfer_started')
  const next = reply.data.new_call_uuid
  await Promise.all([
    three.ann.next('call.ended', about(three.first)),
    three.eva.next('call.ended', about(three.second)),
  ])
  return next
}

/** Somebody talks to two people in two calls, and connects them [XFER1]. */
export function registerJoins(name: string, start: Start): void {
  describe(`two calls become one, ${name}`, () => {
    let service: Service
    let receiver: Receiver
    beforeAll(async () => {
      receiver = await openReceiver()
      service = await start({ RINGWIRE_WEBHOOK_ALLOW: '127.0.0.1' })
      await ask(service, 'POST', 'webhooks', { url: receiver.url, events })
    }, 240_000)
    afterAll(async () => {
      await finish(service)
      await receiver.close()
    })
    registerJoined(() => service)
    registerRefused(() => service)
    registerShown(
      () => service,
      () => receiver,
    )
  })
}

function registerJoined(service: () => Service): void {
  test('[XFER1] both calls end, the two who are left go on in a new one, and nobody rings', async () => {
    const three = await threeOf(service())
    const { ann, ben, eva, ids, first, second } = three
    const tab = await connectExtended(service(), { ...agent(ids.eva, 'Eva'), device_id: 'tab' }, transfer)
    const base = await service().connect({ ...agent(ids.eva, 'Eva'), device_id: 'phone' })
    const next = await joined(three)
    const told = { new_call_uuid: next, status: 'accepted' }
    expect(ann.pushes.find(({ event }) => event === 'call.transferring')?.data).toEqual({
      ...{ ...told, call_uuid: first, direction: 'outgoing' },
      to: { user_id: ids.eva, role: 'agent', display_name: 'Eva' },
    })
    expect(eva.pushes.find(({ event }) => event === 'call.transferring')?.data).toEqual({
      ...{ ...told, call_uuid: second, direction: 'incoming' },
      to: { user_id: ids.ann, role: 'customer', display_name: 'Ann' },
    })
    await Promise.all([ben.next('call.ended', about(first)), ben.next('call.ended', about(second))])
    for (const client of [ann, ben, eva]) {
      const ends = client.pushes.filter(({ event }) => event === 'call.ended').map(({ data }) => data)
      for (const data of ends)
        expect(data).toMatchObject({ reason: 'transferred', by: { user_id: ids.ben, role: 'agent' } })
      expect(ends.length).toBe(client === ben ? 2 : 1)
    }
    // Each has read of the new call before its own one ended.
    const order = ({ pushes }: ExtendedClient) => pushes.map(({ event }) => event).slice(-2)
    expect([order(ann), order(eva)]).toEqual(Array(2).fill(['call.transferring', 'call.ended']))

    const sdp = (type: 'offer' | 'answer') => ({ call_uuid: next, sdp: { type, sdp: 'v=0' } })
    await ann.request('webrtc.offer', sdp('offer'))
    await eva.next('webrtc.offer', about(next))
    await eva.request('webrtc.answer', sdp('answer'))
    await ann.next('webrtc.answer', about(next))
    await ann.request('webrtc.ice_candidate', { call_uuid: next, candidate: candidate(3) })
    await eva.next('webrtc.ice_candidate', about(next))
    expect(candidatesOf(eva, next)).toEqual([3])
    await eva.request('call.connected', { call_uuid: next })
    await ann.next('call.status', about(next))
    for (const call_uuid of [first, second, next]) {
      const late = await ben.request('webrtc.ice_candidate', { call_uuid, candidate: candidate(8) })
      // The service drops late messages of a call that has just ended [END1].
      expect(late.error?.code).toBe(call_uuid === next ? 'CALL_NOT_FOUND' : undefined)
    }
    await ann.request('call.end', { call_uuid: next })
    await eva.next('call.ended', about(next))
    await tab.settle()
    expect([namesOf(ben, next), namesOf(tab, first, second, next), base.events()]).toEqual([[], [], ['auth.ok']])
    base.close()
  })

  test('[XFER1] [RES1] who was away comes back to the new call, and reads of it first', async () => {
    const three = await threeOf(service())
    const { ann, ben, eva, first, second } = three
    await eva.leave(4000)
    await ben.next('call.peer_away', about(second))
    const { data } = await ben.request('call.transfer', joins(three))
    const next = data.new_call_uuid
    await ann.next('call.ended', about(first))
    await ann.request('webrtc.offer', { call_uuid: next, sdp: { type: 'offer', sdp: 'v=0' } })
    await eva.connect()
    await eva.next('webrtc.offer', about(next))
    const told = eva.pushes.map(({ event }) => event).slice(-3)
    expect(told.filter((event) => event !== 'webrtc.offer')).toEqual(['call.transferring', 'call.ended'])
    expect(eva.hello?.data.active_calls).toMatchObject([{ call_uuid: next, direction: 'incoming', holds_place: true }])
    await ann.next('call.peer_back', about(next))
  })

  test('[XFER1] two calls of somebody who was called, and a transferred call, may become one, too', async () => {
    const three = await threeOf(service())
    const { ann, ben, eva, ids } = three
    const next = await joined(three)
    // Eva, who was called into it, hands Ann back to Ben, who has called her in the meantime.
    const third = await answeredCall({ caller: ben, callee: eva, callerId: ids.ben, calleeId: ids.eva })
    const back = { call_uuid: third, to_call_uuid: next }
    // She may not call customers.
    expect((await eva.request('call.transfer', back)).error?.code).toBe('CALL_PEER_ROLE_NOT_ALLOWED')
    const reply = await eva.request('call.transfer', { call_uuid: next, to_call_uuid: third })
    const last = reply.data.new_call_uuid
    await Promise.all([ann.next('call.ended', about(next)), ben.next('call.ended', about(third))])
    const shown = (await ask(service(), 'GET', `calls/${last}`)).body.call
    expect(shown).toMatchObject({
      ...{ status: 'accepted', transferred_from: next, transferred_by: { user_id: ids.eva } },
      ...{ caller: { user_id: ids.ann }, callee: { user_id: ids.ben } },
    })
  })
}

function registerRefused(service: () => Service): void {
  test('[XFER1] which calls may become one, and whose', async () => {
    const three = await threeOf(service())
    const { ann, ben, eva, ids, first, second } = three
    const error = async (client: ExtendedClient, data: object = {}) => {
      const { code, field } = (await client.request('call.transfer', { ...joins(three), ...data })).error ?? {}
      return [code, field]
    }
    const named = 'to_call_uuid'
    expect(await error(ben, { to_call_uuid: crypto.randomUUID() })).toEqual(['CALL_NOT_FOUND', named])
    expect(await error(ann)).toEqual(['CALL_NOT_FOUND', named])
    expect(await error(eva)).toEqual(['CALL_NOT_FOUND', undefined])
    expect(await error(ben, { to_call_uuid: first })).toEqual(['CALL_TO_SELF', undefined])
    expect(await error(ben, { to_role: 'agent' })).toEqual(['INVALID_PAYLOAD', 'to_role'])
    expect(await error(ben, { to_user_id: ids.eva })).toEqual(['INVALID_PAYLOAD', named])
    const tab = await connectExtended(service(), { ...agent(ids.ben, 'Ben'), device_id: 'tab' }, transfer)
    expect(await error(tab)).toEqual(['CALL_NOT_PARTICIPANT', undefined])
    // Ben may not call customers, whom he would hand Eva over to.
    expect(await error(ben, { call_uuid: second, to_call_uuid: first })).toEqual([
      ...['CALL_PEER_ROLE_NOT_ALLOWED', undefined],
    ])
    // Ann calls Eva meanwhile.
    const between = (await ann.request('call.invite', { callee_user_id: ids.eva, callee_role: 'agent' })).data.call_uuid
    expect(await error(ben)).toEqual(['CALL_INVALID_STATE', undefined])
    await ann.request('call.cancel', { call_uuid: between })
    // Ben transfers Eva to Max: then that is what becomes of her call.
    const max = someone('max')
    const started = await ben.request('call.transfer', { call_uuid: second, to_role: 'agent', to_user_id: max })
    expect(await error(ben)).toEqual(['CALL_INVALID_STATE', named])
    await eva.request('call.cancel', { call_uuid: started.data.new_call_uuid })
    await ben.next('call.transfer_failed')
    // Nothing of all that has ended or changed anything.
    await joined(three)
    expect(await error(ben)).toEqual(['CALL_INVALID_STATE', undefined])
  })

  test('[XFER1] [EXT6] both who are left have to understand it', async () => {
    const three = await threeOf(service(), {})
    const { eva, ben, first, second } = three
    const refused = await ben.request('call.transfer', joins(three))
    expect(refused.error).toMatchObject({ code: 'NOT_SUPPORTED_BY_PEER', field: 'to_call_uuid' })
    await eva.settle()
    expect(namesOf(eva, second).map(([event]) => event)).toEqual(['call.ringing'])
    expect(namesOf(ben, first, second).map(([event]) => event)).toEqual(['call.ringing', 'call.accepted'])
  })

  test('[XFER1] asked twice at once, and by one who hangs up: the two calls end once', async () => {
    const twice = await threeOf(service())
    const replies = await Promise.all([0, 1].map(() => twice.ben.request('call.transfer', joins(twice))))
    const answers = replies.map(({ event, error }) => error?.code ?? event).sort()
    expect(answers).toEqual(['CALL_INVALID_STATE', 'call.transfer_started'])

    const three = await threeOf(service())
    const [started, ended] = await Promise.all([
      three.ben.request('call.transfer', joins(three)),
      three.eva.request('call.end', { call_uuid: three.second }),
    ])
    expect(ended.event).toBe('call.ack')
    await three.ben.next('call.ended', about(three.second))
    const view = async (callUuid: string) => (await ask(service(), 'GET', `calls/${callUuid}`)).body.call
    if (started.event === 'call.transfer_started') {
      expect((await view(three.second)).end_reason).toBe('transferred')
      expect((await view(started.data.new_call_uuid)).status).toBe('accepted')
    } else {
      expect(started.error).toMatchObject({ code: 'CALL_INVALID_STATE', field: 'to_call_uuid' })
      expect((await view(three.first)).status).toBe('accepted')
    }
  })
}

function registerShown(service: () => Service, receiver: () => Receiver): void {
  const hooksOf = (callUuid: string) =>
    receiver()
      .received.filter(({ data }) => data.call_uuid === callUuid)
      .map(({ type, data }) => [type, data.version])

  test('[XFER1] [HOOK2] record, history, timeline and webhooks say what became of the two calls', async () => {
    let three = await threeOf(service())
    const isTold = () => [three.first, three.second].every((of) => hooksOf(of).length === 3)
    // An endpoint is known to another node a moment later.
    await until('the endpoint is known', async () => {
      await Bun.sleep(500)
      if (isTold()) return true
      three = await threeOf(service())
      return false
    })
    const { ids, first, second } = three
    const next = await joined(three)
    const by = { user_id: ids.ben, role: 'agent', display_name: 'Ben' }
    const origin = { transferred_from: first, transferred_by: by }
    const shown = (await ask(service(), 'GET', `calls/${next}`)).body.call
    expect(shown).toMatchObject({ status: 'accepted', by: null, ...origin, context_type: 'order' })
    expect(shown.accepted_at).toBe(shown.started_at)
    const { body } = await ask(service(), 'GET', `calls/${next}/timeline`)
    expect(body.summary).toBe('Ben transferred Ann to Eva, after calls with both.')
    expect(body.entries.map(({ what }: { what: string }) => what)).not.toContain('rung')
    for (const of of [first, second]) {
      const ended = (await ask(service(), 'GET', `calls/${of}/timeline`)).body
      expect(ended.summary).toMatch(/^Ben transferred the call after [\d.]+ s; no media was reported\.$/)
    }
    const token = await service().token({ user_id: ids.eva, role: 'agent' })
    const { data } = await service().history(token)
    expect(data[0]).toMatchObject({ call_uuid: next, direction: 'incoming', peer: { user_id: ids.ann }, ...origin })
    await until('all is told', () => [first, second, next].every((of) => hooksOf(of).length === (of === next ? 1 : 4)))
    expect(hooksOf(next)).toEqual([['call.accepted', 1]])
    for (const of of [first, second]) {
      expect(
        hooksOf(of)
          .map(([type]) => type)
          .sort(),
      ).toEqual([...events].sort())
    }
  })
}
