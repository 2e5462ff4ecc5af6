/**
 * The call centre as its README says, in a real Chromium: the agent's page is closed, a customer calls, the browser is woken,
 * and both talk. What is not real here:
 * - Browsers of tests have no push service. `PushManager.subscribe` answers a subscription at a push service on this machine,
 *   which checks VAPID and decrypts; what it decrypted is handed to the service worker by CDP.
 * - Nobody can click a notification of a headless browser. The click is dispatched in the worker, and a worker may open a page
 *   after a click of a person: the test opens the page that the worker asked for.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { refused } from '@ringwire/testkit/pages-in-calls'
import type { Page } from 'playwright-core'
import {
  type CallCentre,
  click,
  enter,
  fallAsleep,
  hears,
  openPage,
  shown,
  startCallCentre,
  traces,
  written,
} from './support/callcenter.ts'

let centre: CallCentre
let agents: Awaited<ReturnType<typeof fallAsleep>>
let customer: Page

beforeAll(async () => {
  centre = await startCallCentre()
  agents = await fallAsleep(centre, 'ben')
  customer = await enter(centre, 'ann')
}, 400_000)

afterAll(() => centre?.stop())

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
  const agent = await openPage(centre, agents.context, path)
  await Promise.all([hears(agent), hears(customer)])
  // Others see that he talks, and to whom.
  await agent.waitForSelector(`li[data-call="${callUuid}"]:has-text("With you · order 1042")`)
  await customer.waitForSelector('[data-agent=ben][data-state=busy]')
  await agent.click('[data-testid=hangup]')
  await over(customer, 'has ended')

  await Promise.all([agent, customer].map((page) => inHistory(page, callUuid, 'Talked for')))
  const steps = written(centre, callUuid)
  expect(steps.map(({ status }) => status)).toEqual(['ringing', 'accepted', 'connected', 'ended'])
  expect(steps.map(({ version }) => version)).toEqual(steps.map(({ version }) => version).sort((a, b) => a - b))
  for (const page of [agent, customer]) expect(await refused(page)).toEqual([])
  await traces(centre, callUuid, [
    /invited +customer\/ann/,
    /push +agent\/ben .*type=call.wake platform=webpush result=accepted reason=201/,
    /alerting +agent\/ben/,
    /socket_found +agent\/ben/,
    /accepted +agent\/ben/,
    /connected/,
    /ended +agent\/ben .*end_reason=hangup/,
    /^Ben hung up after [\d.]+ s\.$/,
  ])
  // The backend got what Ringwire says; the media report may come a moment after the end.
  const { quality: _, ...said } = { quality: null, ...(await centre.ringwire.calls.get(callUuid)) }
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
  expect(written(centre, callUuid).map(({ status }) => status)).toEqual(['ringing', 'rejected'])
}, 240_000)

test('[PUSH2] [TRACE1] a call that nobody answers: shown as missed in the browser that was woken, and in the book', async () => {
  const callUuid = await callBen()
  await shown(agents.worker, 'Ann is calling')
  await over(customer, 'did not answer')
  const { payload } = await agents.subscribed.inbox.next(({ payload }) => payload.type === 'call.wake_cancelled')
  await agents.wake(payload)
  await shown(agents.worker, 'You missed a call of Ann')
  await inHistory(customer, callUuid, 'Nobody answered')
  expect(written(centre, callUuid).map(({ status }) => status)).toEqual(['ringing', 'missed'])
  await traces(centre, callUuid, [
    /invited +customer\/ann/,
    /push +agent\/ben .*type=call.wake platform=webpush result=accepted reason=201/,
    /alerting +agent\/ben/,
    /missed .*end_reason=no_answer/,
    /^Agent ben's phone .* rang; nobody answered within 20 s\.$/,
  ])
  // An agent who comes too late reads so.
  const agent = await openPage(centre, agents.context, `/?answer=${callUuid}`)
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
    const response = await fetch(`${centre.application.url}/webhooks`, {
      method: 'POST',
      headers: sent as HeadersInit,
      body,
    })
    expect(response.status).toBe(401)
  }
  expect(written(centre, 'forged')).toEqual([])
})

test('every answer says what the page may load and connect to, and that its type is no guess', async () => {
  for (const path of ['/', '/main.js', '/service-worker.js', '/api/start', '/webhooks', '/nothing']) {
    const { headers } = await fetch(`${centre.application.url}${path}`)
    expect([path, headers.get('x-content-type-options')]).toEqual([path, 'nosniff'])
    const policy = /^default-src 'self'; connect-src 'self' http:\/\/[\d.:]+ ws:\/\/[\d.:]+; base-uri/
    expect(headers.get('content-security-policy')).toMatch(policy)
  }
})

test('nobody sees a desk or gets a token without having signed in', async () => {
  const ask = async (method: string, path: string, cookie = '') =>
    (await fetch(centre.application.url + path, { method, headers: { cookie } })).status
  expect(await ask('POST', '/api/call-token')).toBe(401)
  expect(await ask('POST', '/api/call-token', 'session=guessed')).toBe(401)
  expect(await ask('GET', '/api/desk')).toBe(401)
  expect(await ask('POST', '/api/sign-in?name=mallory')).toBe(403)
})
