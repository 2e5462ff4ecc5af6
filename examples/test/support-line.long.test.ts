/**
 * A support line in real Chromium, from the call of a customer to the trace: a group rings, an agent who sleeps is woken, the one
 * who answers holds the call, asks a colleague and hands it over, and she goes on at another device. callcenter.long.test.ts says what is not real.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { becomes } from '@ringwire/testkit/becomes'
import { refused } from '@ringwire/testkit/pages-in-calls'
import type { Page } from 'playwright-core'
import {
  type CallCentre,
  enter,
  fallAsleep,
  hears,
  hearsNothing,
  shown,
  startCallCentre,
  traces,
  written,
} from './support/callcenter.ts'
import { picture } from './support/pictures.ts'

let centre: CallCentre
let ann: Page
let ben: Page
let cora: Page
let eve: Awaited<ReturnType<typeof fallAsleep>>

beforeAll(async () => {
  centre = await startCallCentre()
  eve = await fallAsleep(centre, 'eve')
  ann = await enter(centre, 'ann')
  ben = await enter(centre, 'ben')
  cora = await enter(centre, 'cora')
}, 400_000)

afterAll(() => centre?.stop())

const at = (testId: string) => `[data-testid=${testId}]`
const gone = (page: Page, selector: string) => page.waitForSelector(selector, { state: 'hidden' })
const over = (page: Page, text: string) => page.waitForSelector(`${at('ended')}:has-text("${text}")`)
/** The uuid of the call on the stage. */
const callOf = async (page: Page) => (await page.getAttribute(`${at('stage')}[data-call]`, 'data-call')) ?? ''

/** What the page shows to compare. */
async function codeOf(page: Page): Promise<string> {
  await page.click(at('show-code'))
  const code = (await page.textContent(at('security-code'))) ?? ''
  await page.click(at('show-code'))
  return code
}

async function expectSameCode(one: Page, other: Page): Promise<string> {
  const code = await codeOf(one)
  expect(code).toMatch(/^(\d{5} ){11}\d{5}$/)
  expect(await codeOf(other)).toBe(code)
  return code
}

const talksTo = (page: Page, name: string) => page.waitForSelector(`${at('call-name')}:text-is("${name}")`)

/** Webhooks tell of these steps, in their order. */
async function expectTold(callUuid: string, ...steps: string[]): Promise<void> {
  await becomes(async () => written(centre, callUuid).map(({ status }) => status), steps)
  const told = written(centre, callUuid)
  expect(told.map(({ version }) => version)).toEqual(told.map(({ version }) => version).sort((a, b) => a - b))
}

const wakes = () => eve.subscribed.inbox.next(({ payload }) => payload.type === 'call.wake')
const wakesNoMore = () => eve.subscribed.inbox.next(({ payload }) => payload.type === 'call.wake_cancelled')

test('[GROUP1] [HOLD1] [XFER1] [TAKE1] [SAS1] a customer reaches one agent, then another, who goes on elsewhere', async () => {
  await ann.click('#call-support')
  await Promise.all([ben, cora].map((page) => page.waitForSelector(`${at('incoming')}:has-text("for support")`)))
  await ann.waitForSelector(`${at('call-state')}:has-text("Ringing")`)
  await picture(cora, 'group-rings')
  const { payload } = await wakes()
  await eve.wake(payload)
  await shown(eve.worker, 'Ann is calling')

  await ben.click(at('accept'))
  const call = await callOf(ben)
  await Promise.all([hears(ann), hears(ben), gone(cora, at('incoming'))])
  await eve.wake((await wakesNoMore()).payload)
  await shown(eve.worker, undefined)
  await talksTo(ann, 'Ben')
  const code = await expectSameCode(ann, ben)
  await picture(ann, 'group-answered')

  await ben.click(at('hold'))
  await ann.waitForSelector(at('held-by-peer'))
  await hearsNothing(ann)
  await picture(ann, 'held')
  await ben.click(at('hold'))
  await Promise.all([hears(ann), hears(ben)])

  // With Ann on hold he asks Cora, and connects the two.
  await ben.click(at('transfer'))
  await picture(ben, 'colleagues')
  await ben.click(`${at('ask-first')}[aria-label="Ask first: Cora"]`)
  await ann.waitForSelector(at('held-by-peer'))
  await cora.click(at('accept'))
  await Promise.all([hears(ben), hears(cora)])
  const asked = await callOf(ben)
  await expectSameCode(ben, cora)
  await picture(ben, 'asks')
  await ben.click(at('connect-both'))
  await over(ben, 'transferred')
  await Promise.all([talksTo(ann, 'Cora'), talksTo(cora, 'Ann')])
  await Promise.all([hears(ann), hears(cora)])
  const next = await callOf(ann)
  const second = await expectSameCode(ann, cora)
  expect(second).not.toBe(code)
  await picture(cora, 'transferred')

  const laptop = await enter(centre, 'cora')
  await laptop.click(at('continue-here'))
  await over(cora, 'another of your devices')
  await Promise.all([hears(laptop), hears(ann)])
  expect(await expectSameCode(ann, laptop)).not.toBe(second)
  await picture(laptop, 'continued')
  await laptop.click(at('hangup'))
  await over(ann, 'has ended')
  await ann.waitForSelector(`[data-tone=good][data-call="${next}"]:has-text("Talked for")`)

  for (const page of [ann, ben, cora, laptop]) expect(await refused(page)).toEqual([])
  await expectTold(call, 'ringing', 'accepted', 'connected', 'ended')
  await expectTold(asked, 'ringing', 'accepted', 'connected', 'ended')
  await expectTold(next, 'accepted', 'connected', 'ended')
  expect([call, asked, next].map((uuid) => written(centre, uuid).at(-1)?.end_reason)).toEqual([
    ...['transferred', 'transferred', 'hangup'],
  ])
  const trace = await traces(centre, call, [
    /invite_hook .*result=allow/,
    /invited +customer\/ann/,
    /members .*members=3 woken=1/,
    /accepted +agent\/ben/,
    /connected/,
    /held +agent\/ben/,
    /resumed +agent\/ben/,
    /ended +.*end_reason=transferred/,
    /^Ann called the group support \(3 members\); 2 rang, 1 was woken; Ben answered .*; Ben transferred .*; Ben had it on hold for .*\.$/,
  ])
  // Eve was woken, and did not answer.
  expect(trace).not.toMatch(/push +agent/)
  await traces(centre, asked, [/invited +agent\/ben/, /accepted +agent\/cora/, /ended +.*end_reason=transferred/])
  await traces(centre, next, [
    /connected/,
    /place_taken +agent\/cora/,
    /ended +agent\/cora .*end_reason=hangup/,
    /^Ben transferred Ann to Cora, after calls with both; Cora hung up after [\d.]+ s; Cora went on at another device/,
  ])
  await laptop.context().close()
}, 240_000)
