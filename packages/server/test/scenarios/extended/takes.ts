import { describe, expect, test } from 'bun:test'
import type { ExtendedClient } from '@ringwire/testkit/extended-client'
import { candidate, someone } from '@ringwire/testkit/flows'
import { until } from '@ringwire/testkit/patience'
import type { Service } from '@ringwire/testkit/service'
import {
  about,
  answeredCall,
  candidatesOf,
  connectExtended,
  connectedCall,
  type ExtendedPair,
  ringingCall,
} from '../../support/extended-flows.ts'
import { setProduct } from '../../support/products.ts'
import { answer, offer } from '../../support/sessions.ts'
import { type Start, serviceFor } from '../calls/composition.ts'

/** A call, and a second device of one of its sides; all of them extended, and those that are named `can` take calls. */
interface Desk extends ExtendedPair {
  /** The device of the callee's, or of the caller's, that had no part in the call. */
  readonly other: ExtendedClient
}

type Capable = { readonly [Who in 'caller' | 'callee' | 'other']?: string | undefined }

async function connectDesk(service: Service, of: 'caller' | 'callee', can: Capable = { other: 'take' }): Promise<Desk> {
  const [callerId, calleeId] = [someone('caller'), someone('callee')]
  const asCaller = { user_id: callerId, role: 'customer' }
  const asCallee = { user_id: calleeId, role: 'agent' }
  const caller = await connectExtended(service, { ...asCaller, device_id: 'phone' }, { can: can.caller })
  const callee = await connectExtended(service, { ...asCallee, device_id: 'phone' }, { can: can.callee })
  const wish = { ...(of === 'caller' ? asCaller : asCallee), device_id: 'tablet' }
  const other = await connectExtended(service, wish, { can: can.other })
  return { caller, callee, other, callerId, calleeId }
}

const take = (client: ExtendedClient, call_uuid: string) => client.request('call.take', { call_uuid })
const eventsOf = (client: ExtendedClient, callUuid: string) =>
  client.pushes.filter(about(callUuid)).map(({ event }) => event)

/** An offer of the one reaches the other, and its answer comes back. */
async function negotiate(from: ExtendedClient, to: ExtendedClient, callUuid: string): Promise<void> {
  expect((await from.request('webrtc.offer', offer(callUuid))).event).toBe('call.ack')
  await to.next('webrtc.offer', about(callUuid))
  expect((await to.request('webrtc.answer', answer(callUuid))).event).toBe('call.ack')
  await from.next('webrtc.answer', about(callUuid))
}

/** Another device of a participant goes on with an answered call [TAKE1]. */
export function registerTakes(name: string, start: Start): void {
  describe(`calls that another device takes, ${name}`, () => {
    const service = serviceFor(start)
    registerMoved(service)
    registerAway(service)
    registerRefused(service)
    registerListed(service)
  })
  describe(`calls that are taken as the service dies, ${name}`, () => {
    registerKilled(serviceFor(start))
  })
}

function registerMoved(service: () => Service): void {
  for (const status of ['accepted', 'connected'] as const) {
    test(`[TAKE1] [PLACE5] the callee goes on at another device; the caller of a call that is ${status} offers anew`, async () => {
      const desk = await connectDesk(service(), 'callee')
      const { caller, callee, other, calleeId } = desk
      const call_uuid = await (status === 'accepted' ? answeredCall(desk) : connectedCall(desk))
      await negotiate(caller, callee, call_uuid)
      expect(await take(other, call_uuid)).toMatchObject({ event: 'call.ack', data: { call_uuid, status } })
      const by = { user_id: calleeId, role: 'agent' }
      expect((await callee.next('call.cancelled', about(call_uuid))).data).toEqual({
        ...{ call_uuid, status, reason: 'taken_elsewhere', by, ended_at: null },
      })
      const again = await caller.next('call.accepted', about(call_uuid))
      expect(again.data).toMatchObject({ call_uuid, status: 'accepted' })
      await negotiate(caller, other, call_uuid)
      expect((await callee.request('webrtc.ice_candidate', candidate(call_uuid, 1))).error.code).toBe(
        'CALL_NOT_PARTICIPANT',
      )
      expect((await callee.request('call.end', { call_uuid })).error.code).toBe('CALL_NOT_PARTICIPANT')
      await other.request('call.end', { call_uuid })
      await caller.next('call.ended', about(call_uuid))
      for (const client of [caller, callee]) await client.settle()
      // A caller that did not list it hears no event of it, and no number is left out.
      expect(eventsOf(caller, call_uuid)).not.toContain('call.peer_moved')
      expect(eventsOf(callee, call_uuid).at(-1)).toBe('call.cancelled')
      expect(caller.pushes.map(({ seq }) => seq)).toEqual(caller.pushes.map((_, index) => index + 1))
    })
  }

  test('[TAKE1] the caller goes on at another device, which offers; the callee hears that it moved', async () => {
    const desk = await connectDesk(service(), 'caller', { other: 'take,fly', callee: 'take' })
    const { caller, callee, other } = desk
    const call_uuid = await connectedCall(desk)
    expect((await take(other, call_uuid)).event).toBe('call.ack')
    expect((await caller.next('call.cancelled', about(call_uuid))).data).toMatchObject({ reason: 'taken_elsewhere' })
    expect((await callee.next('call.peer_moved', about(call_uuid))).data).toEqual({ call_uuid })
    await negotiate(other, callee, call_uuid)
    // And back again.
    caller.can = 'take'
    await caller.die()
    await caller.connect()
    expect((await take(caller, call_uuid)).event).toBe('call.ack')
    expect((await other.next('call.cancelled', about(call_uuid))).data).toMatchObject({ reason: 'taken_elsewhere' })
    await negotiate(caller, callee, call_uuid)
    await callee.settle()
    expect(eventsOf(callee, call_uuid).filter((event) => event !== 'webrtc.offer')).toEqual([
      ...['call.ringing', 'call.peer_moved', 'call.peer_moved'],
    ])
    const heard = eventsOf(other, call_uuid).filter((event) => event !== 'call.status')
    expect(heard).toEqual(['webrtc.answer', 'call.cancelled'])
  })

  test('[TAKE1] [RES1] the former session comes back exactly, also to what it had not acknowledged when the call was taken', async () => {
    const desk = await connectDesk(service(), 'callee')
    const { caller, callee, other } = desk
    const call_uuid = await answeredCall(desk)
    const sent = [0, 1, 2, 3, 4]
    for (const n of sent) await caller.request('webrtc.ice_candidate', candidate(call_uuid, n))
    expect((await take(other, call_uuid)).event).toBe('call.ack')
    const { session_id } = callee.hello?.data ?? {}
    await callee.die()
    expect((await callee.connect()).data).toMatchObject({ recovered: true, session_id })
    await callee.settle()
    expect(candidatesOf(callee, call_uuid)).toEqual(sent)
    expect(eventsOf(callee, call_uuid).at(-1)).toBe('call.cancelled')
    expect(callee.pushes.map(({ seq }) => seq)).toEqual(callee.pushes.map((_, index) => index + 1))
  })

  test('[TAKE1] a base client loses its call to an extended one, and its peer, a base client too, offers anew', async () => {
    const [callerId, calleeId] = [someone('caller'), someone('callee')]
    const caller = await service().connect({ user_id: callerId, role: 'customer' })
    const phone = await service().connect({ user_id: calleeId, role: 'agent' })
    // Neither has a device, so they could be the same one.
    const tab = await connectExtended(service(), { user_id: calleeId, role: 'agent' }, { can: 'take' })
    const call_uuid = crypto.randomUUID()
    caller.send('call.invite', { callee_user_id: calleeId, callee_role: 'agent', call_uuid })
    await phone.next('call.ringing')
    phone.send('call.accept', { call_uuid })
    await caller.next('call.accepted')
    expect((await take(tab, call_uuid)).event).toBe('call.ack')
    expect((await phone.next('call.cancelled')).data).toMatchObject({ call_uuid, reason: 'taken_elsewhere' })
    expect((await caller.next('call.accepted')).data).toEqual({ call_uuid, status: 'accepted' })
    caller.send('webrtc.offer', offer(call_uuid))
    await tab.next('webrtc.offer', about(call_uuid))
    await tab.request('call.end', { call_uuid })
    await caller.next('call.ended')
  })

  test('[TAKE1] two devices take it at once: one has it in the end, and the other was told', async () => {
    const desk = await connectDesk(service(), 'callee')
    const wish = { user_id: desk.calleeId, role: 'agent', device_id: 'watch' }
    const watch = await connectExtended(service(), wish, { can: 'take' })
    const call_uuid = await connectedCall(desk)
    const replies = await Promise.all([desk.other, watch].map((client) => take(client, call_uuid)))
    expect(replies.map(({ event }) => event)).toEqual(['call.ack', 'call.ack'])
    await desk.callee.next('call.cancelled', about(call_uuid))
    const told = await Promise.race(
      [desk.other, watch].map(async (client) => {
        await lossOf(client, call_uuid)
        return client
      }),
    )
    const holder = told === watch ? desk.other : watch
    await desk.caller.settle()
    await negotiate(desk.caller, holder, call_uuid)
    expect((await told.request('call.end', { call_uuid })).error.code).toBe('CALL_NOT_PARTICIPANT')
    expect((await holder.request('call.end', { call_uuid })).event).toBe('call.ack')
  })
}

const lossOf = (client: ExtendedClient, callUuid: string) =>
  client.next('call.cancelled', ({ data }) => data.call_uuid === callUuid && data.reason === 'taken_elsewhere')

function registerAway(service: () => Service): void {
  for (const can of ['take', undefined] as const) {
    test(`[TAKE1] [PEER1] a device takes the call of a phone that is away; the caller listed ${can ?? 'nothing'}`, async () => {
      const desk = await connectDesk(service(), 'callee', { other: 'take', caller: can })
      const { caller, callee, other } = desk
      const call_uuid = await connectedCall(desk)
      await callee.settle()
      const before = callee.pushes.length
      await callee.die()
      await caller.next('call.peer_away', about(call_uuid))
      await caller.request('webrtc.offer', offer(call_uuid))
      await caller.request('webrtc.ice_candidate', candidate(call_uuid, 1))
      expect((await take(other, call_uuid)).event).toBe('call.ack')
      await caller.next(can === undefined ? 'call.peer_back' : 'call.peer_moved', about(call_uuid))
      await negotiate(caller, other, call_uuid)
      // Nobody gets the signals for the phone, and it hears what it missed when it is back.
      expect(candidatesOf(other, call_uuid)).toEqual([])
      expect(eventsOf(other, call_uuid).filter((event) => event === 'webrtc.offer')).toHaveLength(1)
      const hello = await callee.connect()
      expect(hello.data.active_calls).toMatchObject([{ call_uuid, holds_place: false }])
      expect((await lossOf(callee, call_uuid)).data).toMatchObject({ status: 'connected', ended_at: null })
      await callee.settle()
      expect(callee.pushes.slice(before).map(({ event }) => event)).not.toContain('webrtc.offer')
      await caller.settle()
      const heard = eventsOf(caller, call_uuid).filter((event) => event.startsWith('call.peer_'))
      expect(heard).toEqual(['call.peer_away', can === undefined ? 'call.peer_back' : 'call.peer_moved'])
    })
  }

  test('[EXT6] a resume on another node goes on with what the client listed', async () => {
    const desk = await connectDesk(service(), 'caller', { other: 'take', callee: 'take' })
    const call_uuid = await connectedCall(desk)
    await desk.callee.die()
    desk.callee.url = service().nextUrl()
    expect((await desk.callee.connect()).data.recovered).toBe(true)
    await take(desk.other, call_uuid)
    await desk.callee.next('call.peer_moved', about(call_uuid))
    // Away, it is another node that writes to its log.
    await desk.callee.die()
    await take(desk.other, call_uuid)
    desk.caller.can = 'take'
    await desk.caller.die()
    await desk.caller.connect()
    expect((await take(desk.caller, call_uuid)).event).toBe('call.ack')
    desk.callee.url = service().nextUrl()
    await desk.callee.connect()
    await desk.callee.next('call.peer_moved', about(call_uuid))
    await desk.callee.die()
    desk.callee.can = undefined
    await desk.callee.connect()
    expect((await take(desk.other, call_uuid)).event).toBe('call.ack')
    await negotiate(desk.other, desk.callee, call_uuid)
    const moved = eventsOf(desk.callee, call_uuid).filter((event) => event === 'call.peer_moved')
    expect(moved).toHaveLength(2)
  })
}

function registerRefused(service: () => Service): void {
  test('[TAKE1] [EXT6] there is no such event for a base client, nor without the capability', async () => {
    const desk = await connectDesk(service(), 'callee', { other: 'transfer' })
    const call_uuid = await answeredCall(desk)
    const { error } = await take(desk.other, call_uuid)
    expect(error).toMatchObject({ code: 'UNKNOWN_EVENT', message: expect.stringContaining('can=take') })
    expect((await desk.other.request('call.list', {})).error.code).toBe('UNKNOWN_EVENT')
    const token = await service().token({ user_id: desk.calleeId, role: 'agent' })
    const base = service().open(token, { path: '/v1/ws?can=take' })
    await base.next('auth.ok')
    base.send('call.take', { call_uuid })
    expect((await base.next('call.error')).error.code).toBe('UNKNOWN_EVENT')
  })

  test('[TAKE1] a call that rings or is over is not taken, and nobody takes the call of somebody else', async () => {
    const desk = await connectDesk(service(), 'callee')
    const ringing = await ringingCall(desk)
    expect((await take(desk.other, ringing)).error).toMatchObject({ code: 'CALL_INVALID_STATE', status: 'ringing' })
    await desk.callee.request('call.accept', { call_uuid: ringing })
    await desk.callee.request('call.end', { call_uuid: ringing })
    expect((await take(desk.other, ringing)).error).toMatchObject({ code: 'CALL_INVALID_STATE', status: 'ended' })
    const call_uuid = await answeredCall(desk)
    const stranger = await connectExtended(service(), { user_id: someone('eve'), role: 'agent' }, { can: 'take' })
    expect((await take(stranger, call_uuid)).error.code).toBe('CALL_NOT_FOUND')
    expect((await desk.callee.request('webrtc.ice_candidate', candidate(call_uuid, 1))).event).toBe('call.ack')
  })

  test('[TAKE1] a product forbids it, and what is forbidden is not offered', async () => {
    const desk = await connectDesk(service(), 'callee')
    const call_uuid = await answeredCall(desk)
    const isOffered = async () => {
      const { data } = await desk.other.request('call.list', {})
      return data.active_calls[0].elsewhere === true
    }
    expect(await isOffered()).toBe(true)
    await setProduct(service(), 'shop', '--take', 'false')
    await until('it is not offered', async () => !(await isOffered()))
    expect((await take(desk.other, call_uuid)).error.code).toBe('ACTION_NOT_ALLOWED')
    await setProduct(service(), 'shop', '--take', 'true')
    await until('it is offered', isOffered)
    expect((await take(desk.other, call_uuid)).event).toBe('call.ack')
  })
}

function registerListed(service: () => Service): void {
  test('[TAKE1] [EXT1] who connects is told which calls can be taken, and can ask again until there is none', async () => {
    const desk = await connectDesk(service(), 'callee')
    const call_uuid = await answeredCall(desk)
    const wish = { user_id: desk.calleeId, role: 'agent', device_id: 'watch' }
    const late = await connectExtended(service(), wish, { can: 'take' })
    expect(late.hello?.data.active_calls).toMatchObject([{ call_uuid, holds_place: false, elsewhere: true }])
    const older = await connectExtended(service(), { ...wish, device_id: 'old' })
    expect(older.hello?.data.active_calls).toMatchObject([{ call_uuid, holds_place: false }])
    expect(older.hello?.data.active_calls[0]).not.toHaveProperty('elsewhere')
    const list = async () => (await late.request('call.list', {})).data.active_calls
    expect(await list()).toMatchObject([{ call_uuid, elsewhere: true }])
    await take(late, call_uuid)
    const [own] = await list()
    expect(own).toMatchObject({ call_uuid, holds_place: true })
    expect(own).not.toHaveProperty('elsewhere')
    await late.request('call.end', { call_uuid })
    expect(await list()).toEqual([])
  })
}

function registerKilled(service: () => Service): void {
  test('[TAKE1] [RES1] kill -9 as it is taken: one device has the call in the end, and the caller reaches that one', async () => {
    for (let round = 0; round < 3; round++) {
      const desk = await connectDesk(service(), 'callee')
      const { caller, callee, other } = desk
      const call_uuid = await connectedCall(desk)
      void take(other, call_uuid)
      if (round > 0) await Bun.sleep(2 * round)
      await service().kill()
      await service().start()
      for (const client of [caller, callee, other]) {
        client.url = service().nextUrl()
        await client.comeBack()
      }
      // Nobody knows whether it took effect: asking again does no harm.
      expect((await take(other, call_uuid)).event).toBe('call.ack')
      await caller.settle()
      await negotiate(caller, other, call_uuid)
      expect((await callee.request('webrtc.ice_candidate', candidate(call_uuid, 1))).error.code).toBe(
        'CALL_NOT_PARTICIPANT',
      )
      expect((await other.request('call.end', { call_uuid })).event).toBe('call.ack')
    }
  })
}
