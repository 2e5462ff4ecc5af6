import { describe, expect, test } from 'bun:test'
import { acceptedCall, connectPair, invite } from '@ringwire/testkit/flows'
import { productKey, type Service } from '@ringwire/testkit/service'
import { connectExtendedPair, ringingCall } from '../../support/extended-flows.ts'
import { type Start, serviceFor } from '../calls/composition.ts'

const headers = { 'X-SVC-Product-Key-ID': productKey.id, 'X-SVC-Product-Secret': productKey.secret }

/** What the application's backend asks. On a pair, each request comes to either node. */
export async function ask(service: Service, method: string, path: string, body?: object) {
  const response = await fetch(`${service.url}/v1/server/${path}`, {
    method,
    headers,
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  return { status: response.status, body: text === '' ? undefined : JSON.parse(text) }
}

/** An erasure that takes long gets 503 and goes on: who asks again waits for the same one [SRV2]. */
export async function erase(service: Service, role: string, userId: string) {
  for (;;) {
    const answer = await ask(service, 'DELETE', `participants/${role}/${userId}`)
    if (answer.status !== 503) return answer
  }
}

/** A backend reads calls, and ends them [SRV2]. */
export function registerBackendCalls(name: string, start: Start): void {
  describe(`backends and calls, ${name}`, () => {
    const service = serviceFor(start)

    test('[SRV2] a backend ends an answered call: both hear call.ended, and it stays ended', async () => {
      const pair = await connectPair(service())
      const callUuid = await acceptedCall(pair)
      const live = await ask(service(), 'GET', `calls/${callUuid}`)
      expect(live.body.call).toMatchObject({ status: 'accepted', by: { user_id: pair.calleeId, role: 'agent' } })
      const ended = await ask(service(), 'POST', `calls/${callUuid}/end`, { reason: 'the order was cancelled' })
      expect(ended.body.call).toMatchObject({ status: 'ended', end_reason: 'ended_by_server', by: null })
      const data = { call_uuid: callUuid, status: 'ended', reason: 'ended_by_server', by: null }
      for (const client of [pair.caller, pair.callee]) {
        expect((await client.next('call.ended')).data).toEqual({ ...data, ended_at: ended.body.call.ended_at })
      }
      const again = await ask(service(), 'POST', `calls/${callUuid.toUpperCase()}/end`)
      expect(again).toEqual(ended)
      const { quality: _quality, held: _held, ...listed } = ended.body.call
      const query = `calls?user_id=${pair.callerId}&role=customer`
      expect((await ask(service(), 'GET', query)).body.data).toEqual([listed])
      expect((await ask(service(), 'GET', `${query}&status=live`)).body).toMatchObject({ data: [], next_cursor: null })
    })

    test('[SRV2] a call that rings is cancelled, at both sides, for base and extended clients', async () => {
      const pair = await connectPair(service())
      const callUuid = await invite(pair.caller, pair.calleeId)
      await pair.callee.next('call.ringing')
      const ended = await ask(service(), 'POST', `calls/${callUuid}/end`)
      expect(ended.body.call).toMatchObject({ status: 'cancelled', end_reason: 'ended_by_server', accepted_at: null })
      for (const client of [pair.caller, pair.callee]) {
        expect((await client.next('call.cancelled')).data).toMatchObject({
          call_uuid: callUuid,
          reason: 'ended_by_server',
        })
      }
      const extended = await connectExtendedPair(service())
      const other = await ringingCall(extended)
      await ask(service(), 'POST', `calls/${other}/end`, {})
      for (const client of [extended.caller, extended.callee])
        expect((await client.next('call.cancelled')).data.reason).toBe('ended_by_server')
    })

    test('[SRV2] what is no call of the product cannot be ended, and a bad body ends nothing', async () => {
      const pair = await connectPair(service())
      const callUuid = await acceptedCall(pair)
      expect((await ask(service(), 'POST', `calls/${crypto.randomUUID()}/end`)).status).toBe(404)
      const bad = await ask(service(), 'POST', `calls/${callUuid}/end`, { reason: 5 })
      expect([bad.status, bad.body.error.code]).toEqual([400, 'INVALID_REQUEST_BODY'])
      expect((await ask(service(), 'GET', `calls/${callUuid}`)).body.call.status).toBe('accepted')
    })
  })
}
