import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createHmac } from 'node:crypto'
import { invite, someone } from '@ringwire/testkit/flows'
import { soon } from '@ringwire/testkit/patience'
import { Service } from '@ringwire/testkit/service'
import type { Browser, BrowserContext, Worker } from 'playwright-core'
import { launchThrottlingBrowser } from '../../scripts/browser.mjs'
import { pushTo } from './support/pushes.ts'

/** The service worker of examples/push in a real Chromium. What a push service would hand over, the test hands over. */
let service: Service
let browser: Browser
let context: BrowserContext
let server: ReturnType<typeof Bun.serve>
let worker: Worker
let pushed: (payload: object) => Promise<void>

const key = Buffer.alloc(32, 7)
beforeAll(async () => {
  service = await new Service({ RINGWIRE_JWT_SECRETS: `k:${key.toString('base64url')}` }).start()
  server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch({ url }) {
      if (new URL(url).pathname !== '/service-worker.js') {
        return new Response('<!doctype html><title>page</title>', { headers: { 'content-type': 'text/html' } })
      }
      return new Response(Bun.file(new URL('../push/service-worker.js', import.meta.url)), {
        headers: { 'content-type': 'text/javascript' },
      })
    },
  })
  // The browser with tabs: the other one has no notifications. It shows its own: those of a desktop need one, and a
  // browser that cannot reach it takes notifications for closed.
  browser = await launchThrottlingBrowser('--disable-features=WebRtcHideLocalIpsWithMdns,SystemNotifications')
  const origin = `http://127.0.0.1:${server.port}`
  context = await browser.newContext()
  await context.grantPermissions(['notifications'], { origin })
  const page = await context.newPage()
  const cdp = await context.newCDPSession(page)
  const registered = Promise.withResolvers<string>()
  cdp.on('ServiceWorker.workerRegistrationUpdated', ({ registrations }) => {
    const [registration] = registrations
    if (registration !== undefined) registered.resolve(registration.registrationId)
  })
  await cdp.send('ServiceWorker.enable')
  await page.goto(origin)
  const running = context.waitForEvent('serviceworker')
  await page.evaluate(async (url) => {
    await navigator.serviceWorker.register(`/service-worker.js?service=${url}`)
    const { active } = await navigator.serviceWorker.ready
    // It is there before it is activated, and a push goes to one that is.
    while (active?.state !== 'activated') {
      await new Promise((resolve) => active?.addEventListener('statechange', resolve, { once: true }))
    }
  }, service.url)
  worker = await running
  const registrationId = await registered.promise
  pushed = await pushTo(worker, cdp, { origin, registrationId })
})
afterAll(async () => {
  await browser.close()
  await server.stop(true)
  await service.dispose()
})

interface Shown {
  title: string
  tag: string
}

/** The notifications that the worker shows; waits until they are as many. */
async function shown(titles: (all: readonly string[]) => boolean): Promise<Shown[]> {
  const end = performance.now() + soon(15_000)
  for (;;) {
    const all = await worker.evaluate(async () => {
      const { registration } = globalThis as unknown as { registration: ServiceWorkerRegistration }
      return (await registration.getNotifications()).map(({ title, tag }) => ({ title, tag }))
    })
    if (titles(all.map(({ title }) => title))) return all
    if (performance.now() > end) throw new Error(`these are shown: ${JSON.stringify(all)}`)
    await Bun.sleep(50)
  }
}

/** As the browser does when somebody clicks. */
const click = (callUuid: string, action: string) =>
  worker.evaluate(
    async ({ tag, action }) => {
      const scope = globalThis as unknown as { registration: ServiceWorkerRegistration } & EventTarget
      const [notification] = await scope.registration.getNotifications({ tag })
      // biome-ignore lint/suspicious/noExplicitAny: the types of workers are not among ours.
      const { NotificationEvent } = globalThis as any
      scope.dispatchEvent(new NotificationEvent('notificationclick', { notification, action }))
    },
    { tag: callUuid, action },
  )

const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')

async function ringing() {
  const calleeId = someone('callee')
  const caller = await service.connect({ user_id: someone('caller'), role: 'customer', display_name: 'Ann' }, extended)
  const callUuid = await invite(caller, calleeId)
  const seconds = Math.floor(Date.now() / 1000)
  const claims = { iss: 'ringwire', aud: 'ringwire-ring', purpose: 'ring', iat: seconds, exp: seconds + 45 }
  const who = { sub: calleeId, product: 'shop', role: 'agent', call_uuid: callUuid }
  const text = `${encode({ alg: 'HS256', typ: 'JWT', kid: 'k' })}.${encode({ ...claims, ...who })}`
  const ring_ticket = `${text}.${createHmac('sha256', key).update(text).digest('base64url')}`
  const heading = {
    call_uuid: callUuid,
    call_type: 'audio',
    caller: { user_id: 'ann', role: 'customer', display_name: 'Ann' },
  }
  return { caller, callUuid, heading, wake: { type: 'call.wake', ...heading, ring_ticket } }
}
const extended = { path: '/v1/ws?ext=1' }
const calling = 'Ann is calling'
const missed = 'You missed a call of Ann'

test('[PUSH2] [TICK1] a push shows the call, the caller hears so, and Decline rejects without a page', async () => {
  const { caller, callUuid, wake } = await ringing()
  await pushed(wake)
  const [notification] = await shown((all) => all.includes(calling))
  expect(notification?.tag).toBe(callUuid)
  await caller.next('call.alerting')
  const pages = context.pages().length
  await click(callUuid, 'decline')
  expect((await caller.next('call.rejected')).data).toMatchObject({ call_uuid: callUuid, reason: 'declined' })
  await shown((all) => all.length === 0)
  expect(context.pages().length).toBe(pages)
})

test('[PUSH2] the caller gives up: the call is shown as missed, and one that was answered elsewhere is gone', async () => {
  const { caller, callUuid, wake, heading } = await ringing()
  await pushed(wake)
  await shown((all) => all.includes(calling))
  caller.send('call.cancel', { call_uuid: callUuid })
  await caller.settle()
  const cancelled = { type: 'call.wake_cancelled', ...heading }
  await pushed({ ...cancelled, status: 'cancelled', end_reason: 'caller_cancelled' })
  await shown((all) => all.length === 1 && all.includes(missed))
  await pushed({ ...cancelled, status: 'accepted', end_reason: null })
  await shown((all) => all.length === 0)
})

test('[PUSH2] [TICK1] a push that comes late: the ticket says that the call rings no more, and it is shown as missed', async () => {
  const { caller, callUuid, wake } = await ringing()
  caller.send('call.cancel', { call_uuid: callUuid })
  await caller.settle()
  await pushed(wake)
  expect(await shown((all) => all.includes(missed))).toEqual([{ title: missed, tag: callUuid }])
})
