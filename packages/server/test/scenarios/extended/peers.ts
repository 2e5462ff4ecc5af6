import { describe, expect, test } from 'bun:test'
import type { ExtendedClient } from '@ringwire/testkit/extended-client'
import { candidate, someone } from '@ringwire/testkit/flows'
import type { Service, TokenWish } from '@ringwire/testkit/service'
import { about, answeredCall, connectExtended, type ExtendedPair, ringingCall } from '../../support/extended-flows.ts'
import { inviteOf } from '../../support/sessions.ts'
import { type Start, serviceFor } from '../calls/composition.ts'

/** What peers see of each other: their names, what they send, and that they are away [MEDIA1, PEER1]. */
export function registerPeers(name: string, start: Start): void {
  describe(`what peers see of each other, ${name}`, () => {
    const service = serviceFor(start)
    registerNames(service)
    registerMedia(service)
    registerAbsence(service)
    registerHangUps(service)
  })
}

const on = { audio: true, video: true, screen: false }
const muted = { audio: false, video: true, screen: true }
const longMs = 120_000
const shortMs = 20_000

async function pairOf(service: Service): Promise<ExtendedPair> {
  const [callerId, calleeId] = [someone('caller'), someone('callee')]
  const [caller, callee] = await Promise.all([
    connectExtended(service, { user_id: callerId, role: 'customer', device_id: 'desk' }),
    connectExtended(service, { user_id: calleeId, role: 'agent', device_id: 'phone', display_name: 'Ben' }),
  ])
  return { caller, callee, callerId, calleeId }
}

/** What a client heard of one call by some events, in order. */
function heard({ pushes }: ExtendedClient, call: string, ...events: string[]) {
  return pushes.filter(({ event, data }) => events.includes(event) && data.call_uuid === call)
}

const mediaTo = (client: ExtendedClient, call: string) =>
  heard(client, call, 'call.media').map(({ data: { audio, video, screen } }) => ({ audio, video, screen }))
const absencesTo = (client: ExtendedClient, call: string) =>
  heard(client, call, 'call.peer_away', 'call.peer_back').map(({ event }) => event)
const lasts = ({ since, ends_at }: { since: string; ends_at: string }) => Date.parse(ends_at) - Date.parse(since)

/** Resolves when who connects reads that the other side is away. */
async function seenAway(service: Service, wish: TokenWish): Promise<void> {
  for (let isAway = false; !isAway; ) {
    const tab = await connectExtended(service, wish)
    isAway = tab.hello?.data.active_calls[0].peer.away !== undefined
    await tab.leave()
  }
}

function registerHangUps(service: () => Service): void {
  test('[END6] an extended caller that closes with 1000 while its call rings has hung up', async () => {
    const pair = await pairOf(service())
    const call = await ringingCall(pair)
    await pair.caller.leave(1000)
    const { data } = await pair.callee.next('call.cancelled', about(call))
    expect(data).toMatchObject({
      status: 'cancelled',
      reason: 'caller_cancelled',
      by: { user_id: pair.callerId, role: 'customer' },
      ended_at: expect.any(String),
    })
  })

  test('[END6] who reloads, or loses its socket, or has another one, has not; nor has a callee, nor in an answered call', async () => {
    const rings = async (pair: ExtendedPair, call: string) => {
      await pair.callee.settle()
      expect(heard(pair.callee, call, 'call.cancelled')).toEqual([])
      await pair.callee.request('call.accept', { call_uuid: call })
    }
    const reloads = await pairOf(service())
    const reloaded = await ringingCall(reloads)
    await reloads.caller.leave(1001)
    await rings(reloads, reloaded)

    const dies = await pairOf(service())
    const lost = await ringingCall(dies)
    await dies.caller.die()
    await rings(dies, lost)

    const other = await pairOf(service())
    const left = await ringingCall(other)
    const tab = await connectExtended(service(), { user_id: other.calleeId, role: 'agent', device_id: 'tablet' })
    await tab.leave(1000)
    await rings(other, left)
    // Both are in the call: who closes is away.
    await other.caller.leave(1000)
    await other.callee.next('call.peer_away', about(left))
  })
}

function registerNames(service: () => Service): void {
  test('an extended caller hears the name of who answered; a base one what the interface says and no more', async () => {
    const pair = await pairOf(service())
    const call = await ringingCall(pair)
    await pair.callee.request('call.accept', { call_uuid: call })
    const { data } = await pair.caller.next('call.accepted', about(call))
    expect(data).toEqual({ call_uuid: call, status: 'accepted', display_name: 'Ben' })
    const base = await service().connect({ user_id: someone('base'), role: 'customer' })
    base.send('call.invite', inviteOf(pair.calleeId))
    const { call_uuid } = (await pair.callee.next('call.ringing', ({ data }) => data.call_uuid !== call)).data
    await pair.callee.request('call.accept', { call_uuid })
    expect((await base.next('call.accepted')).data).toEqual({ call_uuid, status: 'accepted' })
  })
}

function registerMedia(service: () => Service): void {
  test('[MEDIA1] it goes to the other place as a relay does, with the same checks', async () => {
    const pair = await pairOf(service())
    const { caller, callee, callerId } = pair
    const call = await ringingCall(pair)
    const ofCall = { call_uuid: call }
    // What the caller says before the accept comes with it [REL2].
    expect((await caller.request('call.media', { ...ofCall, ...on })).data).toEqual({ ...ofCall, status: 'ringing' })
    await callee.request('call.accept', ofCall)
    expect((await caller.request('call.media', { ...ofCall, ...muted, more: 1 })).event).toBe('call.ack')
    const origin = { from_user_id: callerId, from_role: 'customer' }
    await callee.settle()
    expect(heard(callee, call, 'call.media').map(({ data }) => data)).toEqual([
      { ...ofCall, ...on, ...origin },
      { ...ofCall, ...muted, ...origin },
    ])
    for (const wrong of [ofCall, { ...ofCall, ...on, audio: 'yes' }, { ...ofCall, audio: true, video: true }])
      expect((await callee.request('call.media', wrong)).error.code).toBe('INVALID_PAYLOAD')
    const tablet = await connectExtended(service(), { user_id: pair.calleeId, role: 'agent', device_id: 'tablet' })
    expect((await tablet.request('call.media', { ...ofCall, ...on })).error.code).toBe('CALL_NOT_PARTICIPANT')
    const stranger = await connectExtended(service(), { user_id: someone('eve'), role: 'agent' })
    expect((await stranger.request('call.media', { ...ofCall, ...on })).error.code).toBe('CALL_NOT_FOUND')
    await caller.request('call.end', ofCall)
    expect((await callee.request('call.media', { ...ofCall, ...on })).data).toEqual({ ...ofCall, status: 'ended' })
  })

  test('[MEDIA1] who takes the place is told the last one again: a new session, and one that comes back', async () => {
    const pair = await pairOf(service())
    const { caller, callee, calleeId } = pair
    const call = await answeredCall(pair)
    await caller.request('call.media', { call_uuid: call, ...on })
    await caller.request('call.media', { call_uuid: call, ...muted })
    await callee.settle()
    await callee.die()
    expect((await callee.connect()).data.recovered).toBe(true)
    await callee.settle()
    expect(mediaTo(callee, call)).toEqual([on, muted, muted])
    await callee.die()
    await caller.request('call.media', { call_uuid: call, ...on })
    expect((await callee.connect()).data.recovered).toBe(true)
    await callee.settle()
    // It finds that one in its log.
    expect(mediaTo(callee, call)).toEqual([on, muted, muted, on])
    await callee.die()
    const next = await connectExtended(service(), { user_id: calleeId, role: 'agent', device_id: 'phone' })
    await next.settle()
    expect(mediaTo(next, call)).toEqual([on])
  })

  test('[MEDIA1] [PEER1] a base peer hears nothing new, and may say what it sends', async () => {
    const calleeId = someone('base')
    const base = await service().connect({ user_id: calleeId, role: 'agent' })
    const caller = await connectExtended(service(), { user_id: someone('caller'), role: 'customer' })
    const { data } = await caller.request('call.invite', inviteOf(calleeId))
    const call = data.call_uuid
    await base.next('call.ringing')
    await caller.request('call.media', { call_uuid: call, ...on })
    base.send('call.accept', { call_uuid: call })
    await caller.next('call.accepted')
    expect((await caller.request('call.media', { call_uuid: call, ...muted })).event).toBe('call.ack')
    base.send('call.media', { call_uuid: call, ...muted })
    await caller.next('call.media')
    await caller.die()
    await caller.connect()
    await caller.request('webrtc.ice_candidate', candidate(call, 1))
    await base.next('webrtc.ice_candidate')
    expect(base.all.map(({ event }) => event)).toEqual(['auth.ok', 'call.ringing', 'webrtc.ice_candidate'])
    base.close()
  })
}

function registerAbsence(service: () => Service): void {
  test('[PEER1] an observed close is told at once, with its times; so is the return, in either direction', async () => {
    const pair = await pairOf(service())
    const call = await answeredCall(pair)
    for (const [gone, there] of [
      [pair.caller, pair.callee],
      [pair.callee, pair.caller],
    ] as const) {
      await gone.die()
      const { data, version } = await there.next('call.peer_away', about(call))
      expect(data).toEqual({ call_uuid: call, since: expect.any(String), ends_at: expect.any(String) })
      expect(lasts(data)).toBe(longMs)
      expect(version).toBeGreaterThan(2)
      expect(Math.abs(Date.parse(data.since) - Date.now())).toBeLessThan(10_000)
      // A client that connects now reads the same.
      const wish = there === pair.callee ? { user_id: pair.calleeId, role: 'agent' } : undefined
      const tab = await connectExtended(service(), wish ?? { user_id: pair.callerId, role: 'customer' })
      const { since, ends_at } = data
      expect(tab.hello?.data.active_calls[0].peer.away).toEqual({ since, ends_at })
      expect((await gone.connect()).data.active_calls[0].peer.away).toBeUndefined()
      expect((await there.next('call.peer_back', about(call))).data).toEqual({ call_uuid: call })
    }
    for (const client of [pair.caller, pair.callee]) {
      await client.settle()
      expect(absencesTo(client, call)).toEqual(['call.peer_away', 'call.peer_back'])
    }
  })

  test('[PEER1] who was away meanwhile hears of it once when it resumes, and of the end alone after the end', async () => {
    const pair = await pairOf(service())
    const call = await answeredCall(pair)
    const { caller, callee } = pair
    await callee.die()
    await caller.next('call.peer_away', about(call))
    await caller.die()
    await callee.connect()
    await callee.next('call.peer_away', about(call))
    await caller.connect()
    await callee.next('call.peer_back', about(call))
    for (const client of [caller, callee]) {
      await client.settle()
      expect(absencesTo(client, call)).toEqual(['call.peer_away', 'call.peer_back'])
    }
    await callee.die()
    await caller.next('call.peer_away', about(call))
    await caller.request('call.end', { call_uuid: call })
    await callee.connect()
    await callee.next('call.ended', about(call))
    await callee.settle()
    expect(callee.events().at(-1)).toBe('call.ended')
  })

  test('[PEER1] [PLACE5] a new session of its device that takes the place: the accept again, and that it is back', async () => {
    const pair = await pairOf(service())
    const call = await answeredCall(pair)
    await pair.callee.leave(1001)
    await pair.caller.next('call.peer_away', about(call))
    const next = await connectExtended(service(), { user_id: pair.calleeId, role: 'agent', device_id: 'phone' })
    expect(next.hello?.data.active_calls[0].holds_place).toBe(true)
    await pair.caller.next('call.accepted', about(call))
    await pair.caller.next('call.peer_back', about(call))
    await pair.caller.settle()
    expect(absencesTo(pair.caller, call)).toEqual(['call.peer_away', 'call.peer_back'])
  })

  test('[PEER1] [END5] both closed: 20 s for the second, and the whole time again for who comes back', async () => {
    const pair = await pairOf(service())
    const call = await answeredCall(pair)
    const { caller, callee } = pair
    await caller.leave(1001)
    expect(lasts((await callee.next('call.peer_away', about(call))).data)).toBe(longMs)
    await callee.leave(1001)
    await seenAway(service(), { user_id: pair.callerId, role: 'customer', device_id: 'tablet' })
    const hello = await caller.connect()
    expect(hello.data.recovered).toBe(true)
    await caller.next('call.peer_away', about(call))
    await caller.next('call.peer_away', about(call))
    await caller.settle()
    const told = heard(caller, call, 'call.peer_away').map(({ data }) => lasts(data))
    expect(told).toEqual([shortMs, longMs])
    expect(lasts(hello.data.active_calls[0].peer.away)).toBe(longMs)
  })

  test('[PEER1] who answers a caller that is away is told so', async () => {
    const pair = await pairOf(service())
    const call = await ringingCall(pair)
    await pair.caller.die()
    await pair.callee.settle()
    expect(absencesTo(pair.callee, call)).toEqual([])
    await pair.callee.request('call.accept', { call_uuid: call })
    expect(lasts((await pair.callee.next('call.peer_away', about(call))).data)).toBe(longMs)
    await pair.caller.connect()
    await pair.callee.next('call.peer_back', about(call))
  })
}
