/**
 * The call centre as its README says, in a real Chromium: the agent's page is closed, a customer calls, the browser is woken,
 * and both talk. What is not real here:
 * - Browsers of tests have no push service. `PushManager.subscribe` answers a subscription at a push service on this machine,
 *   which checks VAPID and decrypts; what it decrypted is handed to the service worker by CDP.
 * - Nobody can click a notification of a headless browser. The click is dispatched in the worker, and a worker may open a page
 *   after a click of a person alone: the test opens what the worker asked for.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createECDH } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createRingwire } from '@ringwire/server-sdk'
import { keepConnections, refused } from '@ringwire/testkit/pages-in-calls'
import { soon } from '@ringwire/testkit/patience'
import type { Browser, BrowserContext, Page, Worker } from 'playwright-core'
import {
  type Browser as Subscribed,
  startWebPushServer,
  type WebPushServer,
} from '../../packages/server/test/push/web-push-server.ts'
import { launchThrottlingBrowser } from '../../scripts/browser.mjs'
import { type Example, startExample } from './support/example.ts'
import { pushTo } from './support/pushes.ts'

const key = { keyId: 'callcenter', secret: 'a-secret-that-only-tests-know-0123456789' }
const ecdh = createECDH('prime256v1')
ecdh.generateKeys()
const publicKey = ecdh.getPublicKey('base64url')
const privateKey = Buffer.concat([Buffer.alloc(32), ecdh.getPrivateKey()])
  .subarray(-32)
  .toString('base64url')

let push: WebPushServer
let application: Example
let browser: Browser
let agents: Awaited<ReturnType<typeof openAgents>>
let customer: Page
let ringwire: ReturnType<typeof createRingwire>

beforeAll(async () => {
  push = await startWebPushServer(publicKey)
  application = await startExample('callcenter', {
    ...{
      RINGWIRE_KEY_ID: key.keyId,
      RINGWIRE_KEY_SECRET: key.secret,
      RINGWIRE_PORT: '0',
      RINGWIRE_RING_TIMEOUT_MS: '20000',
    },
    ...{ RINGWIRE_VAPID_PUBLIC_KEY: publicKey, RINGWIRE_VAPID_PRIVATE_KEY: privateKey, RINGWIRE_VAPID_URL: push.url },
  })
  // The browser with tabs, that shows notifications itself: those of a desktop need one.
  browser = await launchThrottlingBrowser('--disable-features=WebRtcHideLocalIpsWithMdns,SystemNotifications')
  agents = await openAgents()
  const context = await browser.newContext()
  customer = await openPage(context)
  await customer.click('#ann')
  await customer.waitForSelector('[data-state=online]')
  const { serviceUrl } = await (await fetch(`${application.url}/api/start`)).json()
  ringwire = createRingwire({ url: serviceUrl, ...key })
}, 400_000)

afterAll(async () => {
  await browser?.close()
  await application?.stop()
  await push?.stop()
})

async function openPage(context: BrowserContext, path = '/'): Promise<Page> {
  const page = await context.newPage()
  page.setDefaultTimeout(soon(30_000))
  await page.addInitScript(keepConnections)
  await page.goto(application.url + path)
  return page
}

/** Ben's browser: he has signed in, wants to be woken, and has closed the page. */
async function openAgents() {
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
  const page = await openPage(context)
  await page.click('#ben')
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

/** Sound arrives, and is no silence: more of it than there was a moment ago. */
async function hears(page: Page): Promise<void> {
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

/** What the worker shows, once that is as expected. */
async function shown(
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
const click = (worker: Worker, tag: string, action: string) =>
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
function written(callUuid: string): { status: string; version: number; end_reason: string | null }[] {
  const lines = readFileSync(join(application.data, 'calls.jsonl'), 'utf8').trim().split('\n')
  return lines.map((line) => JSON.parse(line)).filter(({ call_uuid }) => call_uuid === callUuid)
}

/** Ann calls Ben, whose page is closed, and his browser is woken. Answers the uuid of the call. */
async function callBen(): Promise<string> {
  const closed = customer.locator('[data-testid=dismiss]')
  if (await closed.isVisible()) await closed.click()
  await customer.waitForSelector('[data-agent=ben][data-state=asleep]')
  await customer.click('[aria-label="Call Ben"]')
  const { payload } = await agents.subscribed.inbox.next(({ payload }) => payload.type === 'call.wake')
  await agents.wake(payload)
  return payload.call_uuid
}

/** `ringwire call trace` says these of a call, in this order. Some are written a moment after they happened. */
async function traces(callUuid: string, said: readonly RegExp[]): Promise<void> {
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
    if (found.length === said.length) return
    if (performance.now() > end) throw new Error(`the trace is\n${text}`)
  }
}

const over = (page: Page, text: string) => page.waitForSelector(`[data-testid=ended]:has-text("${text}")`)
const inHistory = (page: Page, callUuid: string, text: string) =>
  page.waitForSelector(`[data-tone][data-call="${callUuid}"]:has-text("${text}")`)

test('[PUSH2] [HOOK3] [TRACE1] an agent whose page is closed is woken, answers, and both hear each other', async () => {
  const callUuid = await callBen()
  const notification = await shown(agents.worker, 'Ann is calling')
  expect(notification).toMatchObject({ tag: callUuid, actions: ['Answer', 'Decline'] })
  await customer.waitForSelector('[data-testid=call-state]:has-text("Ringing")')

  const path = await click(agents.worker, callUuid, 'answer')
  expect(path).toBe(`/?answer=${callUuid}`)
  const agent = await openPage(agents.context, path)
  await Promise.all([hears(agent), hears(customer)])
  // Others see that he talks, and to whom.
  await agent.waitForSelector(`li[data-call="${callUuid}"]:has-text("With you · order 1042")`)
  await customer.waitForSelector('[data-agent=ben][data-state=busy]')
  await agent.click('[data-testid=hangup]')
  await over(customer, 'has ended')

  await Promise.all([agent, customer].map((page) => inHistory(page, callUuid, 'Talked for')))
  const steps = written(callUuid)
  expect(steps.map(({ status }) => status)).toEqual(['ringing', 'accepted', 'connected', 'ended'])
  expect(steps.map(({ version }) => version)).toEqual(steps.map(({ version }) => version).sort((a, b) => a - b))
  for (const page of [agent, customer]) expect(await refused(page)).toEqual([])
  await traces(callUuid, [
    /invited +customer\/ann/,
    /push +agent\/ben .*type=call.wake platform=webpush result=accepted reason=201/,
    /alerting +agent\/ben/,
    /socket_found +agent\/ben/,
    /accepted +agent\/ben/,
    /connected/,
    /ended +agent\/ben .*end_reason=hangup/,
    /^Ben hung up after [\d.]+ s\.$/,
  ])
  // What it was told is what Ringwire says; how the media was may be reported a moment after the end.
  const { quality: _, ...said } = { quality: null, ...(await ringwire.calls.get(callUuid)) }
  const { quality: __, ...told } = { quality: null, ...steps.at(-1) }
  expect(said).toEqual(told as never)
  await agent.close()
}, 240_000)

test('[TICK1] Decline rejects the call, and no page is opened', async () => {
  const callUuid = await callBen()
  await shown(agents.worker, 'Ann is calling')
  const pages = agents.context.pages().length
  expect(await click(agents.worker, callUuid, 'decline')).toBeUndefined()
  await over(customer, 'declined')
  await shown(agents.worker, undefined)
  expect(agents.context.pages().length).toBe(pages)
  await inHistory(customer, callUuid, 'Declined')
  expect(written(callUuid).map(({ status }) => status)).toEqual(['ringing', 'rejected'])
}, 240_000)

test('[PUSH2] [TRACE1] a call that nobody answers: shown as missed in the browser that was woken, and in the book', async () => {
  const callUuid = await callBen()
  await shown(agents.worker, 'Ann is calling')
  await over(customer, 'did not answer')
  const { payload } = await agents.subscribed.inbox.next(({ payload }) => payload.type === 'call.wake_cancelled')
  await agents.wake(payload)
  await shown(agents.worker, 'You missed a call of Ann')
  await inHistory(customer, callUuid, 'Nobody answered')
  expect(written(callUuid).map(({ status }) => status)).toEqual(['ringing', 'missed'])
  await traces(callUuid, [
    /invited +customer\/ann/,
    /push +agent\/ben .*type=call.wake platform=webpush result=accepted reason=201/,
    /alerting +agent\/ben/,
    /missed .*end_reason=no_answer/,
    /^Agent ben's phone .* rang; nobody answered within 20 s\.$/,
  ])
  // Who comes too late is told so.
  const agent = await openPage(agents.context, `/?answer=${callUuid}`)
  await agent.waitForSelector('text=was over before you could answer')
  await agent.close()
}, 240_000)

test('[HOOK2] what Ringwire has not signed is not written into the book', async () => {
  const data = { call_uuid: 'forged', version: 1, status: 'ended', started_at: '', caller: {}, callee: {} }
  const headers = {
    'webhook-id': 'msg_1',
    'webhook-timestamp': String(Math.floor(Date.now() / 1000)),
    'webhook-signature': 'v1,AAAA',
  }
  const body = JSON.stringify({ type: 'call.ended', timestamp: new Date().toISOString(), data })
  for (const sent of [headers, {}]) {
    const response = await fetch(`${application.url}/webhooks`, { method: 'POST', headers: sent as HeadersInit, body })
    expect(response.status).toBe(401)
  }
  expect(written('forged')).toEqual([])
})

test('every answer says what the page may load and connect to, and that its type is no guess', async () => {
  for (const path of ['/', '/main.js', '/service-worker.js', '/api/start', '/webhooks', '/nothing']) {
    const { headers } = await fetch(`${application.url}${path}`)
    expect([path, headers.get('x-content-type-options')]).toEqual([path, 'nosniff'])
    const policy = /^default-src 'self'; connect-src 'self' http:\/\/[\d.:]+ ws:\/\/[\d.:]+; base-uri/
    expect(headers.get('content-security-policy')).toMatch(policy)
  }
})

test('nobody sees a desk or gets a token without having signed in', async () => {
  const ask = async (method: string, path: string, cookie = '') =>
    (await fetch(application.url + path, { method, headers: { cookie } })).status
  expect(await ask('POST', '/api/call-token')).toBe(401)
  expect(await ask('POST', '/api/call-token', 'session=guessed')).toBe(401)
  expect(await ask('GET', '/api/desk')).toBe(401)
  expect(await ask('POST', '/api/sign-in?name=mallory')).toBe(403)
})
