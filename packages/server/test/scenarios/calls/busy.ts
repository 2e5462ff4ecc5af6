import { beforeAll, describe, expect, test } from 'bun:test'
import { someone } from '@ringwire/testkit/flows'
import { productKey, type Service } from '@ringwire/testkit/service'
import { setProduct } from '../../support/products.ts'
import { errorCode, inviteOf, offer, quiet, recordOf, request } from '../../support/sessions.ts'
import { type Env, type Start, serviceFor } from './composition.ts'

const env: Env = {
  RINGWIRE_BOOTSTRAP_KEYS: `${productKey.id}:${productKey.secret}:shop,strict,open`,
  RINGWIRE_PAIR_INVITE_RATE: '3/600',
}

/** What a product sets for itself [INV2, INV5, RING1]. */
export function registerProducts(name: string, start: Start): void {
  describe(`settings of products, ${name}`, () => {
    const service = serviceFor(start, env)
    beforeAll(async () => {
      await setProduct(service(), 'strict', '--busy', 'reject', '--ring-timeout-ms', '5000')
      await setProduct(service(), 'open', '--reveal-busy', 'true')
    })
    registerBusy(service)
    registerNotBusy(service)
    registerSettings(service)
  })
}

const backTo = (userId: string) => ({ callee_user_id: userId, callee_role: 'customer' })

async function people(service: Service, product: string) {
  const [callerId, calleeId, thirdId] = [someone('caller'), someone('callee'), someone('third')]
  return {
    callerId,
    calleeId,
    thirdId,
    caller: await service.connect({ product, user_id: callerId, role: 'customer' }),
    callee: await service.connect({ product, user_id: calleeId, role: 'agent' }),
    third: await service.connect({ product, user_id: thirdId, role: 'customer' }),
  }
}
type People = Awaited<ReturnType<typeof people>>

/** The callee answers the third one's call. */
async function occupy({ callee, third, calleeId }: People): Promise<string> {
  const reply = await request(third, 'call.invite', inviteOf(calleeId))
  await callee.next('call.ringing')
  callee.send('call.accept', { call_uuid: reply?.data.call_uuid })
  await third.next('call.accepted')
  return reply?.data.call_uuid
}

function registerBusy(service: () => Service): void {
  test('[INV5] a callee in a call: CALLEE_BUSY, nobody is rung, and both histories say busy', async () => {
    const all = await people(service(), 'strict')
    await occupy(all)
    const callUuid = crypto.randomUUID()
    const reply = await request(all.caller, 'call.invite', inviteOf(all.calleeId, { call_uuid: callUuid }))
    expect(reply).toMatchObject({ event: 'call.error', error: { code: 'CALLEE_BUSY' } })
    await quiet(all.caller, all.callee)
    expect(all.callee.events()).toEqual(['auth.ok', 'call.ringing'])
    for (const [userId, role, direction] of [
      [all.callerId, 'customer', 'outgoing'],
      [all.calleeId, 'agent', 'incoming'],
    ] as const) {
      const record = await recordOf(service(), { product: 'strict', user_id: userId, role }, callUuid)
      expect(record).toMatchObject({ status: 'busy', end_reason: 'busy', direction, accepted_at: null })
      expect(record.ended_at).toBe(record.started_at)
    }
  })

  test('[INV5] [END1] [INV3] a busy call is over: every verb says so, and a repeat names its status', async () => {
    const all = await people(service(), 'strict')
    await occupy(all)
    const callUuid = crypto.randomUUID()
    const invitation = inviteOf(all.calleeId, { call_uuid: callUuid })
    expect(await errorCode(all.caller, 'call.invite', invitation)).toBe('CALLEE_BUSY')
    const repeat = await request(all.caller, 'call.invite', invitation)
    expect(repeat).toMatchObject({ event: 'call.invited', data: { call_uuid: callUuid, status: 'busy' } })
    for (const client of [all.caller, all.callee]) {
      for (const verb of ['reject', 'cancel', 'end', 'connected']) {
        expect(await errorCode(client, `call.${verb}`, { call_uuid: callUuid })).toBeUndefined()
      }
      expect(await errorCode(client, 'webrtc.offer', offer(callUuid))).toBeUndefined()
    }
    const late = await request(all.callee, 'call.accept', { call_uuid: callUuid })
    expect(late?.error).toMatchObject({ code: 'CALL_INVALID_STATE', status: 'busy' })
  })

  test('[INV5] a callee who is calling somebody else is busy, too', async () => {
    const all = await people(service(), 'strict')
    await request(all.callee, 'call.invite', backTo(all.thirdId))
    expect(await errorCode(all.caller, 'call.invite', inviteOf(all.calleeId))).toBe('CALLEE_BUSY')
  })

  test('[INV1] glare before busy', async () => {
    const all = await people(service(), 'strict')
    await occupy(all)
    const waiting = await request(all.callee, 'call.invite', backTo(all.callerId))
    const reply = await request(all.caller, 'call.invite', inviteOf(all.calleeId))
    expect(reply?.error).toMatchObject({ code: 'CALL_GLARE', call_uuid: waiting?.data.call_uuid })
  })

  test('[INV8] an invite that is answered busy counts: it leaves a record each time', async () => {
    const all = await people(service(), 'strict')
    await occupy(all)
    const codes: (string | undefined)[] = []
    for (let n = 0; n < 4; n++) codes.push(await errorCode(all.caller, 'call.invite', inviteOf(all.calleeId)))
    expect(codes).toEqual(['CALLEE_BUSY', 'CALLEE_BUSY', 'CALLEE_BUSY', 'RATE_LIMITED'])
  })
}

function registerNotBusy(service: () => Service): void {
  test('[INV5] a call with the same peer never counts', async () => {
    const all = await people(service(), 'strict')
    const callUuid = await occupy(all)
    const reply = await request(all.third, 'call.invite', inviteOf(all.calleeId))
    expect(reply?.event).toBe('call.invited')
    expect(reply?.data.call_uuid).not.toBe(callUuid)
  })

  test('[INV5] after the call the callee is free', async () => {
    const all = await people(service(), 'strict')
    const callUuid = await occupy(all)
    all.callee.send('call.end', { call_uuid: callUuid })
    await all.third.next('call.ended')
    expect((await request(all.caller, 'call.invite', inviteOf(all.calleeId)))?.event).toBe('call.invited')
  })

  test('[INV5] busy is allowed by default: a callee in a call is rung', async () => {
    const all = await people(service(), 'shop')
    await occupy(all)
    const reply = await request(all.caller, 'call.invite', inviteOf(all.calleeId))
    expect(reply?.data).toMatchObject({ status: 'ringing', delivered: true })
    expect((await all.callee.next('call.ringing')).data.call_uuid).toBe(reply?.data.call_uuid)
  })
}

function registerSettings(service: () => Service): void {
  test('[INV2] callee_busy shows only where the product turns it on', async () => {
    for (const product of ['shop', 'open']) {
      const all = await people(service(), product)
      const free = await request(all.caller, 'call.invite', inviteOf(all.calleeId))
      all.caller.send('call.cancel', { call_uuid: free?.data.call_uuid })
      await occupy({ ...all })
      const occupied = await request(all.caller, 'call.invite', inviteOf(all.calleeId))
      expect([free?.data.callee_busy, occupied?.data.callee_busy]).toEqual(
        product === 'open' ? [false, true] : [undefined, undefined],
      )
    }
  })

  test("[RING1] [INV1] a product's own ring timeout, and ring_timeout_ms only shortens it", async () => {
    const all = await people(service(), 'strict')
    for (const [asked, gets] of [
      [undefined, 5_000],
      [20_000, 5_000],
      [4_000, 4_000],
    ] as const) {
      const reply = await request(all.caller, 'call.invite', inviteOf(all.calleeId, { ring_timeout_ms: asked }))
      expect(reply?.data.ring_timeout_ms).toBe(gets)
      all.caller.send('call.cancel', { call_uuid: reply?.data.call_uuid })
    }
  })

  test('[INV5] a setting that changes counts from the next invite on', async () => {
    const all = await people(service(), 'open')
    await occupy(all)
    const before = await request(all.caller, 'call.invite', inviteOf(all.calleeId))
    expect(before?.data).toMatchObject({ status: 'ringing', callee_busy: true })
    all.caller.send('call.cancel', { call_uuid: before?.data.call_uuid })
    await setProduct(service(), 'open', '--busy', 'reject')
    expect(await errorCode(all.caller, 'call.invite', inviteOf(all.calleeId))).toBe('CALLEE_BUSY')
    await setProduct(service(), 'open', '--busy', 'allow')
    expect((await request(all.caller, 'call.invite', inviteOf(all.calleeId)))?.event).toBe('call.invited')
  })
}
