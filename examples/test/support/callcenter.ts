/** The call centre, started as its README says, with browsers of its people. */
import { expect } from 'bun:test'
import { createECDH } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createRingwire } from '@ringwire/server-sdk'
import { keepConnections } from '@ringwire/testkit/pages-in-calls'
import { soon } from '@ringwire/testkit/patience'
import type { Browser, BrowserContext, Page, Worker } from 'playwright-core'
import {
  type Browser as Subscribed,
  startWebPushServer,
  type WebPushServer,
} from '../../../packages/server/test/push/web-push-server.ts'
import { launchThrottlingBrowser } from '../../../scripts/browser.mjs'
import { type Example, startExample } from './example.ts'
import { pushTo } from './pushes.ts'

const key = { keyId: 'callcenter', secret: 'a-secret-that-only-tests-know-0123456789' }
const ecdh = createECDH('prime256v1')
ecdh.generateKeys()
const publicKey = ecdh.getPublicKey('base64url')
const privateKey = Buffer.concat([Buffer.alloc(32), ecdh.getPrivateKey()])
  .subarray(-32)
  .toString('base64url')

export interface CallCentre {
  readonly application: Example
  readonly push: WebPushServer
  readonly browser: Browser
  readonly ringwire: ReturnType<typeof createRingwire>
  stop(): Promise<void>
}

export async function startCallCentre(): Promise<CallCentre> {
  const push = await startWebPushServer(publicKey)
  const application = await startExample('callcenter', {
    ...{
      RINGWIRE_KEY_ID: key.keyId,
      RINGWIRE_KEY_SECRET: key.secret,
      RINGWIRE_PORT: '0',
      RINGWIRE_RING_TIMEOUT_MS: '20000',
    },
    ...{ RINGWIRE_VAPID_PUBLIC_KEY: publicKey, RINGWIRE_VAPID_PRIVATE_KEY: privateKey, RINGWIRE_VAPID_URL: push.url },
  })
  // The browser with tabs, that shows notifications itself: those of a desktop need one.
  const browser = await launchThrottlingBrowser('--disable-features=WebRtcHideLocalIpsWithMdns,SystemNotifications')
  const { serviceUrl } = await (await fetch(`${application.url}/api/start`)).json()
  return {
    ...{ application, push, browser },
    ringwire: createRingwire({ url: serviceUrl, ...key }),
    async stop() {
      await browser.close()
      await application.stop()
      await push.stop()
    },
  }
}

export async function openPage({ application }: CallCentre, context: BrowserContext, path = '/'): Promise<Page> {
  const page = await context.newPage()
  page.setDefaultTimeout(soon(30_000))
  await page.addInitScript(keepConnections)
  await page.goto(application.url + path)
  return page
}

/** Somebody in a browser of their own, signed in and connected. */
export async function enter(centre: CallCentre, name: string): Promise<Page> {
  const context = await centre.browser.newContext({ permissions: ['microphone'] })
  const page = await openPage(centre, context)
  await page.click(`#${name}`)
  await page.waitForSelector('[data-state=online]')
  return page
}

/** The browser of an agent who has signed in, wants to be woken, and has closed the page. */
export async function fallAsleep(centre: CallCentre, name: string) {
  const { application, browser, push } = centre
  const context = await browser.newContext()
  await context.grantPermissions(['notifications', 'microphone'], { origin: application.url })
  const subscribed = push.subscribe()
  await context.addInitScript(subscribeThere, subscribed.subscription)
  // CDP hands pushes over by way of a page, of whatever site.
  const cdp = await context.newCDPSession(await context.newPage())
  const registered = Promise.withResolvers<string>()
  cdp.on('ServiceWorker.workerRegistrationUpdated', ({ registrations }) => {
    const found = registrations.find(({ scopeURL }) => scopeURL === `${application.url}/`)
    if (found !== undefined) registered.resolve(found.registrationId)
  })
  await cdp.send('ServiceWorker.enable')
  const running = context.waitForEvent('serviceworker')
  const page = await openPage(centre, context)
  await page.click(`#${name}`)
  await page.click('#wake-me')
  await page.waitForSelector('text=calls wake this browser')
  await page.close()
  const [registrationId, worker] = [await registered.promise, await running]
  return {
    context,
    subscribed,
    worker,
    wake: await pushTo(worker, cdp, { origin: application.url, registrationId }),
  }
}

/** In a page: what it subscribes to is a push service of the test. */
function subscribeThere(subscription: Subscribed['subscription']): void {
  Object.assign(PushManager.prototype, {
    getSubscription: async () => null,
    subscribe: async () => ({ toJSON: () => subscription }),
  })
}

/** Sound arrives, and is not silence: more of it than there was a moment ago. */
export async function hears(page: Page): Promise<void> {
  await page.evaluate(async () => {
    const { kept } = window as unknown as { kept: RTCPeerConnection[] }
    const heard = async () => {
      const sum = { packets: 0, energy: 0 }
      for (const connection of kept) {
        for (const report of (await connection.getStats()).values()) {
          if (report.type !== 'inbound-rtp' || report.kind !== 'audio') continue
          sum.packets += report.packetsReceived
          sum.energy += report.totalAudioEnergy ?? 0
        }
      }
      return sum
    }
    const first = await heard()
    for (;;) {
      await new Promise((resolve) => setTimeout(resolve, 100))
      const now = await heard()
      if (now.packets > first.packets + 10 && now.energy > first.energy) return
    }
  })
}

/** No sound arrives for a while. */
export async function hearsNothing(page: Page): Promise<void> {
  await page.evaluate(async () => {
    const { kept } = window as unknown as { kept: RTCPeerConnection[] }
    const packets = async () => {
      let sum = 0
      for (const connection of kept) {
        for (const report of (await connection.getStats()).values()) {
          if (report.type === 'inbound-rtp') sum += report.packetsReceived
        }
      }
      return sum
    }
    // Packets that were on their way may still come.
    for (let before = await packets(), silent = 0; silent < 10; ) {
      await new Promise((resolve) => setTimeout(resolve, 200))
      const now = await packets()
      silent = now === before ? silent + 1 : 0
      before = now
    }
  })
}

/** What the worker shows, once that is as expected. */
export async function shown(
  worker: Worker,
  title: string | undefined,
): Promise<{ tag: string; actions: string[] } | undefined> {
  const end = performance.now() + soon(20_000)
  for (;;) {
    const [first] = await worker.evaluate(async () => {
      const { registration } = globalThis as unknown as { registration: ServiceWorkerRegistration }
      // biome-ignore lint/suspicious/noExplicitAny: `actions` is not among the types of pages.
      const all = (await registration.getNotifications()) as any[]
      return all.map(({ title, tag, actions }) => ({
        title,
        tag,
        actions: actions.map((it: { title: string }) => it.title),
      }))
    })
    if (first?.title === title) return first
    if (performance.now() > end) throw new Error(`this is shown: ${JSON.stringify(first)}`)
    await Bun.sleep(50)
  }
}

/** Clicks; answers which page the worker wants to open, if one. */
export const click = (worker: Worker, tag: string, action: string) =>
  worker.evaluate(
    async ({ tag, action }) => {
      const scope = globalThis as unknown as {
        registration: ServiceWorkerRegistration
        clients: { openWindow(url: string): Promise<unknown> }
        // biome-ignore lint/suspicious/noExplicitAny: the types of workers are not among ours.
        NotificationEvent: any
      } & EventTarget
      let opened: string | undefined
      scope.clients.openWindow = async (url) => {
        opened = url
      }
      const [notification] = await scope.registration.getNotifications({ tag })
      const event = new scope.NotificationEvent('notificationclick', { notification, action })
      let work: Promise<unknown> | undefined
      event.waitUntil = (promise: Promise<unknown>) => {
        work = promise
      }
      scope.dispatchEvent(event)
      await work
      return opened
    },
    { tag, action },
  )

/** What the backend's book has of a call, in the order in which it was written. */
export function written(
  { application }: CallCentre,
  callUuid: string,
): { status: string; version: number; end_reason: string | null }[] {
  const lines = readFileSync(join(application.data, 'calls.jsonl'), 'utf8').trim().split('\n')
  return lines.map((line) => JSON.parse(line)).filter(({ call_uuid }) => call_uuid === callUuid)
}

/** `ringwire call trace` says these of a call, in this order. Some are written a moment after they happened. Answers the trace. */
export async function traces({ application }: CallCentre, callUuid: string, said: readonly RegExp[]): Promise<string> {
  const end = performance.now() + soon(20_000)
  const program = join(application.path, 'node_modules', '.bin', 'ringwire')
  for (;;) {
    const child = Bun.spawn([program, 'call', 'trace', callUuid, '--product', 'callcenter'], {
      env: { PATH: process.env.PATH ?? '', RINGWIRE_DATA_DIR: application.data },
      stdout: 'pipe',
    })
    const text = await new Response(child.stdout).text()
    expect(await child.exited).toBe(0)
    const lines = text.trim().split('\n')
    let from = 0
    const found = said.filter((each) => {
      const at = lines.findIndex((line, n) => n >= from && each.test(line))
      if (at >= 0) from = at + 1
      return at >= 0
    })
    if (found.length === said.length) return text
    if (performance.now() > end) throw new Error(`the trace is\n${text}`)
  }
}
