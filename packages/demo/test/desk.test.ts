import { expect, test } from 'bun:test'
import { becomes } from '@ringwire/testkit/becomes'
import type { Page } from 'playwright-core'
import { connect, goOnlineTogether } from './support/participant.ts'
import { withServiceAndBrowser } from './support/stage.ts'

const stage = withServiceAndBrowser()

/**
 * Counts the page's notifications as they are made and closed, and lets the page be hidden at will. Chromium without a
 * screen denies them whatever was granted, and no tab of it is ever hidden.
 */
async function watchNotifications(page: Page): Promise<void> {
  await page.addInitScript(() => {
    const shown: string[] = []
    class Noted extends Notification {
      static override readonly permission = 'granted'
      constructor(title: string, options?: NotificationOptions) {
        super(title, options)
        shown.push(title)
      }
      override close(): void {
        super.close()
        shown.splice(shown.indexOf(this.title), 1)
      }
    }
    let hidden = false
    Object.defineProperty(document, 'hidden', { get: () => hidden })
    Object.assign(window, {
      Notification: Noted,
      shownNotifications: shown,
      hide(is: boolean) {
        hidden = is
        document.dispatchEvent(new Event('visibilitychange'))
      },
    })
  })
}

const notifications = (page: Page, count: number) =>
  page.waitForFunction(
    (count) => (window as unknown as { shownNotifications: string[] }).shownNotifications.length === count,
    count,
  )
const hide = (page: Page, is: boolean) =>
  page.evaluate((is) => (window as unknown as { hide(is: boolean): void }).hide(is), is)
const focused = (page: Page) =>
  page.evaluate(() => document.activeElement?.id || document.activeElement?.getAttribute('aria-label'))

test('a call that rings in a hidden tab is notified; a missed one is counted until it was seen, and called back', async () => {
  const { customer, agent, close } = await goOnlineTogether(stage.browser, stage.service.url, {
    prepare: watchNotifications,
  })
  const { page } = customer
  await page.waitForFunction(() => document.activeElement?.id === 'people-title')

  await hide(page, true)
  await agent.call(customer, 'video')
  await customer.incoming()
  await notifications(page, 1)
  await becomes(() => page.title(), /calls/)
  await agent.page.keyboard.press('Escape')
  await customer.phase('idle')
  await notifications(page, 0)
  await hide(page, false)

  const badge = page.locator('[data-testid=missed]')
  await becomes(() => badge.textContent(), '1 missed')
  await page.hover('[data-testid=history-panel]')
  await badge.waitFor({ state: 'detached' })
  await page.reload()
  await page.waitForSelector('[data-testid=record][data-kind=missed]')
  expect(await badge.count()).toBe(0)

  await customer.click('call-back')
  await agent.incoming()
  await agent.page.waitForFunction(() => document.title.includes('calls'))
  // Title and notification are made at once, and the agent looks at the page.
  await notifications(agent.page, 0)
  await agent.click('accept')
  await Promise.all([customer.phase('live'), agent.phase('live')])
  await page.waitForSelector('[data-testid=stage][data-type=video]')
  await becomes(() => focused(agent.page), 'Call controls')
  await close()
}, 240_000)

/** A machine that has no camera. */
async function withoutCamera(page: Page): Promise<void> {
  await page.addInitScript(() => {
    const { mediaDevices } = navigator
    const open = mediaDevices.getUserMedia.bind(mediaDevices)
    mediaDevices.getUserMedia = (wish) =>
      wish?.video ? Promise.reject(new DOMException('none', 'NotFoundError')) : open(wish)
  })
}

test('the call takes the page, leaves room for the log, is whole on a phone, and hears M and V', async () => {
  const { customer, agent, close } = await goOnlineTogether(stage.browser, stage.service.url, {
    prepare: (page, role) => (role === 'agent' ? withoutCamera(page) : Promise.resolve()),
  })
  const { page } = customer
  const width = async () => (await page.locator('[data-testid=stage]').boundingBox())?.width ?? 0
  await connect(customer, agent, 'video')
  await agent.page.waitForSelector('[data-testid=own-notice]:has-text("No camera: you cannot be seen")')
  // A call may be live before its own devices are open, and the page says so until they are.
  await page.waitForSelector('[data-testid=own-notice]', { state: 'detached' })
  // The people, the calls and the log make room for the call.
  await page.waitForSelector('[data-testid=people]', { state: 'hidden' })
  await page.waitForSelector('[data-testid=log]', { state: 'hidden' })
  const alone = await width()
  expect(alone).toBeGreaterThan(1200)
  await customer.click('log-toggle')
  await page.waitForSelector('[data-testid=log]')
  expect(await width()).toBeLessThan(alone - 300)

  // A button that is on looks on, also while the pointer that pressed it is still there.
  const mute = page.locator('[data-testid=mute]')
  const look = () =>
    mute.evaluate((button) => {
      const { color, backgroundColor } = getComputedStyle(button)
      return { color, backgroundColor, isUnderPointer: button.matches(':hover') }
    })
  await mute.click()
  await page.waitForSelector('[data-testid=mute][aria-pressed=true]')
  const pressed = { color: 'rgb(16, 32, 42)', backgroundColor: 'rgb(255, 255, 255)' }
  await becomes(look, { ...pressed, isUnderPointer: true })
  await page.mouse.move(0, 0)
  await becomes(look, { ...pressed, isUnderPointer: false })
  await page.keyboard.press('m')
  await page.waitForSelector('[data-testid=stage]:not([data-muted])')

  for (const viewport of [
    { width: 844, height: 390 },
    { width: 390, height: 844 },
  ]) {
    await page.setViewportSize(viewport)
    for (const button of ['mute', 'camera', 'hangup']) {
      const box = await page.locator(`[data-testid=${button}]`).boundingBox()
      expect(box && box.x >= 0 && box.x + box.width <= viewport.width).toBe(true)
      expect(box && box.y >= 0 && box.y + box.height <= viewport.height).toBe(true)
    }
  }
  await page.keyboard.press('m')
  await page.keyboard.press('v')
  await page.waitForSelector('[data-testid=stage][data-muted][data-camera-off]')
  await close()
}, 240_000)

test('a log that is opened in a call stays open after it, and its end begins with a whole row', async () => {
  const viewport = { width: 1024, height: 700 }
  const { customer, agent, close } = await goOnlineTogether(stage.browser, stage.service.url, { viewport })
  const log = customer.page.locator('[data-testid=log]')
  await connect(customer, agent, 'audio')
  await log.waitFor({ state: 'hidden' })
  await customer.click('log-toggle')
  await log.waitFor()
  await customer.click('hangup')
  await customer.phase('idle')
  expect(await log.isVisible()).toBe(true)
  await connect(customer, agent, 'audio')
  expect(await log.isVisible()).toBe(true)

  const { above, cut } = await customer.page.evaluate(() => {
    const list = document.querySelector('[data-testid=log-list]') as Element
    list.scrollTop = list.scrollHeight
    const { top } = list.getBoundingClientRect()
    const rows = [...list.querySelectorAll('.log-arrow')].map((arrow) => arrow.getBoundingClientRect())
    const isCut = (row: DOMRect) => row.top < top - 1 && row.bottom > top + 1
    return { above: rows.filter(({ bottom }) => bottom <= top + 1).length, cut: rows.filter(isCut).length }
  })
  expect(above).toBeGreaterThan(0)
  expect(cut).toBe(0)
  await customer.click('log-toggle')
  await log.waitFor({ state: 'hidden' })
  await close()
}, 240_000)

test('[LOG1] the log can be filtered, copied without what is secret, and cleared', async () => {
  const { customer, agent, close } = await goOnlineTogether(stage.browser, stage.service.url)
  const { page, context, tokens } = customer
  await context.grantPermissions(['clipboard-read', 'clipboard-write'])
  await connect(customer, agent, 'audio')
  await customer.click('log-toggle')
  const entries = (selector = '') => page.locator(`[data-testid=log-list] > li${selector}`)
  await entries('[data-event="webrtc.answer"]').first().waitFor()

  // Other messages may part those of the connection, so it finds two more in one moment.
  await page.evaluate(() => {
    const connection = window.ringwireDemo.peerConnection
    for (const n of [1, 2]) {
      const candidate = new RTCIceCandidate({
        candidate: `candidate:${n} 1 udp 1 192.0.2.${n} 9 typ host`,
        sdpMid: '0',
      })
      connection?.dispatchEvent(new RTCPeerConnectionIceEvent('icecandidate', { candidate }))
    }
  })
  // More of them may come: both are read in one moment.
  const folded = '[data-event="webrtc.ice_candidate"][data-direction=sent]:not([data-count="1"])'
  const { sent, text } = await entries(folded)
    .first()
    .evaluate((entry) => ({ sent: Number(entry.getAttribute('data-count')), text: entry.textContent }))
  expect(sent).toBeGreaterThan(1)
  expect(text).toContain(`×${sent}`)

  // The word fades soon, so the page itself looks out for it.
  await page.evaluate(() => {
    const log = document.querySelector('[data-testid=log]') as Element
    new MutationObserver(() => {
      if (log.textContent?.includes('Copied')) document.documentElement.dataset.saysCopied = ''
    }).observe(log, { childList: true, subtree: true })
  })
  await customer.click('log-copy')
  await page.waitForSelector('html[data-says-copied]', { state: 'attached' })
  const copied = await page.evaluate(() => navigator.clipboard.readText())
  const events = (JSON.parse(copied) as { sent?: { event: string }[] }[]).flatMap(({ sent = [] }) => sent)
  expect(events.map(({ event }) => event)).toContain('webrtc.offer')
  for (const { token } of tokens) expect(copied).not.toContain(token)
  expect(copied).not.toMatch(/ice-pwd|fingerprint:|127\.0\.0\.1 \d+ typ/)

  await customer.click('log-webrtc')
  await becomes(() => entries('[data-family=webrtc]').count(), 0)
  expect(await entries('[data-family=call]').count()).toBeGreaterThan(0)
  await customer.click('log-webrtc')
  await customer.click('log-clear')
  await becomes(() => entries('[data-event="call.invite"]').count(), 0)
  await close()
}, 240_000)
