import { describe, expect, test } from 'bun:test'
import { acceptedCall, connectPair, someone } from '@ringwire/testkit/flows'
import { soon, until } from '@ringwire/testkit/patience'
import type { Service } from '@ringwire/testkit/service'
import { connectExtended } from '../../support/extended-flows.ts'
import { finish, type Start, serviceFor } from '../calls/composition.ts'
import { ask } from './calls.ts'

/** A token says in which second it was issued: one of the next second is younger than whatever was taken back. */
async function nextSecond(): Promise<void> {
  const begun = Math.floor(Date.now() / 1000)
  await until('the next second has begun', () => Math.floor(Date.now() / 1000) > begun)
}

/** The code with which the service closes a socket that a token opens. */
async function refusal(service: Service, token: string): Promise<number> {
  const socket = new WebSocket(`${service.nextUrl().replace('http', 'ws')}/v1/ws`, ['jwt', token])
  return new Promise((resolve) => {
    socket.onclose = ({ code }) => resolve(code)
  })
}
const historyStatus = async (service: Service, token: string) =>
  (await fetch(`${service.url}/v1/calls/history`, { headers: { Authorization: `Bearer ${token}` } })).status

async function putDevice(service: Service, token: string): Promise<number> {
  const headers = { Authorization: `Bearer ${token}` }
  const body = JSON.stringify({ platform: 'fcm', token: 'a-secret-address' })
  return (await fetch(`${service.url}/v1/call/device`, { method: 'PUT', headers, body })).status
}

/** Both nodes of a pair have heard that a token was taken back; the test's time is the patience. */
async function refusedEverywhere(service: Service, token: string): Promise<void> {
  for (let inRow = 0; inRow < 2; ) inRow = (await historyStatus(service, token)) === 401 ? inRow + 1 : 0
}

/** A backend looks at a participant, and sends it away [SRV2]. */
export function registerBackendParticipants(name: string, start: Start): void {
  describe(`backends and participants, ${name}`, () => {
    const service = serviceFor(start)

    test('[SRV2] who is there, with its sessions on every node and its live calls', async () => {
      const pair = await connectPair(service())
      const path = `participants/customer/${pair.callerId}`
      const session = { extended: false, device_id: null, app_version: null, connected_at: expect.stringMatching(/Z$/) }
      const shown = await ask(service(), 'GET', path)
      expect(shown.body).toMatchObject({
        success: true,
        online: true,
        sessions: [session],
        devices: [],
        live_calls: [],
      })
      await connectExtended(service(), {
        user_id: pair.callerId,
        role: 'customer',
        device_id: 'phone',
        app_version: '7.1',
      })
      const callUuid = await acceptedCall(pair)
      for (const _ of [1, 2]) {
        const { body } = await ask(service(), 'GET', path)
        expect(body.sessions).toMatchObject([session, { extended: true, device_id: 'phone', app_version: '7.1' }])
        expect(body.live_calls).toMatchObject([{ call_uuid: callUuid, status: 'accepted' }])
      }
      const { token } = await service().issue({ user_id: pair.callerId, role: 'customer', device_id: 'phone' })
      await putDevice(service(), token)
      const { devices } = (await ask(service(), 'GET', path)).body
      expect(devices).toEqual([{ device_id: 'phone', platform: 'fcm', registered_at: session.connected_at }])
      const nobody = await ask(service(), 'GET', `participants/customer/${encodeURIComponent("x' OR 1=1--/ä")}`)
      expect(nobody.body).toEqual({ success: true, online: false, sessions: [], devices: [], live_calls: [] })
      expect((await ask(service(), 'GET', `participants/customer/${'x'.repeat(256)}`)).status).toBe(404)
      expect((await ask(service(), 'GET', 'participants/customer/a%00b')).status).toBe(404)
    })

    test('[SRV2] who is sent away is closed with 4403 on every node within a second, and no call ends by it', async () => {
      const pair = await connectPair(service())
      const who = { user_id: pair.callerId, role: 'customer' }
      const tab = await service().connect(who)
      const phone = await connectExtended(service(), { ...who, device_id: 'phone' })
      const callUuid = await acceptedCall(pair)
      const begin = performance.now()
      const { body } = await ask(service(), 'POST', `participants/customer/${pair.callerId}/disconnect`)
      const closed = await Promise.all([pair.caller, tab, phone].map((client) => client.closed))
      expect(performance.now() - begin).toBeLessThan(soon(1_000))
      expect(closed.map(({ code }) => code)).toEqual([4403, 4403, 4403])
      expect(Date.parse(body.tokens_from)).toBeGreaterThan(Date.now() - 60_000)
      expect((await ask(service(), 'GET', `participants/customer/${pair.callerId}`)).body.online).toBe(false)
      expect((await ask(service(), 'GET', `calls/${callUuid}`)).body.call.status).toBe('accepted')
      // A later token finds the place that was lost.
      await nextSecond()
      const again = await service().connect(who)
      again.send('call.end', { call_uuid: callUuid })
      expect((await pair.callee.next('call.ended')).data.reason).toBe('hangup')
    })

    test('[SRV2] tokens of before are refused everywhere, also of `until`, and nobody else’s', async () => {
      const userId = someone('ann')
      const [before, other] = await Promise.all([
        service().token({ user_id: userId, role: 'customer' }),
        service().token({ user_id: userId, role: 'agent' }),
      ])
      await nextSecond()
      await ask(service(), 'POST', `participants/customer/${userId}/disconnect`, {})
      const after = await service().token({ user_id: userId, role: 'customer' })
      const until = new Date(Date.now() + 60_000).toISOString()
      await refusedEverywhere(service(), before)
      for (const _ of [1, 2]) {
        expect([await refusal(service(), before), await historyStatus(service(), before)]).toEqual([4401, 401])
        expect(await historyStatus(service(), other)).toBe(200)
      }
      const body = (await ask(service(), 'POST', `participants/customer/${userId}/disconnect`, { until })).body
      expect(body.tokens_from).toBe(until)
      await refusedEverywhere(service(), after)
      const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString()
      for (const wrong of ['tomorrow', inDays(3_654), '9999-12-31T23:59:59Z']) {
        const bad = await ask(service(), 'POST', `participants/customer/${userId}/disconnect`, { until: wrong })
        expect([bad.status, bad.body.error.code]).toEqual([400, 'INVALID_REQUEST_BODY'])
      }
      const long = await ask(service(), 'POST', `participants/agent/${userId}/disconnect`, { until: inDays(3_652) })
      expect(long.status).toBe(200)
    })

    test('[SRV2] [PUSH1] no device is left of who is sent away, also where its token registers one until it is refused', async () => {
      for (const userId of Array.from({ length: 3 }, () => someone('ann'))) {
        const token = await service().token({ user_id: userId, role: 'customer', device_id: 'phone' })
        const register = () => putDevice(service(), token)
        expect(await register()).toBe(200)
        await nextSecond()
        let refusals = 0
        const thief = (async () => {
          // Each node in turn: both have heard of it then.
          while (refusals < 2) refusals = (await register()) === 401 ? refusals + 1 : 0
        })()
        await ask(service(), 'POST', `participants/customer/${userId}/disconnect`)
        await thief
        expect((await ask(service(), 'GET', `participants/customer/${userId}`)).body.devices).toEqual([])
      }
    })

    test('[SRV2] they stay refused after a restart', async () => {
      const own = await start()
      try {
        const [away, stays] = [
          await own.token({ user_id: 'ann', role: 'customer' }),
          await own.token({ user_id: 'ben', role: 'agent' }),
        ]
        await nextSecond()
        await ask(own, 'POST', 'participants/customer/ann/disconnect')
        await own.terminate()
        await own.start()
        for (const _ of [1, 2]) {
          expect([await refusal(own, away), await historyStatus(own, away)]).toEqual([4401, 401])
          expect(await historyStatus(own, stays)).toBe(200)
        }
      } finally {
        await finish(own)
      }
    })
  })
}
