import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createECDH } from 'node:crypto'
import { CallWake, CallWakeCancelled } from '@ringwire/protocol/push'
import { createValidator } from '@ringwire/protocol/validate'
import type { Client } from '@ringwire/testkit/client'
import { invite, someone } from '@ringwire/testkit/flows'
import { soon, until } from '@ringwire/testkit/patience'
import { openReceiver, type Receiver } from '@ringwire/testkit/receiver'
import { productKey, type Service } from '@ringwire/testkit/service'
import { type Browser, startWebPushServer, status, type WebPushServer } from '../../push/web-push-server.ts'
import { clockMs } from '../../support/clocks.ts'
import { ask } from '../backend/calls.ts'
import { hadUnsure } from './asleep.ts'
import { finish, type Start } from './composition.ts'

const ecdh = createECDH('prime256v1')
ecdh.generateKeys()
const privateKey = Buffer.concat([Buffer.alloc(32), ecdh.getPrivateKey()])
  .subarray(-32)
  .toString('base64url')

/** A push wakes a participant who is not connected, and another one says that it is over [PUSH2]. */
export function registerWaking(name: string, start: Start): void {
  describe(`waking, ${name}`, () => {
    let push: WebPushServer
    let service: Service
    beforeAll(async () => {
      push = await startWebPushServer(ecdh.getPublicKey().toString('base64url'))
      service = await start({
        RINGWIRE_VAPID_PRIVATE_KEY: privateKey,
        RINGWIRE_VAPID_SUBJECT: 'mailto:calls@example.com',
        RINGWIRE_VAPID_URL: push.url,
        RINGWIRE_WEBHOOK_ALLOW: '127.0.0.1',
      })
    })
    afterAll(async () => {
      await finish(service)
      await push.stop()
    })

    const wishOf = (user_id: string, device_id = 'browser') => ({ user_id, role: 'agent', device_id })

    async function register(calleeId: string, device = 'browser'): Promise<Browser> {
      const browser = push.subscribe()
      const response = await put(service, await service.token(wishOf(calleeId, device)), {
        platform: 'webpush',
        subscription: browser.subscription,
      })
      expect([response.status, await response.json()]).toEqual([
        200,
        { device_id: device, platform: 'webpush', pushes: true },
      ])
      return browser
    }
    const connectCaller = () => service.connect({ user_id: someone('caller'), role: 'customer' })

    /** How long after its invite a call wakes a device of somebody new, in ms. */
    async function wakesAfter(): Promise<number> {
      const calleeId = someone('callee')
      const [browser, caller] = [await register(calleeId), await connectCaller()]
      await invite(caller, calleeId)
      const since = performance.now()
      await browser.inbox.next()
      return performance.now() - since
    }
    const withTicket = (path: string, ticket: string, method = 'POST') =>
      fetch(`${service.url}/v1/call/ring${path}`, { method, headers: { Authorization: `Bearer ${ticket}` } })

    test('[PUSH2] [TICK1] somebody who is not there is woken, looks at the call, and rejects it', async () => {
      const calleeId = someone('callee')
      const browser = await register(calleeId)
      const caller = await connectCaller()
      const callUuid = await invite(caller, calleeId, { call_type: 'video' })
      const committedAt = performance.now()
      const { payload, headers } = await browser.inbox.next()
      let tookMs = performance.now() - committedAt
      // One that waited for a core says nothing of the service: of several the quickest counts.
      for (let tries = 1; tookMs >= soon(200) && tries < 5; tries++) tookMs = await wakesAfter()
      expect(tookMs).toBeLessThan(soon(200))
      expect(createValidator(CallWake)(payload).ok).toBe(true)
      const callerId = caller.all[0]?.data.user_id
      expect(payload).toEqual({
        type: 'call.wake',
        call_uuid: callUuid,
        call_type: 'video',
        caller: { user_id: callerId, role: 'customer', display_name: callerId },
        expires_at: expect.stringMatching(/Z$/),
        ring_ticket: expect.any(String),
      })
      expect(Number(headers.ttl)).toBeLessThanOrEqual(45)
      const looked = await withTicket('', payload.ring_ticket, 'GET')
      expect(await looked.json()).toMatchObject({ call_uuid: callUuid, status: 'ringing', call_type: 'video' })
      expect((await withTicket('/reject', payload.ring_ticket)).status).toBe(200)
      expect((await caller.next('call.rejected')).data).toMatchObject({ call_uuid: callUuid, reason: 'declined' })
      // It knows: nobody else gets a push. What would have been is there before the next call is.
      await invite(caller, calleeId)
      expect((await browser.inbox.next()).payload.type).toBe('call.wake')
    })

    test('[PUSH2] somebody who is woken connects, is rung, and accepts; the other devices hear that it is over', async () => {
      const calleeId = someone('callee')
      const [browser, tablet] = [await register(calleeId), await register(calleeId, 'tablet')]
      const caller = await connectCaller()
      const callUuid = await invite(caller, calleeId)
      await Promise.all([browser.inbox.next(), tablet.inbox.next()])
      const callee = await service.connect(wishOf(calleeId))
      expect((await callee.next('call.ringing')).data.call_uuid).toBe(callUuid)
      callee.send('call.accept', { call_uuid: callUuid })
      await caller.next('call.accepted')
      const { payload } = await tablet.inbox.next()
      expect(createValidator(CallWakeCancelled)(payload).ok).toBe(true)
      expect(payload).toMatchObject({
        type: 'call.wake_cancelled',
        call_uuid: callUuid,
        status: 'accepted',
        end_reason: null,
      })
      expect(browser.inbox.all.map((pushed) => pushed.payload.type)).toEqual(['call.wake'])
    })

    test('[PUSH2] [TICK1] a push that is to be made again is not, once the call was answered, on whichever node', async () => {
      const isCancelled = ({ payload }: { payload: { type: string } }) => payload.type === 'call.wake_cancelled'
      const isRefused = ({ status }: { status: number | undefined }) => status === 503
      const [caller, calleeId] = [await connectCaller(), someone('callee')]
      const browser = await register(calleeId)
      const token = await service.token(wishOf(calleeId, 'desk'))
      // On both nodes of a pair: one of them is not the caller's.
      const desks = [service.open(token), service.open(token)]
      await Promise.all(desks.map((desk) => desk.next('auth.ok')))
      push.requests.skip()
      for (const desk of desks) {
        push.answers(status(503))
        const callUuid = await invite(caller, calleeId)
        await push.requests.next(isRefused)
        desk.send('call.accept', { call_uuid: callUuid })
        await browser.inbox.next(isCancelled)
        desk.send('call.end', { call_uuid: callUuid })
        await caller.next('call.ended', ({ data }) => data.call_uuid === callUuid)
        // What the same node was refused later is made again later.
        const otherId = someone('other')
        const other = await register(otherId)
        push.answers(status(503))
        const next = await invite(caller, otherId)
        expect((await other.inbox.next()).payload).toMatchObject({ type: 'call.wake', call_uuid: next })
        await settle(caller, next, other)
        await push.requests.next(isRefused)
        expect(browser.inbox.all.filter((pushed) => !isCancelled(pushed))).toEqual([])
      }
    })

    test('[PUSH2] the caller gives up: who was woken hears it', async () => {
      const calleeId = someone('callee')
      const browser = await register(calleeId)
      const caller = await connectCaller()
      const callUuid = await invite(caller, calleeId)
      const { payload } = await browser.inbox.next()
      caller.send('call.cancel', { call_uuid: callUuid })
      expect((await browser.inbox.next()).payload).toMatchObject({
        type: 'call.wake_cancelled',
        call_uuid: callUuid,
        status: 'cancelled',
        end_reason: 'caller_cancelled',
      })
      const late = await withTicket('', payload.ring_ticket, 'GET')
      expect([late.status, (await late.json()).error]).toMatchObject([
        410,
        { code: 'CALL_NOT_RINGING', status: 'cancelled', end_reason: 'caller_cancelled' },
      ])
    })

    test('[PUSH2] a device that is connected is not woken; the others of the same person are', async () => {
      const calleeId = someone('callee')
      const [browser, phone] = [await register(calleeId), await register(calleeId, 'phone')]
      const callee = await service.connect(wishOf(calleeId))
      const caller = await connectCaller()
      const callUuid = await invite(caller, calleeId)
      await callee.next('call.ringing')
      expect((await phone.inbox.next()).payload.type).toBe('call.wake')
      await settle(caller, callUuid, phone)
      if (browser.inbox.all.length > 0) await hadUnsure(service, callUuid, 'browser')
    })

    test('[PUSH2] a call is not held up by a push service that is silent', async () => {
      const calleeId = someone('callee')
      const browser = await register(calleeId)
      const caller = await connectCaller()
      push.answers(null)
      const began = performance.now()
      const callUuid = await invite(caller, calleeId)
      expect(performance.now() - began).toBeLessThan(soon(1_000))
      const asked = await push.requests.next(({ status }) => status === undefined)
      expect(asked.status).toBeUndefined()
      // It is not tried again in another test, nor is anything else sent there.
      await settle(caller, callUuid, browser)
    })

    test('[PUSH2] a push that is accepted and never answered holds up no other device, nor what is told next', async () => {
      const calleeId = someone('callee')
      const [browser, tablet] = [await register(calleeId), await register(calleeId, 'tablet')]
      const caller = await connectCaller()
      push.answers(null)
      const callUuid = await invite(caller, calleeId)
      const isWake = ({ payload }: { payload: { type: string } }) => payload.type === 'call.wake'
      await Promise.race([browser.inbox.next(isWake), tablet.inbox.next(isWake)])
      caller.send('call.cancel', { call_uuid: callUuid })
      const isCancelled = ({ payload }: { payload: { type: string } }) => payload.type === 'call.wake_cancelled'
      await Promise.all([browser, tablet].map(({ inbox }) => inbox.next(isCancelled)))
      const types = [...browser.inbox.all, ...tablet.inbox.all].map(({ payload }) => payload.type)
      expect(types.filter((type) => type === 'call.wake')).toHaveLength(1)
    })

    test('[PUSH1] a person with 1,000 devices: the twenty that registered last are woken', async () => {
      const calleeId = someone('callee')
      const early: Browser[] = []
      for (let batch = 0; batch < 49; batch++) {
        const names = Array.from({ length: 20 }, (_, i) => `early-${batch}-${i}`)
        early.push(...(await Promise.all(names.map((name) => register(calleeId, name)))))
      }
      // Each node stamps by its own clock: who registers later has to be later by both.
      await Bun.sleep(clockMs)
      const last = await Promise.all(Array.from({ length: 20 }, (_, i) => register(calleeId, `last-${i}`)))
      const caller = await connectCaller()
      const callUuid = await invite(caller, calleeId)
      await Promise.all(last.map(({ inbox }) => inbox.next()))
      await Promise.all(last.map((device, i) => (i === 0 ? settle(caller, callUuid, device) : undefined)))
      expect(early.filter(({ inbox }) => inbox.all.length > 0)).toEqual([])
    })

    test('[PUSH2] 429 with Retry-After is honoured within the ring; a dead subscription is forgotten', async () => {
      const calleeId = someone('callee')
      const browser = await register(calleeId)
      const caller = await connectCaller()
      push.requests.skip()
      push.answers(status(429, { 'Retry-After': '1' }))
      const began = performance.now()
      await invite(caller, calleeId)
      await push.requests.next((it) => it.status === 429)
      await browser.inbox.next()
      expect(performance.now() - began).toBeGreaterThanOrEqual(990)

      const dead = someone('dead')
      const gone = await register(dead)
      push.answers(status(410))
      await invite(caller, dead)
      await push.requests.next((it) => it.status === 410)
      const devices = async () => (await ask(service, 'GET', `participants/agent/${dead}`)).body.devices
      await until('it is forgotten', async () => (await devices()).length === 0)
      const other = await register(dead, 'other')
      const another = await connectCaller()
      const callUuid = await invite(another, dead)
      await other.inbox.next()
      await settle(another, callUuid, other)
      expect(gone.inbox.all).toEqual([])
    })

    test('[HOOK2] [TICK1] a backend that pushes by itself hears whom, with a ticket, and when it is over', async () => {
      const receiver = await openReceiver()
      const headers = { 'X-SVC-Product-Key-ID': productKey.id, 'X-SVC-Product-Secret': productKey.secret }
      const events = ['call.wake', 'call.wake_cancelled']
      const made = await fetch(`${service.url}/v1/server/webhooks`, {
        method: 'POST',
        headers,
        body: JSON.stringify({ url: receiver.url, events }),
      })
      expect(made.status).toBe(201)
      try {
        const calleeId = someone('callee')
        const [asleep, awake] = [await register(calleeId, 'asleep'), await register(calleeId, 'awake')]
        const callee = await service.connect(wishOf(calleeId, 'awake'))
        await service.connect(wishOf(calleeId, 'unregistered'))
        const caller = await connectCaller()
        // Each node reads the endpoints every second.
        const callUuid = await ringUntil(receiver, calleeId)
        const of = (type: string) =>
          receiver.received.filter((one) => one.type === type && one.data.call_uuid === callUuid)
        const woken = of('call.wake')[0]?.data as unknown as WokenCall
        const { ring_ticket: ticket, expires_at: expiresAt, devices, ...call } = woken
        const device = (device_id: string, platform: string | null, reached: boolean) => ({
          device_id,
          platform,
          reached,
          pushed: !reached,
        })
        expect(devices.toSorted((a, b) => (a.device_id < b.device_id ? -1 : 1))).toEqual([
          device('asleep', 'webpush', false),
          device('awake', 'webpush', true),
          device('unregistered', null, true),
        ])
        expect(call).toMatchObject({
          call_uuid: callUuid,
          version: 1,
          status: 'ringing',
          callee: { user_id: calleeId },
        })
        expect(Math.abs(Date.parse(expiresAt) - Date.parse(String(call.started_at)) - 45_000)).toBeLessThan(1_000)
        const looked = await withTicket('', ticket, 'GET')
        expect(await looked.json()).toMatchObject({ call_uuid: callUuid, status: 'ringing' })
        await until('it is pushed, too', () => asleep.inbox.all.length > 0)
        const isOfIt = ({ payload }: { payload: { call_uuid: string } }) => payload.call_uuid === callUuid
        if (awake.inbox.all.some(isOfIt)) await hadUnsure(service, callUuid, 'awake')
        callee.send('call.accept', { call_uuid: callUuid })
        await until('it is over there', () => of('call.wake_cancelled').length > 0)
        expect(of('call.wake_cancelled')[0]?.data).toMatchObject({
          version: 2,
          status: 'accepted',
          by: { user_id: calleeId },
        })
        expect(`${service.log}`).not.toContain(ticket.split('.')[2] ?? '')

        async function ringUntil(hears: Receiver, to: string): Promise<string> {
          for (;;) {
            const next = hears.received.length + 1
            const uuid = await invite(caller, to)
            await Promise.race([hears.until(next), Bun.sleep(1_000)]).catch(() => {})
            if (hears.received.some(({ data }) => data.call_uuid === uuid)) return uuid
            caller.send('call.cancel', { call_uuid: uuid })
            await callee.next('call.cancelled')
          }
        }
      } finally {
        const { id } = await made.json()
        await fetch(`${service.url}/v1/server/webhooks/${id}`, { method: 'DELETE', headers })
        await receiver.close()
      }
    })

    test('[PUSH1] a device that is forgotten is not woken', async () => {
      const calleeId = someone('callee')
      const browser = await register(calleeId)
      const phone = await register(calleeId, 'phone')
      const token = await service.token(wishOf(calleeId))
      for (let n = 0; n < 2; n++) {
        const response = await fetch(`${service.url}/v1/call/device`, {
          method: 'DELETE',
          headers: { Authorization: `Bearer ${token}` },
        })
        expect(response.status).toBe(204)
      }
      const caller = await connectCaller()
      const callUuid = await invite(caller, calleeId)
      await phone.inbox.next()
      await settle(caller, callUuid, phone)
      expect(browser.inbox.all).toEqual([])
    })

    test('[PUSH1] [SRV2] who is sent away by the backend is not woken any more', async () => {
      const calleeId = someone('callee')
      await register(calleeId)
      const path = `${service.url}/v1/server/participants/agent/${calleeId}`
      const headers = { 'X-SVC-Product-Key-ID': productKey.id, 'X-SVC-Product-Secret': productKey.secret }
      const devices = async () => (await (await fetch(path, { headers })).json()).devices
      expect(await devices()).toMatchObject([{ device_id: 'browser', platform: 'webpush' }])
      expect((await fetch(`${path}/disconnect`, { method: 'POST', headers })).status).toBe(200)
      expect(await devices()).toEqual([])
    })
  })
}

interface WokenCall extends Record<string, unknown> {
  readonly ring_ticket: string
  readonly expires_at: string
  readonly devices: readonly { device_id: string; platform: string | null; reached: boolean; pushed: boolean }[]
}

/** All wakes of a call are through when one device hears that it was cancelled. */
async function settle(caller: Client, callUuid: string, { inbox }: Browser): Promise<void> {
  caller.send('call.cancel', { call_uuid: callUuid })
  await inbox.next(({ payload }) => payload.type === 'call.wake_cancelled' && payload.call_uuid === callUuid)
}

function put(service: Service, token: string, body: object): Promise<Response> {
  return fetch(`${service.url}/v1/call/device`, {
    method: 'PUT',
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  })
}
