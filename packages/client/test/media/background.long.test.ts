import { afterAll, beforeAll, expect, test } from 'bun:test'
import { someone } from '@ringwire/testkit/flows'
import type { Browser } from 'playwright-core'
import { launchThrottlingBrowser } from '../../../../scripts/browser.mjs'
import { servePage } from './support/pages.ts'
import { openPhones } from './support/people.ts'
import { MediaService } from './support/service.ts'
import { openWindow } from './support/tabs.ts'

/* A page behind another tab, in a Chromium that slows what is not seen; by its intensive way after 1 s instead of minutes. */

let service: MediaService
let browser: Browser
let pages: Awaited<ReturnType<typeof servePage>>

beforeAll(async () => {
  ;[service, browser] = await Promise.all([
    new MediaService().start(),
    launchThrottlingBrowser('--enable-features=IntensiveWakeUpThrottling:grace_period_seconds/1'),
  ])
  pages = await servePage('phone.ts', (person) => service.tokenFor(person))
}, 240_000)

afterAll(async () => {
  await browser?.close()
  await pages?.stop()
  await service?.dispose()
})

test('a page in the background: the call goes on, what is muted meanwhile is known, and so it is when it is back', async () => {
  const { customer, agent, close } = await openPhones(browser, pages.url)
  const hidden = await openWindow(browser)
  const userId = someone('hidden')
  const query = new URLSearchParams({ user: userId, role: 'agent', peer: 'customer', device: crypto.randomUUID() })
  const tab = await hidden.open(`${pages.url}?${query}`)
  const soonIn = (isTrue: string) => tab.evaluate(`window.phone.until(() => ${isTrue})`)
  await tab.evaluate(`new Promise((resolve) => {
    const look = () => (window.phone?.client.state.name === 'online' ? resolve() : setTimeout(look, 20))
    look()
  })`)
  await customer.page.evaluate((userId) => window.phone.dial(userId, 'agent', 'video'), userId)
  await soonIn('window.phone.media')
  await Promise.all([customer.page.evaluate(() => window.phone.flowing()), tab.evaluate('window.phone.flowing()')])

  const front = await hidden.open('about:blank')
  await front.bringToFront()
  await tab.evaluate(`new Promise((resolve) => {
    const look = () => document.visibilityState === 'hidden' && resolve()
    document.addEventListener('visibilitychange', look)
    look()
  })`)
  await tab.evaluate('window.ticks = 0; setInterval(() => window.ticks++, 50); 0')
  // Longer than the client may hear nothing, and than the service may: 25 s and 10 s [WS6].
  const flows = customer.page.evaluate(() => window.phone.measureFlow(80))
  await customer.page.evaluate(() => window.phone.media?.setMuted('audio', true))
  await tab.evaluate(`window.phone.media.setMuted('video', true)`)
  expect((await flows).filter(({ audio }) => audio === 0)).toEqual([])
  const toldOfHidden = await customer.page.evaluate(() => window.phone.call?.peerState)
  expect(toldOfHidden).toEqual({ away: null, media: { audio: true, video: false, screen: false }, held: false })
  expect(await tab.evaluate('document.visibilityState')).toBe('hidden')
  // Its timers were slowed: of 800 ticks a few dozen came.
  expect(await tab.evaluate('window.ticks')).toBeLessThan(200)
  expect(await tab.evaluate('window.phone.call.peerState.media')).toEqual({ audio: false, video: true, screen: false })

  await tab.bringToFront()
  await soonIn(`document.visibilityState === 'visible'`)
  await tab.evaluate(`window.phone.media.setMuted('video', false)`)
  await customer.page.evaluate(() => window.phone.until(() => window.phone.call?.peerState.media?.video === true))
  await tab.evaluate('window.phone.measureFlow(2)')
  const state =
    '({ call: window.phone.call.state.name, media: window.phone.media.state.name, errors: window.phone.errors })'
  expect(await tab.evaluate(state)).toEqual({ call: 'connected', media: 'flowing', errors: [] })
  expect(await customer.page.evaluate(() => window.phone.client.state.name)).toBe('online')
  await hidden.close()
  await close()
  expect(agent.failures).toEqual([])
}, 240_000)
