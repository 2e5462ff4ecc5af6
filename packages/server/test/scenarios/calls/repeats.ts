import { describe, expect, test } from 'bun:test'
import { connectPair, invite, someone } from '@ringwire/testkit/flows'
import { productKey, type Service } from '@ringwire/testkit/service'
import {
  answer,
  connectFour,
  errorCode,
  eventsOf,
  inviteOf,
  listen,
  offer,
  quiet,
  received,
  recordOf,
  request,
  sessionNames,
} from '../../support/sessions.ts'
import { callIn } from './call-states.ts'
import { type Env, type Start, serviceFor } from './composition.ts'

const products: Env = { RINGWIRE_BOOTSTRAP_KEYS: `${productKey.id}:${productKey.secret}:shop,clinic` }

/** Which call a call_uuid names, and for whom. */
export function registerRepeats(name: string, start: Start): void {
  describe(`call_uuid as idempotency key, ${name}`, () => {
    const service = serviceFor(start)
    registerSameCaller(service)
    registerAfterTheEnd(service)
    registerForeign(service)
    registerCase(service)
  })
  describe(`participants and products, ${name}`, () => {
    registerIdentity(serviceFor(start, products))
  })
}

function registerSameCaller(service: () => Service): void {
  for (const status of ['ringing', 'accepted', 'connected'] as const) {
    test(`[INV3] the same call_uuid again while it is ${status}: the same reply, and nobody is rung twice`, async () => {
      const four = await connectFour(service())
      const callUuid = await callIn(status, four, { ring_timeout_ms: 30_000, call_type: 'video' })
      const first = received(four.caller).find(({ event }) => event === 'call.invited')
      const news = listen(four, sessionNames)
      // What else a repeat says does not count.
      const again = inviteOf(four.calleeId, {
        call_uuid: callUuid,
        ring_timeout_ms: 1,
        call_type: 'audio',
        metadata: {},
      })
      for (const client of [four.caller, four.callerTab]) {
        const reply = await request(client, 'call.invite', again)
        expect(reply).toEqual({
          event: 'call.invited',
          request_id: reply?.request_id as string,
          data: { ...first?.data, status },
        })
      }
      await quiet(...sessionNames.map((who) => four[who]))
      expect(eventsOf(news())).toEqual({
        caller: ['call.invited'],
        callerTab: ['call.invited'],
        callee: [],
        calleeTab: [],
      })
    })
  }

  test('[INV3] [PLACE3] a repeat by another session does not take the place', async () => {
    const four = await connectFour(service())
    const callUuid = await callIn('ringing', four)
    await request(four.callerTab, 'call.invite', inviteOf(four.calleeId, { call_uuid: callUuid }))
    expect(await errorCode(four.callerTab, 'call.cancel', { call_uuid: callUuid })).toBe('CALL_NOT_PARTICIPANT')
    four.callee.send('call.accept', { call_uuid: callUuid })
    await four.caller.next('call.accepted')
    await quiet(four.callerTab)
    expect(four.callerTab.events()).not.toContain('call.accepted')
  })

  test('[INV3] a request_id that is used twice is two requests', async () => {
    const { caller, callee, calleeId } = await connectPair(service())
    const otherId = someone('other')
    caller.send('call.invite', inviteOf(calleeId), 'same')
    const first = await caller.next('call.invited')
    caller.send('call.invite', inviteOf(otherId), 'same')
    const second = await caller.next('call.invited')
    expect(first.request_id).toBe('same')
    expect(second.request_id).toBe('same')
    expect(second.data.call_uuid).not.toBe(first.data.call_uuid)
    await quiet(caller, callee)
    expect(callee.events()).toEqual(['auth.ok', 'call.ringing'])
  })

  test('[INV3] ten copies of one invite in one write: one call, ten equal replies', async () => {
    const { caller, callee, calleeId, callerId } = await connectPair(service())
    const callUuid = crypto.randomUUID()
    for (let n = 0; n < 10; n++) caller.send('call.invite', inviteOf(calleeId, { call_uuid: callUuid }), `r-${n}`)
    await quiet(caller, callee)
    const replies = received(caller).slice(1)
    expect(replies.map(({ request_id }) => request_id)).toEqual(Array.from({ length: 10 }, (_, n) => `r-${n}`))
    expect(new Set(replies.map(({ data }) => JSON.stringify(data))).size).toBe(1)
    expect(callee.events()).toEqual(['auth.ok', 'call.ringing'])
    const history = await service().history(await service().token({ user_id: callerId, role: 'customer' }))
    expect(history.data).toHaveLength(1)
  })
}

function registerAfterTheEnd(service: () => Service): void {
  const ends = { ended: 'call.end', cancelled: 'call.cancel' } as const
  for (const [status, verb] of Object.entries(ends)) {
    test(`[INV3] the same call_uuid after the call was ${status}: the same reply with that status, and no new call`, async () => {
      const four = await connectFour(service())
      const callUuid = await callIn(status === 'ended' ? 'connected' : 'ringing', four)
      four.caller.send(verb, { call_uuid: callUuid })
      await four.callee.next(status === 'ended' ? 'call.ended' : 'call.cancelled')
      await quiet(...sessionNames.map((who) => four[who]))
      const news = listen(four, sessionNames)
      for (const uuid of [callUuid, callUuid.toUpperCase()]) {
        const reply = await request(four.caller, 'call.invite', inviteOf(four.calleeId, { call_uuid: uuid }))
        expect(reply).toMatchObject({ event: 'call.invited', data: { call_uuid: callUuid, status } })
      }
      await quiet(...sessionNames.map((who) => four[who]))
      expect(eventsOf(news()).callee).toEqual([])
      expect(eventsOf(news()).calleeTab).toEqual([])
      const history = await service().history(await service().token({ user_id: four.callerId, role: 'customer' }))
      expect(history.data).toHaveLength(1)
    })
  }

  test('[INV3] a missed and a rejected call are named by their uuid as well', async () => {
    const { caller, callee, calleeId } = await connectPair(service())
    const missed = await invite(caller, calleeId, { ring_timeout_ms: 1 })
    await caller.next('call.missed')
    const rejected = await invite(caller, calleeId)
    callee.send('call.reject', { call_uuid: rejected })
    await caller.next('call.rejected')
    for (const [callUuid, status] of [
      [missed, 'missed'],
      [rejected, 'rejected'],
    ] as const) {
      const reply = await request(caller, 'call.invite', inviteOf(calleeId, { call_uuid: callUuid }))
      expect(reply?.data).toMatchObject({ call_uuid: callUuid, status })
    }
  })
}

function registerForeign(service: () => Service): void {
  test("[INV3] [UUID1] a stranger's call_uuid: a call of one's own under another, and nothing of theirs shows or changes", async () => {
    const theirs = await connectPair(service())
    const callUuid = await invite(theirs.caller, theirs.calleeId, { context_id: 'secret', metadata: { secret: 1 } })
    await theirs.callee.next('call.ringing')
    const ours = await connectPair(service())
    const reply = await request(ours.caller, 'call.invite', inviteOf(ours.calleeId, { call_uuid: callUuid }))
    expect(reply).toMatchObject({ event: 'call.invited', data: { status: 'ringing', delivered: true } })
    expect(reply?.data.call_uuid).not.toBe(callUuid)
    expect((await ours.callee.next('call.ringing')).data).not.toHaveProperty('metadata')
    // Again: the call that rings between the two, and still nothing of theirs [INV7].
    const again = await request(ours.caller, 'call.invite', inviteOf(ours.calleeId, { call_uuid: callUuid }))
    expect(again?.data).toEqual(reply?.data)

    // The callee of their call is not a caller either.
    const back = await request(theirs.callee, 'call.invite', {
      callee_user_id: ours.callerId,
      callee_role: 'customer',
      call_uuid: callUuid,
    })
    expect(back?.data.call_uuid).not.toBe(callUuid)

    theirs.callee.send('call.accept', { call_uuid: callUuid })
    expect((await theirs.caller.next('call.accepted')).data.call_uuid).toBe(callUuid)
    await quiet(theirs.caller, theirs.callee)
    expect(theirs.caller.events()).toEqual(['auth.ok', 'call.invited', 'call.accepted'])
    expect(theirs.callee.events().filter((event) => event !== 'call.invited')).toEqual(['auth.ok', 'call.ringing'])
  })

  test("[UUID1] CALL_ID_CONFLICT is for the caller's own earlier call with another callee, live or over", async () => {
    const { caller, callee, calleeId } = await connectPair(service())
    const other = await service().connect({ user_id: someone('other'), role: 'agent' })
    const otherId = other.all[0]?.data.user_id
    const callUuid = await invite(caller, calleeId)
    const conflict = { error: { code: 'CALL_ID_CONFLICT' } }
    expect(await request(caller, 'call.invite', inviteOf(otherId, { call_uuid: callUuid }))).toMatchObject(conflict)
    caller.send('call.cancel', { call_uuid: callUuid })
    await callee.next('call.cancelled')
    expect(await request(caller, 'call.invite', inviteOf(otherId, { call_uuid: callUuid }))).toMatchObject(conflict)
    await quiet(other)
    expect(other.events()).toEqual(['auth.ok'])
  })
}

function registerCase(service: () => Service): void {
  test('[UUID1] a call_uuid is compared without case and always sent in lower case', async () => {
    const pair = await connectPair(service())
    const callUuid = crypto.randomUUID()
    const shouted = callUuid.toUpperCase()
    const reply = await request(pair.caller, 'call.invite', inviteOf(pair.calleeId, { call_uuid: shouted }))
    expect(reply?.data.call_uuid).toBe(callUuid)
    expect((await pair.callee.next('call.ringing')).data.call_uuid).toBe(callUuid)
    pair.caller.send('webrtc.offer', offer(shouted))
    pair.callee.send('call.accept', { call_uuid: shouted })
    expect((await pair.caller.next('call.accepted')).data.call_uuid).toBe(callUuid)
    expect((await pair.callee.next('webrtc.offer')).data.call_uuid).toBe(callUuid)
    pair.callee.send('webrtc.answer', answer(shouted))
    expect((await pair.caller.next('webrtc.answer')).data.call_uuid).toBe(callUuid)
    for (const verb of ['connected', 'end']) pair.callee.send(`call.${verb}`, { call_uuid: shouted })
    expect((await pair.caller.next('call.ended')).data.call_uuid).toBe(callUuid)
    const record = await recordOf(service(), { user_id: pair.calleeId, role: 'agent' }, callUuid)
    expect(record).toMatchObject({ status: 'ended', connected_at: expect.any(String) })
    await quiet(pair.caller, pair.callee)
    expect(JSON.stringify([...pair.caller.all, ...pair.callee.all])).not.toContain(shouted)
  })
}

function registerIdentity(service: () => Service): void {
  test('[ID1] the same user_id under two roles is two participants, who can even call each other', async () => {
    const userId = someone('both')
    const as = (role: string) => ({ product: 'shop', user_id: userId, role })
    const customer = await service().connect(as('customer'))
    const agent = await service().connect(as('agent'))
    const callUuid = await invite(customer, userId)
    expect((await agent.next('call.ringing')).data).toMatchObject({ caller_user_id: userId, caller_role: 'customer' })
    agent.send('call.accept', { call_uuid: callUuid })
    await customer.next('call.accepted')
    agent.send('webrtc.offer', offer(callUuid))
    expect((await customer.next('webrtc.offer')).data).toMatchObject({ from_user_id: userId, from_role: 'agent' })
    customer.send('call.end', { call_uuid: callUuid })
    expect((await agent.next('call.ended')).data.by).toEqual({ user_id: userId, role: 'customer' })
    await quiet(customer, agent)
    expect(customer.events()).toEqual(['auth.ok', 'call.invited', 'call.accepted', 'webrtc.offer'])
    expect(agent.events()).toEqual(['auth.ok', 'call.ringing', 'call.ended'])
    expect(await recordOf(service(), as('customer'), callUuid)).toMatchObject({ direction: 'outgoing' })
    expect(await recordOf(service(), as('agent'), callUuid)).toMatchObject({ direction: 'incoming' })
  })

  test('[ID1] a call rings in the role that was called, and nowhere else', async () => {
    const userId = someone('both')
    const agent = await service().connect({ product: 'shop', user_id: userId, role: 'agent' })
    const customer = await service().connect({ product: 'shop', user_id: userId, role: 'customer' })
    const caller = await service().connect({ product: 'shop', user_id: someone('caller'), role: 'customer' })
    await invite(caller, userId)
    await quiet(caller, agent, customer)
    expect(agent.events()).toEqual(['auth.ok', 'call.ringing'])
    expect(customer.events()).toEqual(['auth.ok'])
  })

  test('[ID1] [UUID1] two products never see each other, also where user_id, role and call_uuid are the same', async () => {
    const [callerId, calleeId, callUuid] = [someone('caller'), someone('callee'), crypto.randomUUID()]
    const connect = async (product: string) => ({
      caller: await service().connect({ product, user_id: callerId, role: 'customer' }),
      callee: await service().connect({ product, user_id: calleeId, role: 'agent' }),
    })
    const shop = await connect('shop')
    const clinic = await connect('clinic')
    expect(await invite(shop.caller, calleeId, { call_uuid: callUuid })).toBe(callUuid)
    await quiet(shop.caller, shop.callee, clinic.caller, clinic.callee)
    expect(clinic.callee.events()).toEqual(['auth.ok'])
    for (const verb of ['accept', 'reject', 'cancel', 'end', 'connected']) {
      expect(await errorCode(clinic.callee, `call.${verb}`, { call_uuid: callUuid })).toBe('CALL_NOT_FOUND')
    }
    expect(await errorCode(clinic.callee, 'webrtc.offer', offer(callUuid))).toBe('CALL_NOT_FOUND')

    expect(await invite(clinic.caller, calleeId, { call_uuid: callUuid })).toBe(callUuid)
    clinic.callee.send('call.accept', { call_uuid: callUuid })
    await clinic.caller.next('call.accepted')
    clinic.callee.send('webrtc.answer', answer(callUuid))
    await clinic.caller.next('webrtc.answer')
    await quiet(shop.caller, shop.callee, clinic.caller, clinic.callee)
    expect(shop.caller.events()).toEqual(['auth.ok', 'call.invited'])
    expect(shop.callee.events()).toEqual(['auth.ok', 'call.ringing'])
    const statusIn = async (product: string) =>
      (await recordOf(service(), { product, user_id: callerId, role: 'customer' }, callUuid)).status
    expect([await statusIn('shop'), await statusIn('clinic')]).toEqual(['ringing', 'accepted'])
  })
}
