import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { createECDH } from 'node:crypto'
import type { WakeDevice } from '@ringwire/protocol/webhook-events'
import type { Client } from '@ringwire/testkit/client'
import { invite, someone } from '@ringwire/testkit/flows'
import { until } from '@ringwire/testkit/patience'
import { openReceiver, type Received } from '@ringwire/testkit/receiver'
import type { Service } from '@ringwire/testkit/service'
import { type Browser, startWebPushServer, type WebPushServer } from '../../push/web-push-server.ts'
import { Networks } from '../../support/network.ts'
import { ask } from '../backend/calls.ts'
import { type Env, finish, type Start } from './composition.ts'

const ecdh = createECDH('prime256v1')
ecdh.generateKeys()

/** A push service of browsers, for services with the settings of `pushingTo`. */
export const startPushServer = () => startWebPushServer(ecdh.getPublicKey().toString('base64url'))

export const pushingTo = (push: WebPushServer): Env => ({
  RINGWIRE_VAPID_PRIVATE_KEY: Buffer.concat([Buffer.alloc(32), ecdh.getPrivateKey()])
    .subarray(-32)
    .toString('base64url'),
  RINGWIRE_VAPID_SUBJECT: 'mailto:calls@example.com',
  RINGWIRE_VAPID_URL: push.url,
  RINGWIRE_WEBHOOK_ALLOW: '127.0.0.1',
})

export const agentOn = (user_id: string, device_id = 'phone') => ({ user_id, role: 'agent', device_id })

/** Registers a device of an agent. */
export async function registerPhone(
  service: Service,
  push: WebPushServer,
  userId: string,
  device?: string,
): Promise<Browser> {
  const phone = push.subscribe()
  const response = await fetch(`${service.nextUrl()}/v1/call/device`, {
    method: 'PUT',
    headers: { Authorization: `Bearer ${await service.token(agentOn(userId, device))}` },
    body: JSON.stringify({ platform: 'webpush', subscription: phone.subscription }),
    keepalive: false,
  })
  expect(response.status).toBe(200)
  return phone
}

export const typesOf = ({ inbox }: Browser) => inbox.all.map(({ payload }) => payload.type)
const isCancelled = ({ payload }: { payload: { type: string } }) => payload.type === 'call.wake_cancelled'

async function timelineOf(service: Service, callUuid: string): Promise<readonly Entry[]> {
  const { body } = await ask(service, 'GET', `calls/${callUuid}/timeline`)
  return body.entries ?? []
}

/**
 * Waits until this number of sessions of a device left a ping without an answer for 2 s. On a busy machine the test itself does
 * so, and then a push is right.
 */
export async function hadUnsure(service: Service, callUuid: string, device: string, sessions = 1): Promise<void> {
  const isIt = ({ what, device_id }: Entry) => what === 'unsure' && device_id === device
  const has = async () => (await timelineOf(service, callUuid)).filter(isIt).length >= sessions
  // The timeline is written a second later.
  await until('the timeline says why it was woken', has, 10_000)
}

/** Devices that fall asleep while a call rings [PUSH2, PING1]. */
export function registerAsleep(name: string, start: Start): void {
  describe(`asleep, ${name}`, () => {
    let push: WebPushServer
    let service: Service
    const networks = new Networks()
    beforeAll(async () => {
      push = await startPushServer()
      service = await start({ ...pushingTo(push), RINGWIRE_PING_INTERVAL_MS: '1000' })
    })
    afterEach(() => networks.stop())
    afterAll(async () => {
      await finish(service)
      await push.stop()
    })

    const connectCaller = () => service.connect({ user_id: someone('caller'), role: 'customer' })
    const register = (userId: string, device?: string) => registerPhone(service, push, userId, device)

    /** A call that rings at a phone which has received it, and is registered. */
    async function ringing() {
      const calleeId = someone('callee')
      const phone = await register(calleeId)
      const { client: callee, link } = await networks.connect(service, agentOn(calleeId))
      const caller = await connectCaller()
      const callUuid = await invite(caller, calleeId)
      await callee.next('call.ringing')
      return { calleeId, phone, callee, link, caller, callUuid }
    }

    /** The ring is over, and every woken device has heard so: a wake that is still to come would have come. */
    async function cancelled(caller: Client, callUuid: string, woken: Browser): Promise<void> {
      caller.send('call.cancel', { call_uuid: callUuid })
      await woken.inbox.next(isCancelled)
    }

    for (const how of ['dies', 'closes', 'reloads for good'] as const) {
      test(`[PUSH2] a phone whose socket ${how} 0.3 s after call.ringing is woken, once`, async () => {
        const { phone, callee, caller, callUuid, calleeId } = await ringing()
        await Bun.sleep(300)
        await (how === 'dies' ? callee.die() : callee.close(how === 'closes' ? 1000 : 1001))
        expect((await phone.inbox.next()).payload).toMatchObject({ type: 'call.wake', call_uuid: callUuid })
        // It comes, is rung, and goes again: it was woken.
        const back = await service.connect(agentOn(calleeId))
        await back.next('call.ringing')
        await back.die()
        const other = await register(calleeId, 'tablet')
        const tablet = await service.connect(agentOn(calleeId, 'tablet'))
        await tablet.next('call.ringing')
        await tablet.die()
        await other.inbox.next()
        await cancelled(caller, callUuid, phone)
        expect(typesOf(phone)).toEqual(['call.wake', 'call.wake_cancelled'])
      })
    }

    test('[PUSH2] [PING1] a suspended phone is woken, the ring stays there, and the timeline says so', async () => {
      const calleeId = someone('callee')
      const phone = await register(calleeId)
      const { client: callee, link } = await networks.connect(service, agentOn(calleeId))
      // Its socket stays open, and nobody reads it.
      link.stall('client')
      const caller = await connectCaller()
      const callUuid = await invite(caller, calleeId)
      expect((await phone.inbox.next()).payload).toMatchObject({ type: 'call.wake', call_uuid: callUuid })
      link.flow('client')
      await callee.next('call.ringing')
      callee.send('call.accept', { call_uuid: callUuid })
      await caller.next('call.accepted')
      const whats = async () => (await timelineOf(service, callUuid)).map(({ what }) => what)
      // Each node writes down its own part, a second later.
      const parts = ['rung', 'unsure', 'push']
      await until('it is written down', async () => new Set(await whats()).isSupersetOf(new Set(parts)))
      const seen = (await whats()).filter((what) => parts.includes(what))
      expect(seen.slice(0, 3)).toEqual(parts)
      expect(typesOf(phone)).toEqual(['call.wake'])
    })

    test('[PING1] a phone that falls asleep later in the ring is woken by the next ping, and keeps the call', async () => {
      const { phone, callee, link, caller, callUuid } = await ringing()
      // It has acknowledged the ring: what it leaves without an answer is a keep-alive.
      await callee.settle()
      link.stall('client')
      await phone.inbox.next()
      link.flow('client')
      await callee.settle()
      expect(callee.events()).toEqual(['auth.ok', 'call.ringing'])
      callee.send('call.accept', { call_uuid: callUuid })
      await caller.next('call.accepted')
    })

    test('[PUSH2] of two tabs of a browser one answers pings: nobody is woken', async () => {
      const calleeId = someone('callee')
      const [browser, tablet] = [await register(calleeId), await register(calleeId, 'tablet')]
      const { link } = await networks.connect(service, agentOn(calleeId))
      await service.connect(agentOn(calleeId))
      const { link: other } = await networks.connect(service, agentOn(calleeId, 'tablet'))
      for (const each of [link, other]) each.stall('client')
      const caller = await connectCaller()
      const callUuid = await invite(caller, calleeId)
      await tablet.inbox.next()
      await cancelled(caller, callUuid, tablet)
      // The suspended tab is one.
      if (typesOf(browser).length > 0) await hadUnsure(service, callUuid, 'phone', 2)
    })

    test('[PUSH2] a page that is loaded again within a second is not woken', async () => {
      /** Answers how long the page was away, and what was pushed to it. */
      const reload = async () => {
        const { phone, callee, caller, callUuid, calleeId } = await ringing()
        const other = await register(calleeId, 'tablet')
        const tablet = await service.connect(agentOn(calleeId, 'tablet'))
        await tablet.next('call.ringing')
        const since = performance.now()
        await callee.close(1001)
        const back = await service.connect(agentOn(calleeId))
        const awayMs = performance.now() - since
        await back.next('call.ringing')
        await tablet.die()
        // Lost later, and looked for later.
        await other.inbox.next()
        await cancelled(caller, callUuid, other)
        const pushed = typesOf(phone)
        const isRight = pushed.length > 0 && (awayMs > 900 || (await isDone(hadUnsure(service, callUuid, 'phone'))))
        return { isLate: isRight, pushed }
      }
      let reloaded = await reload()
      // On a busy machine it takes longer, or a ping waits for its answer, and then a push is right.
      for (let tries = 1; reloaded.isLate && tries < 5; tries++) reloaded = await reload()
      if (!reloaded.isLate) expect(reloaded.pushed).toEqual([])
    })

    test('[PUSH2] who was woken hears that the ring is over, also where it is connected; who rejects does not', async () => {
      const calleeId = someone('callee')
      const [phone, tablet, desk] = [
        await register(calleeId),
        await register(calleeId, 'tablet'),
        await register(calleeId, 'desk'),
      ]
      const atDesk = await service.connect(agentOn(calleeId, 'desk'))
      const caller = await connectCaller()
      const callUuid = await invite(caller, calleeId)
      await Promise.all([phone.inbox.next(), tablet.inbox.next()])
      const clients = [await service.connect(agentOn(calleeId)), await service.connect(agentOn(calleeId, 'tablet'))]
      for (const client of [atDesk, ...clients]) await client.next('call.ringing')
      clients[0]!.send('call.reject', { call_uuid: callUuid })
      await tablet.inbox.next(isCancelled)
      expect([phone, tablet].map(typesOf)).toEqual([['call.wake'], ['call.wake', 'call.wake_cancelled']])
      if (typesOf(desk).length > 0) await hadUnsure(service, callUuid, 'desk')
    })

    test('[HOOK2] [PUSH2] call.wake comes again for those that fell asleep since, and for no other', async () => {
      const receiver = await openReceiver()
      const wakes = (call: string) => receiver.received.filter(({ data }) => data.call_uuid === call)

      /** Rings a phone that dies and a tab that dies after it. Undefined: the machine stood still, and they fell asleep otherwise. */
      async function wakesOfOne(calleeId: string) {
        await register(calleeId, 'asleep')
        const phone = await register(calleeId)
        const caller = await connectCaller()
        const callee = await service.connect(agentOn(calleeId))
        const unregistered = await service.connect(agentOn(calleeId, 'unregistered'))
        const callUuid = await invite(caller, calleeId)
        await until('it hears', () => wakes(callUuid).length > 0)
        await callee.die()
        await phone.inbox.next(({ payload }) => payload.call_uuid === callUuid)
        const hasMore = (count: number) => until('it hears again', () => wakes(callUuid).length > count, 10_000)
        if (!(await isDone(hasMore(1)))) return undefined
        await unregistered.die()
        if (!(await isDone(hasMore(2)))) return undefined
        const [first, second, third] = wakes(callUuid) as [Received, Received, Received]
        return devicesOf(second).some((device) => device.device_id !== 'phone') ? undefined : { first, second, third }
      }

      try {
        expect((await ask(service, 'POST', 'webhooks', { url: receiver.url, events: ['call.wake'] })).status).toBe(201)
        // Each node reads the endpoints every second, and clients connect to one after the other.
        for (const other of [await connectCaller(), await connectCaller()]) {
          await until('the endpoint is known', async () => {
            const call = await invite(other, someone('callee'), { context_id: crypto.randomUUID() })
            return isDone(until('it hears', () => wakes(call).length > 0, 1_500))
          })
        }
        let calleeId = ''
        let heard: Awaited<ReturnType<typeof wakesOfOne>>
        // A node that stood still for 3 s counts as gone, and its phones as asleep when the ring begins; a client that did
        // so for 2 s counts as asleep, too.
        for (let tries = 0; heard === undefined && tries < 4; tries++) {
          calleeId = someone('callee')
          heard = await wakesOfOne(calleeId)
        }
        if (heard === undefined) throw new Error('call.wake never came again')
        const { first, second, third } = heard
        expect(new Set([first, second, third].map(({ id }) => id)).size).toBe(3)
        expect(devicesOf(first)).toHaveLength(3)
        expect(second.data).toMatchObject({
          callee: { user_id: calleeId },
          ring_ticket: expect.any(String),
          expires_at: (first.data as unknown as Woken).expires_at,
          devices: [{ device_id: 'phone', platform: 'webpush', reached: false, pushed: true }],
        })
        expect(devicesOf(third)).toEqual([{ device_id: 'unregistered', platform: null, reached: false, pushed: false }])
      } finally {
        await receiver.close()
      }
    })
  })
}

const devicesOf = ({ data }: Received) => (data as unknown as Woken).devices

/** Whether it came in time. */
const isDone = (waiting: Promise<void>) =>
  waiting.then(
    () => true,
    () => false,
  )

interface Entry {
  readonly what: string
  readonly device_id?: string
}

interface Woken {
  readonly devices: readonly WakeDevice[]
  readonly expires_at: string
}
