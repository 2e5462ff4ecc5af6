import { expect, test } from 'bun:test'
import { becomes } from '@ringwire/testkit/becomes'
import type { Page } from 'playwright-core'
import { connect, goOnlineTogether, openEntries, openSecondTab, type Participant } from './support/participant.ts'
import { withServiceAndBrowser } from './support/stage.ts'

const stage = withServiceAndBrowser()

/** Presses Tab until the focus is on the element, as a person would. */
async function tabTo(page: Page, testId: string): Promise<void> {
  for (let presses = 0; presses < 40; presses++) {
    const focused = await page.evaluate(() => document.activeElement?.getAttribute('data-testid'))
    if (focused === testId) return
    await page.keyboard.press('Tab')
  }
  throw new Error(`Tab never reached ${testId}`)
}

const focused = (page: Page) => page.evaluate(() => document.activeElement?.getAttribute('data-testid') ?? null)

async function focusIsVisible(page: Page): Promise<boolean> {
  return page.evaluate(() => {
    const { outlineStyle, outlineWidth } = getComputedStyle(document.activeElement ?? document.body)
    return outlineStyle !== 'none' && Number.parseFloat(outlineWidth) >= 2
  })
}

test('the keyboard alone is enough: go online, call, accept, hang up, decline', async () => {
  const { browser, service } = stage
  const names = { customer: `Kim ${crypto.randomUUID().slice(0, 6)}`, agent: `Ali ${crypto.randomUUID().slice(0, 6)}` }
  const pages: Record<'customer' | 'agent', Page> = {
    customer: await browser.newPage(),
    agent: await browser.newPage(),
  }
  for (const role of ['customer', 'agent'] as const) {
    const page = pages[role]
    await page.goto(`${service.url}/demo/`)
    // The page puts it there itself, perhaps a moment after it was loaded.
    await page.waitForFunction(() => document.activeElement?.getAttribute('data-testid') === 'name')
    await page.keyboard.type(names[role])
    await page.keyboard.press('Tab')
    if (role === 'agent') await page.keyboard.press('ArrowRight')
    await tabTo(page, 'enter')
    expect(await focusIsVisible(page)).toBe(true)
    await page.keyboard.press('Enter')
    await page.waitForSelector('[data-testid=connection][data-state=online]')
  }
  const { customer, agent } = pages
  // Others may be online from another test of this file: stay with these two.
  await customer.waitForSelector(`[data-testid=person]:has-text("${names.agent}")`)

  await tabTo(customer, 'call-audio')
  expect(await focusIsVisible(customer)).toBe(true)
  await customer.keyboard.press('Enter')
  await agent.waitForSelector('[data-testid=incoming][open]')
  const ringing = agent.getByRole('alertdialog', { name: names.customer })
  await ringing.getByText('Incoming audio call').waitFor()
  await agent.keyboard.press('Enter')
  for (const page of [customer, agent]) await page.waitForSelector('[data-testid=stage][data-phase=live]')
  // The focus begins at the group of the controls. Some of them are off until the own microphone is open.
  await customer.waitForFunction(() => document.activeElement?.getAttribute('aria-label') === 'Call controls')
  for (const id of ['mute', 'camera']) await customer.waitForSelector(`[data-testid=${id}]:enabled`)
  const order: (string | null)[] = []
  while (order.at(-1) !== 'hangup' && order.length < 10) {
    await customer.keyboard.press('Tab')
    order.push(await focused(customer))
  }
  expect(order).toEqual(['mute', 'choose-audio', 'camera', 'screen', 'hold', 'hangup'])
  expect(await focusIsVisible(customer)).toBe(true)
  await customer.keyboard.press('Enter')
  for (const page of [customer, agent]) {
    await page.waitForSelector('[data-testid=stage][data-phase=over]', { state: 'attached' })
  }

  // The key that hung up may still be held: it does not call again, whichever it is.
  await becomes(() => focused(customer), 'ended')
  for (const key of ['Space', 'Enter']) await customer.keyboard.press(key)
  expect(await customer.getAttribute('[data-testid=stage]', 'data-phase')).toBe('over')
  await customer.keyboard.press('Tab')
  await becomes(() => focused(customer), 'call-again')
  await customer.keyboard.press('Enter')
  await agent.waitForSelector('[data-testid=incoming][open]')
  await agent.keyboard.press('Escape')
  await customer.waitForSelector('[data-testid=ended]:has-text("declined")')
  // The log has all that was sent until then: a call by each Enter that was meant, and no other.
  const invites = '[data-testid=log-list] > [data-event="call.invite"][data-direction=sent]'
  await becomes(() => customer.locator(invites).count(), 2)
  await Promise.all(Object.values(pages).map((page) => page.close()))
}, 240_000)

test('a phone-sized screen never scrolls sideways', async () => {
  const viewport = { width: 360, height: 740 }
  const { customer, agent, close } = await goOnlineTogether(stage.browser, stage.service.url, { viewport })
  const expectFits = async ({ page }: Participant) => {
    const { scrollWidth, innerWidth } = await page.evaluate(() => ({
      scrollWidth: document.documentElement.scrollWidth,
      innerWidth: window.innerWidth,
    }))
    expect(scrollWidth).toBeLessThanOrEqual(innerWidth)
  }
  await customer.page.waitForSelector('[data-testid=person]')
  await customer.click('log-toggle')
  await customer.page.waitForSelector('[data-testid=log]')
  await expectFits(customer)
  await customer.call(agent, 'video')
  await agent.incoming()
  await expectFits(agent)
  for (const answer of ['accept', 'reject']) {
    const box = await agent.page.locator(`[data-testid=${answer}]`).boundingBox()
    expect(box && box.x >= 0 && box.x + box.width <= 360).toBe(true)
  }
  await agent.click('accept')
  await Promise.all([customer.phase('live'), agent.phase('live')])
  await expectFits(customer)
  const hangUp = await agent.page.locator('[data-testid=hangup]').boundingBox()
  expect(hangUp && hangUp.y + hangUp.height <= 740).toBe(true)
  await close()
}, 240_000)

test('a long log scrolls in its own box, and the page ends where its content does', async () => {
  const { customer, agent, close } = await goOnlineTogether(stage.browser, stage.service.url)
  const { page } = customer
  for (let calls = 0; calls < 4; calls++) {
    await customer.call(agent, 'audio')
    await agent.incoming()
    await agent.click('reject')
    await Promise.all([customer.phase('idle'), agent.phase('idle')])
  }
  await customer.click('dismiss')
  await openEntries(page)
  for (const viewport of [
    { width: 1280, height: 800 },
    { width: 390, height: 844 },
  ]) {
    await page.setViewportSize(viewport)
    const { list, scrolls, content } = await page.evaluate(() => {
      const { scrollHeight, clientHeight } = document.querySelector('[data-testid=log-list]') as Element
      const app = document.querySelector('.app') as Element
      return {
        list: scrollHeight - clientHeight,
        scrolls: document.documentElement.scrollHeight,
        content: Math.ceil(app.getBoundingClientRect().bottom + window.scrollY),
      }
    })
    expect(list).toBeGreaterThan(viewport.height / 2)
    expect(scrolls).toBeLessThanOrEqual(content)
  }
  await close()
}, 240_000)

test('[LOG1] the log shows every envelope and never a token, and the product secret never reaches the browser', async () => {
  const { customer, agent, close } = await goOnlineTogether(stage.browser, stage.service.url, { keepsTraffic: true })
  await connect(customer, agent, 'video')
  const shown = (event: string, direction: string) => {
    const entry = `[data-testid=log-list] > [data-event="${event}"][data-direction=${direction}]`
    return customer.page.waitForSelector(entry, { state: 'attached' })
  }
  await shown('auth.ok', 'received')
  await shown('call.invite', 'sent')
  await shown('call.accepted', 'received')
  await shown('webrtc.offer', 'sent')
  await shown('webrtc.answer', 'received')
  await shown('webrtc.ice_candidate', 'received')
  await shown('call.connected', 'sent')
  await openEntries(customer.page)
  const log = (await customer.page.textContent('[data-testid=log-list]')) ?? ''
  expect(log).toContain('"call_uuid"')
  expect(customer.tokens.length).toBeGreaterThan(0)
  for (const { token } of [...customer.tokens, ...agent.tokens]) {
    expect(log).not.toContain(token)
    expect(log).not.toContain(token.split('.')[1] ?? '')
  }
  for (const person of [customer, agent]) {
    expect(person.traffic.length).toBeGreaterThan(10)
    for (const text of person.traffic) expect(text).not.toContain(stage.service.productSecret)
    expect(await person.page.content()).not.toContain(stage.service.productSecret)
    for (const { token } of person.tokens) expect(stage.service.out + stage.service.log).not.toContain(token)
  }
  expect(stage.service.out + stage.service.log).not.toContain(stage.service.productSecret)
  await close()
}, 240_000)

test('[END2] two tabs of one person ring; the one that answers silences the other', async () => {
  const { customer, agent, close } = await goOnlineTogether(stage.browser, stage.service.url)
  const second = await openSecondTab(agent, 'agent')
  await customer.call(agent, 'audio')
  await agent.incoming()
  await second.waitForSelector('[data-testid=incoming][open]')
  await agent.click('accept')
  await second.waitForSelector('[data-testid=ended]:has-text("another of your devices")')
  await customer.phase('live')
  await close()
}, 240_000)
