import { describe, expect, test } from 'bun:test'
import type { Client } from '@ringwire/testkit/client'
import type { ExtendedClient } from '@ringwire/testkit/extended-client'
import { candidate, someone } from '@ringwire/testkit/flows'
import type { Service } from '@ringwire/testkit/service'
import { clockMs } from '../../support/clocks.ts'
import { about, answeredCall, candidatesOf, connectExtended, type ExtendedPair } from '../../support/extended-flows.ts'
import { inviteOf } from '../../support/sessions.ts'
import { type Start, serviceFor } from '../calls/composition.ts'

/** A caller, and a callee with two extended devices and a base one. */
interface Devices extends ExtendedPair {
  readonly tablet: ExtendedClient
  readonly old: Client
}

/** One person on several devices, extended and base ones mixed [ID2, PLACE1, PLACE2]. */
export function registerDevices(name: string, start: Start): void {
  describe(`several devices, ${name}`, () => {
    const service = serviceFor(start)
    registerRinging(service)
    registerAnswered(service)
    registerTakeOver(service)
    registerMixed(service)
  })
}

async function connectDevices(service: Service): Promise<Devices> {
  const callerId = someone('caller')
  const calleeId = someone('callee')
  const asCallee = { user_id: calleeId, role: 'agent' }
  const caller = await connectExtended(service, { user_id: callerId, role: 'customer', device_id: 'desk' })
  const callee = await connectExtended(service, { ...asCallee, device_id: 'phone' })
  const tablet = await connectExtended(service, { ...asCallee, device_id: 'tablet' })
  const old = await service.connect({ ...asCallee, device_id: 'old' })
  return { caller, callee, tablet, old, callerId, calleeId }
}

/** Rings all devices. */
async function ringAll({ caller, callee, tablet, old, calleeId }: Devices): Promise<string> {
  const { data } = await caller.request('call.invite', inviteOf(calleeId))
  await Promise.all([callee, tablet].map((device) => device.next('call.ringing', about(data.call_uuid))))
  await old.next('call.ringing', (message) => message.data.call_uuid === data.call_uuid)
  return data.call_uuid
}

function registerRinging(service: () => Service): void {
  test('[PLACE1] all devices ring, the first to accept wins, the others hear that it was elsewhere', async () => {
    const devices = await connectDevices(service())
    const { caller, callee, tablet, old } = devices
    const callUuid = await ringAll(devices)
    const data = { call_uuid: callUuid }
    const replies = await Promise.all([callee.request('call.accept', data), tablet.request('call.accept', data)])
    const won = replies.filter(({ event }) => event === 'call.ack')
    expect(won).toHaveLength(1)
    expect(replies.find(({ event }) => event === 'call.error')?.error.code).toBe('CALL_ALREADY_ANSWERED')
    const [winner, loser] = replies[0]?.event === 'call.ack' ? [callee, tablet] : [tablet, callee]
    const elsewhere = { call_uuid: callUuid, status: 'accepted', reason: 'answered_elsewhere', ended_at: null }
    expect((await loser.next('call.cancelled')).data).toMatchObject(elsewhere)
    expect((await old.next('call.cancelled')).data).toMatchObject(elsewhere)
    await caller.next('call.accepted')
    await winner.settle()
    expect(winner.events()).toEqual(['call.ringing'])
  })

  test('[PLACE1] a reject on one device silences the others', async () => {
    const devices = await connectDevices(service())
    const callUuid = await ringAll(devices)
    await devices.tablet.request('call.reject', { call_uuid: callUuid })
    expect((await devices.caller.next('call.rejected')).data).toMatchObject({ reason: 'declined' })
    for (const device of [devices.callee, devices.old]) {
      expect((await device.next('call.cancelled')).data).toMatchObject({ reason: 'rejected_elsewhere' })
    }
  })

  test('[INV4] a device that comes late rings too, and can be the one that answers', async () => {
    const devices = await connectDevices(service())
    const callUuid = await ringAll(devices)
    const late = await connectExtended(service(), { user_id: devices.calleeId, role: 'agent', device_id: 'watch' })
    await late.next('call.ringing', about(callUuid))
    await late.request('call.accept', { call_uuid: callUuid })
    for (const device of [devices.callee, devices.tablet, devices.old]) {
      expect((await device.next('call.cancelled')).data.reason).toBe('answered_elsewhere')
    }
  })

  test('[RES1] a device that was away while another one answered hears of it when it is back', async () => {
    const devices = await connectDevices(service())
    const callUuid = await ringAll(devices)
    await devices.tablet.die()
    await devices.callee.request('call.accept', { call_uuid: callUuid })
    expect((await devices.tablet.connect()).data.recovered).toBe(true)
    expect((await devices.tablet.next('call.cancelled', about(callUuid))).data.reason).toBe('answered_elsewhere')
    await devices.tablet.settle()
    expect(devices.tablet.events()).toEqual(['call.ringing', 'call.cancelled'])
  })
}

function registerAnswered(service: () => Service): void {
  test('[WS4] a device that answered, and comes back without its session, is not told that another one did', async () => {
    const [callerId, calleeId] = [someone('caller'), someone('callee')]
    const caller = await connectExtended(service(), { user_id: callerId, role: 'customer', device_id: 'desk' })
    const phone = () => connectExtended(service(), { user_id: calleeId, role: 'agent', device_id: 'phone' })
    const first = await phone()
    const { data } = await caller.request('call.invite', inviteOf(calleeId))
    await first.next('call.ringing')
    // Nobody comes back to it, though its client could.
    await first.die()
    const second = await phone()
    await second.next('call.ringing')
    expect((await second.request('call.accept', { call_uuid: data.call_uuid })).event).toBe('call.ack')
    await second.request('call.end', { call_uuid: data.call_uuid })
    await second.leave()
    const third = await phone()
    await third.settle()
    expect(third.events()).toEqual([])
  })
}

function registerTakeOver(service: () => Service): void {
  test('[PLACE3] another device cannot take a call that is held, and hears nothing of it', async () => {
    const devices = await connectDevices(service())
    const callUuid = await ringAll(devices)
    await devices.callee.request('call.accept', { call_uuid: callUuid })
    await devices.caller.request('webrtc.ice_candidate', candidate(callUuid, 1))
    for (const event of ['call.end', 'call.connected', 'webrtc.ice_candidate']) {
      const data = event === 'webrtc.ice_candidate' ? candidate(callUuid, 2) : { call_uuid: callUuid }
      expect((await devices.tablet.request(event, data)).error.code).toBe('CALL_NOT_PARTICIPANT')
    }
    expect(candidatesOf(devices.tablet, callUuid)).toEqual([])
  })

  /** Names the call on the tablet: too early at first, and then when that may have it, which it hears once the loss was seen. */
  async function takeOnTablet({ tablet }: Devices, callUuid: string): Promise<void> {
    const ask = () => tablet.request('call.connected', { call_uuid: callUuid })
    let wait: number | undefined
    while (wait === undefined) {
      const { error } = await ask()
      expect(error.code).toBe('CALL_NOT_PARTICIPANT')
      wait = error.retry_after_ms
    }
    // The clocks of two nodes may differ a little.
    expect(wait).toBeWithin(1, 6_000)
    await Bun.sleep(wait + clockMs)
    expect((await ask()).event).toBe('call.ack')
  }
  const elsewhere = { status: 'connected', reason: 'answered_elsewhere', ended_at: null }

  test.concurrent('[PLACE2] a device that names the call takes it from one that is away for 5 s, with what was queued', async () => {
    const devices = await connectDevices(service())
    const callUuid = await ringAll(devices)
    await devices.callee.request('call.accept', { call_uuid: callUuid })
    await devices.caller.next('call.accepted')
    await devices.callee.settle()
    const point = devices.callee.point
    await devices.callee.die()
    for (const n of [1, 2, 3]) await devices.caller.request('webrtc.ice_candidate', candidate(callUuid, n))
    await takeOnTablet(devices, callUuid)
    await devices.tablet.settle()
    expect(candidatesOf(devices.tablet, callUuid)).toEqual([1, 2, 3])
    // A log does not claim the messages that it gave away [RES2].
    const hello = await devices.callee.connect(point)
    expect(hello.data.recovered).toBe(false)
    expect(hello.data.active_calls).toMatchObject([{ call_uuid: callUuid, holds_place: false }])
    expect((await devices.callee.next('call.cancelled', about(callUuid))).data).toMatchObject(elsewhere)
  })

  test.concurrent('[PLACE2] [RES1] a phone that resumes its session after the tablet took its call is told so', async () => {
    const devices = await connectDevices(service())
    const callUuid = await ringAll(devices)
    await devices.callee.request('call.accept', { call_uuid: callUuid })
    await devices.callee.die()
    await takeOnTablet(devices, callUuid)
    expect((await devices.callee.connect()).data.recovered).toBe(true)
    expect((await devices.callee.next('call.cancelled', about(callUuid))).data).toMatchObject(elsewhere)
    const refused = await devices.callee.request('webrtc.ice_candidate', candidate(callUuid, 1))
    expect(refused.error.code).toBe('CALL_NOT_PARTICIPANT')
    await devices.callee.settle()
    expect(devices.callee.events()).toEqual(['call.ringing', 'call.cancelled'])
  })

  test('[PLACE2] [RES1] a phone that is back in time has its call, whatever the tablet asked for meanwhile', async () => {
    const devices = await connectDevices(service())
    const callUuid = await ringAll(devices)
    await devices.callee.request('call.accept', { call_uuid: callUuid })
    await devices.callee.die()
    expect((await devices.tablet.request('call.end', { call_uuid: callUuid })).error.code).toBe('CALL_NOT_PARTICIPANT')
    expect((await devices.callee.connect()).data.active_calls).toMatchObject([{ holds_place: true }])
    await devices.callee.request('webrtc.ice_candidate', candidate(callUuid, 1))
    await devices.caller.next('webrtc.ice_candidate')
    await devices.callee.settle()
    expect(devices.callee.events()).toEqual(['call.ringing'])
  })

  test('[PLACE2] the same device with a new session takes its place by connecting', async () => {
    const devices = await connectDevices(service())
    const callUuid = await ringAll(devices)
    await devices.callee.request('call.accept', { call_uuid: callUuid })
    await devices.callee.settle()
    await devices.callee.die()
    await devices.caller.request('webrtc.ice_candidate', candidate(callUuid, 1))
    const again = await connectExtended(service(), { user_id: devices.calleeId, role: 'agent', device_id: 'phone' })
    expect(again.hello?.data.active_calls).toMatchObject([{ call_uuid: callUuid, holds_place: true }])
    await again.settle()
    expect(candidatesOf(again, callUuid)).toEqual([1])
    await again.request('call.end', { call_uuid: callUuid })
    expect((await devices.caller.next('call.ended')).data.reason).toBe('hangup')
  })

  test('[INV7] a device that crashed in a call and calls again is not in two calls', async () => {
    const devices = await connectDevices(service())
    const callUuid = await ringAll(devices)
    await devices.callee.request('call.accept', { call_uuid: callUuid })
    await devices.caller.settle()
    await devices.caller.die()
    const again = await connectExtended(service(), { user_id: devices.callerId, role: 'customer', device_id: 'desk' })
    expect(again.hello?.data.active_calls).toMatchObject([{ call_uuid: callUuid, holds_place: true }])
    const invited = await again.request('call.invite', inviteOf(devices.calleeId))
    expect(invited.data.call_uuid).not.toBe(callUuid)
    // It, too: its client may show the call that it heard of when it connected.
    for (const client of [devices.callee, again]) {
      expect((await client.next('call.ended', about(callUuid))).data.reason).toBe('superseded')
    }
    await devices.callee.next('call.ringing', about(invited.data.call_uuid))
  })

  test('[PLACE1] two tabs of one user are two sessions: only the one that called has the call', async () => {
    const devices = await connectDevices(service())
    const tab = await connectExtended(service(), { user_id: devices.callerId, role: 'customer', device_id: 'desk' })
    const callUuid = await answeredCall(devices)
    await devices.callee.request('webrtc.ice_candidate', candidate(callUuid, 1))
    await Promise.all([tab, devices.caller].map((client) => client.settle()))
    expect(tab.events()).toEqual([])
    expect(candidatesOf(devices.caller, callUuid)).toEqual([1])
  })
}

/** A base client and an extended one in the same call, either way round. */
function registerMixed(service: () => Service): void {
  const plain = (client: Client) => client.all.filter(({ request_id: id }) => id === undefined)

  for (const extendedSide of ['caller', 'callee'] as const) {
    test(`[EXT1] an extended ${extendedSide} with a base peer: each hears what its mode has`, async () => {
      const [callerId, calleeId] = [someone('caller'), someone('callee')]
      const [own, other] = extendedSide === 'caller' ? [callerId, calleeId] : [calleeId, callerId]
      const extended = await connectExtended(service(), {
        user_id: own,
        role: extendedSide === 'caller' ? 'customer' : 'agent',
      })
      const base = await service().connect({ user_id: other, role: extendedSide === 'caller' ? 'agent' : 'customer' })
      const callUuid = crypto.randomUUID()
      const data = { call_uuid: callUuid }
      if (extendedSide === 'caller') {
        await extended.request('call.invite', inviteOf(calleeId, data))
        await base.next('call.ringing')
        base.send('call.accept', data)
        await extended.next('call.accepted')
      } else {
        base.send('call.invite', inviteOf(calleeId, data))
        await extended.next('call.ringing')
        await extended.request('call.accept', data)
        await base.next('call.accepted')
      }
      base.send('webrtc.ice_candidate', candidate(callUuid, 1))
      base.send('call.connected', data)
      await extended.next('call.status')
      // The extended one loses its network; the base one notices nothing, and what it says is not lost.
      await extended.die()
      base.send('webrtc.ice_candidate', candidate(callUuid, 2))
      await base.settle()
      expect((await extended.connect()).data.recovered).toBe(true)
      await extended.request('webrtc.ice_candidate', candidate(callUuid, 3))
      await extended.request('call.end', data)
      await base.next('call.ended')
      expect(candidatesOf(extended, callUuid)).toEqual([1, 2])
      const heard = plain(base).map(({ event }) => event)
      const first = extendedSide === 'caller' ? ['call.ringing'] : ['call.invited', 'call.accepted']
      expect(heard).toEqual(['auth.ok', ...first, 'webrtc.ice_candidate', 'call.ended'])
      for (const message of plain(base)) expect('seq' in message || 'version' in message).toBe(false)
    })
  }
}
