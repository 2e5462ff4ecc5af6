import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Client } from '@ringwire/testkit/client'
import { ExtendedClient } from '@ringwire/testkit/extended-client'
import { acceptedCall, candidate, connectPair, invite } from '@ringwire/testkit/flows'
import { Service } from '@ringwire/testkit/service'
import { errorCode, inviteOf, offer, request } from '../support/sessions.ts'

/* What docs/base-clients.md says under "A half-open socket" and "After a reconnect", as the service does it. */

let service: Service
beforeAll(async () => {
  service = await new Service({}).start()
})
afterAll(() => service.dispose())

type Pair = Awaited<ReturnType<typeof connectPair>>
const callerBack = ({ callerId }: Pair) => service.connect({ user_id: callerId, role: 'customer' })
const calleeBack = ({ calleeId }: Pair) => service.connect({ user_id: calleeId, role: 'agent' })
const eventsOf = (client: Client, ...events: string[]) => client.events().filter((event) => events.includes(event))

describe('a half-open socket', () => {
  test('an event that does not exist is answered, however often, and after all that was asked before it', async () => {
    const pair = await connectPair(service)
    const callUuid = await acceptedCall(pair)
    for (let n = 0; n < 15; n++) {
      pair.caller.send('webrtc.ice_candidate', candidate(callUuid, n))
      pair.caller.send('client.probe', undefined, `probe-${n}`)
      expect((await pair.caller.error(`probe-${n}`)).code).toBe('UNKNOWN_EVENT')
    }
    await pair.callee.settle()
    expect(eventsOf(pair.callee, 'webrtc.ice_candidate')).toHaveLength(15)
  })

  test('a heartbeat is not answered', async () => {
    const { caller } = await connectPair(service)
    caller.text('{"type":"ping"}')
    await caller.settle()
    expect(caller.events()).toEqual(['auth.ok'])
  })
})

describe('after a reconnect', () => {
  test('an invite without call.invited: the same invite again makes one call', async () => {
    const pair = await connectPair(service)
    const wish = inviteOf(pair.calleeId, { call_uuid: crypto.randomUUID() })
    pair.caller.send('call.invite', wish)
    await pair.callee.next('call.ringing')
    await pair.caller.die()
    const back = await callerBack(pair)
    expect(await request(back, 'call.invite', wish)).toMatchObject({
      event: 'call.invited',
      data: { status: 'ringing' },
    })
    await pair.callee.settle()
    expect(eventsOf(pair.callee, 'call.ringing')).toHaveLength(1)
  })

  test('an own call that rings: call.accepted comes by itself, and the same invite says the status', async () => {
    const pair = await connectPair(service)
    const wish = inviteOf(pair.calleeId, { call_uuid: crypto.randomUUID() })
    await request(pair.caller, 'call.invite', wish)
    await pair.callee.next('call.ringing')
    await pair.caller.die()
    const { call_uuid } = wish as { call_uuid: string }
    expect(await errorCode(pair.callee, 'call.accept', { call_uuid })).toBeUndefined()
    const back = await callerBack(pair)
    await back.next('call.accepted')
    expect(await request(back, 'call.invite', wish)).toMatchObject({ data: { call_uuid, status: 'accepted' } })
  })

  test('a call that rings here rings again; one that was over by then ends', async () => {
    const pair = await connectPair(service)
    const callUuid = await invite(pair.caller, pair.calleeId)
    await pair.callee.next('call.ringing')
    await pair.callee.die()
    const back = await calleeBack(pair)
    expect((await back.next('call.ringing')).data).toMatchObject({ call_uuid: callUuid })
    await back.die()
    pair.caller.send('call.cancel', { call_uuid: callUuid })
    await pair.caller.settle()
    const again = await calleeBack(pair)
    expect((await again.next('call.cancelled')).data).toMatchObject({ call_uuid: callUuid })
    await again.settle()
    expect(eventsOf(again, 'call.ringing')).toEqual([])
  })

  test('call.accept again: nothing where it had arrived, an answer where it had not, an error where it comes too late', async () => {
    const pair = await connectPair(service)
    const callUuid = await acceptedCall(pair)
    await pair.callee.die()
    const back = await calleeBack(pair)
    expect(await errorCode(back, 'call.accept', { call_uuid: callUuid })).toBeUndefined()
    back.send('call.end', { call_uuid: callUuid })
    await pair.caller.next('call.ended')
    expect(await errorCode(back, 'call.accept', { call_uuid: callUuid })).toBe('CALL_INVALID_STATE')

    const second = await invite(pair.caller, pair.calleeId)
    await back.next('call.ringing', ({ data }) => data.call_uuid === second)
    await back.die()
    const later = await calleeBack(pair)
    expect(await errorCode(later, 'call.accept', { call_uuid: second })).toBeUndefined()
    await pair.caller.next('call.accepted', ({ data }) => data.call_uuid === second)
  })

  test('an answered call whose callee comes back: an offer that it was not proven to have comes again, and it may offer itself', async () => {
    const pair = await connectPair(service)
    const callUuid = await acceptedCall(pair)
    pair.callee.answersPings = false
    pair.caller.send('webrtc.offer', offer(callUuid))
    await pair.callee.next('webrtc.offer')
    await pair.callee.die()
    const back = await calleeBack(pair)
    await back.next('webrtc.offer')
    expect(await errorCode(back, 'webrtc.offer', offer(callUuid, 'v=0 mine'))).toBeUndefined()
    await pair.caller.next('webrtc.offer')
  })

  test('media flows: call.connected changes nothing, and brings the end of a call that is over', async () => {
    const pair = await connectPair(service)
    const callUuid = await acceptedCall(pair)
    expect(await errorCode(pair.caller, 'call.connected', { call_uuid: callUuid })).toBeUndefined()
    await pair.caller.die()
    const back = await callerBack(pair)
    expect(await errorCode(back, 'call.connected', { call_uuid: callUuid })).toBeUndefined()
    pair.callee.send('call.end', { call_uuid: callUuid })
    await back.next('call.ended')
    const other = await connectPair(service)
    expect(await errorCode(other.caller, 'call.connected', { call_uuid: callUuid })).toBe('CALL_NOT_FOUND')
  })

  test('a hang-up succeeds again, also where the call is over', async () => {
    const pair = await connectPair(service)
    const callUuid = await acceptedCall(pair)
    pair.caller.send('call.end', { call_uuid: callUuid })
    await pair.callee.next('call.ended')
    await pair.caller.die()
    const back = await callerBack(pair)
    for (const event of ['call.end', 'call.cancel']) {
      expect(await errorCode(back, event, { call_uuid: callUuid })).toBeUndefined()
    }
    const rejected = await invite(back, pair.calleeId)
    await pair.callee.next('call.ringing', ({ data }) => data.call_uuid === rejected)
    for (let n = 0; n < 2; n++) {
      expect(await errorCode(pair.callee, 'call.reject', { call_uuid: rejected })).toBeUndefined()
    }
  })
})

test('after a resume that failed the numbers begin again, and repeated verbs and invites do no harm', async () => {
  const pair = await connectPair(service)
  const token = await service.token({ user_id: pair.callerId, role: 'customer' })
  const phone = new ExtendedClient({ userId: pair.callerId, url: service.url, token })
  await phone.connect()
  const wish = inviteOf(pair.calleeId, { call_uuid: crypto.randomUUID() })
  await phone.request('call.invite', wish)
  await pair.callee.next('call.ringing')
  await phone.die()
  const point = phone.point
  expect(point).toBeDefined()
  const hello = await phone.connect(point && { ...point, epoch: 'another' })
  expect(hello.data).toMatchObject({ recovered: false, handled: 0 })
  expect((await phone.request('call.invite', wish)).data).toMatchObject({ ...uuidOf(wish), status: 'ringing' })
  for (let n = 0; n < 2; n++) {
    expect((await phone.request('call.cancel', uuidOf(wish))).data).toMatchObject({ status: 'cancelled' })
  }
  await pair.callee.settle()
  expect(eventsOf(pair.callee, 'call.ringing', 'call.cancelled')).toEqual(['call.ringing', 'call.cancelled'])
  phone.stop()
})

const uuidOf = (wish: object) => ({ call_uuid: (wish as { call_uuid: string }).call_uuid })
