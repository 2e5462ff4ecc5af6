/** The call centre in real Chromium: its queue, its opening hours, a second call, and hold. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { refused } from '@ringwire/testkit/pages-in-calls'
import type { Page } from 'playwright-core'
import { type CallCentre, enter, hears, startCallCentre, written } from './support/callcenter.ts'
import { picture } from './support/pictures.ts'

let centre: CallCentre
let ann: Page
let dan: Page
let ben: Page
let cora: Page

beforeAll(async () => {
  centre = await startCallCentre()
  ;[ann, dan, ben, cora] = (await Promise.all(['ann', 'dan', 'ben', 'cora'].map((name) => enter(centre, name)))) as [
    Page,
    Page,
    Page,
    Page,
  ]
}, 400_000)

afterAll(() => centre?.stop())

const at = (testId: string) => `[data-testid=${testId}]`
const place = (page: Page, number: number) => page.waitForSelector(`${at('queued')}:has-text("number ${number} in")`)
const gone = (page: Page, selector: string) => page.waitForSelector(selector, { state: 'hidden' })
const offered = (page: Page, name: string) =>
  page.waitForSelector(`${at('next-caller')} button:text-is("Call ${name}")`)
const over = (page: Page, text: string) => page.waitForSelector(`${at('ended')}:has-text("${text}")`)

/** The call rings at the agent, who does not want it. */
async function declined(customer: Page, agent: Page, name: string): Promise<void> {
  await customer.click(`[aria-label="Call ${name}"]`)
  await agent.click(at('reject'))
  await over(customer, 'declined')
}

/** The uuid of the call on the stage. */
const callOf = async (page: Page) => (await page.getAttribute(`${at('stage')}[data-call]`, 'data-call')) ?? ''

test('callers who reach nobody wait in their order, and each is offered to one agent who is free', async () => {
  await declined(ann, ben, 'Ben')
  await place(ann, 1)
  await declined(dan, cora, 'Cora')
  await place(dan, 2)
  for (const agent of [ben, cora]) {
    await agent.waitForSelector('li:has-text("Order 1042")[data-waiting=ann] + li[data-waiting=dan]')
    await offered(agent, 'Ann')
  }
  await picture(cora, 'queue-agent')
  await picture(ann, 'queue-customer')

  await ben.click(`${at('next-caller')} button`)
  await ann.click(at('accept'))
  await Promise.all([hears(ann), hears(ben)])
  await gone(ann, at('queued'))
  // It is her order that they talk about, and Ben is offered nobody meanwhile.
  await cora.waitForSelector('li:has-text("With Ben · order 1042")')
  await Promise.all([place(dan, 1), offered(cora, 'Dan'), gone(ben, at('next-caller'))])

  await cora.click(`${at('next-caller')} button`)
  await dan.waitForSelector(at('incoming'))
  await cora.click(at('hangup'))
  // She gave up: he still waits, and another agent is offered him.
  await gone(dan, at('incoming'))
  await place(dan, 1)
  await dan.click('#leave-queue')
  await Promise.all([gone(dan, at('queued')), cora.waitForSelector('text=Nobody waits')])
  await ben.click(at('hangup'))
  await over(ann, 'has ended')
}, 240_000)

test('[WAIT1] [HOLD1] an agent puts a call on hold for a second one, and swaps them', async () => {
  await ann.click('[aria-label="Call Ben"]')
  await ben.click(at('accept'))
  await Promise.all([hears(ann), hears(ben)])
  await ben.click(at('hold'))
  await ann.waitForSelector(at('held-by-peer'))
  await ben.click(at('hold'))
  await gone(ann, at('held-by-peer'))

  await dan.click('[aria-label="Call Ben"]')
  await ben.click(at('hold-and-answer'))
  await Promise.all([hears(dan), ann.waitForSelector(at('held-by-peer'))])
  await picture(ben, 'second-call')
  await ben.click(at('swap'))
  await Promise.all([dan.waitForSelector(at('held-by-peer')), gone(ann, at('held-by-peer'))])
  await hears(ann)
  await ben.click(at('hangup'))
  await over(ann, 'has ended')
  // Dan is not on hold any more.
  await gone(dan, at('held-by-peer'))
  await hears(dan)
  await dan.click(at('hangup'))
  for (const page of [ann, dan, ben, cora]) expect(await refused(page)).toEqual([])
}, 240_000)

test('[GROUP1] [HOOK5] where nobody of the group is free, a customer waits without a ring', async () => {
  await cora.close()
  await ann.click('#call-support')
  await ben.click(at('accept'))
  await Promise.all([hears(ann), hears(ben), dan.waitForSelector('[data-agent=cora][data-state=away]')])
  await dan.waitForSelector('text=Nobody is free now')
  await dan.click('#call-support')
  await over(dan, 'Nobody is free.')
  await place(dan, 1)
  await dan.waitForSelector('[data-tone=bad]:has-text("Nobody was free · order 2077")')
  expect(await ben.isVisible(at('second-call'))).toBe(false)
  await ben.click(at('hangup'))
  await offered(ben, 'Dan')
  await ben.click(`${at('next-caller')} button`)
  await dan.click(at('accept'))
  await hears(dan)
  await dan.click(at('hangup'))
  cora = await enter(centre, 'cora')
}, 240_000)

test('[HOOK5] outside of opening hours nothing rings and nobody waits, until the hours change', async () => {
  const hours = join(centre.application.data, 'hours.json')
  writeFileSync(hours, JSON.stringify({ days: [], from: '08:00', to: '18:00' }))
  await ann.click('[aria-label="Call Ben"]')
  await over(ann, 'We are closed now')
  const row = await ann.waitForSelector('[data-tone=bad]:has-text("We were closed · order 1042")')
  const refusal = written(centre, (await row.getAttribute('data-call')) ?? '')
  expect(refusal).toMatchObject([{ status: 'rejected', end_reason: 'closed', version: 1 }])
  await ann.click(at('dismiss'))
  await ann.waitForSelector('text=You reach us')
  await picture(ann, 'closed')
  expect(await ann.isVisible(at('queued'))).toBe(false)

  writeFileSync(hours, '{}')
  await ann.click('[aria-label="Call Ben"]')
  await ben.waitForSelector(at('incoming'))
  const call = await callOf(ann)
  await ann.click(at('hangup'))
  await gone(ben, at('incoming'))
  // A caller who gave up does not wait.
  await ann.waitForSelector(`[data-call="${call}"]:has-text("Given up")`)
  expect(await ann.isVisible(at('queued'))).toBe(false)
  expect(written(centre, call).map(({ status }) => status)).toEqual(['ringing', 'cancelled'])
}, 240_000)

test('[HOOK5] [HOOK2] what Ringwire has not signed is not decided on', async () => {
  const forged = { 'webhook-id': 'inv_1', 'webhook-timestamp': String(Math.floor(Date.now() / 1000)) }
  const headers: Record<string, string>[] = [{}, { ...forged, 'webhook-signature': 'v1,AAAA' }]
  for (const each of headers) {
    const response = await fetch(`${centre.application.url}/invites`, { method: 'POST', headers: each, body: '{}' })
    expect([response.status, await response.text()]).toEqual([401, ''])
  }
  const next = await fetch(`${centre.application.url}/api/queue/next`, { method: 'POST' })
  expect(next.status).toBe(403)
})
