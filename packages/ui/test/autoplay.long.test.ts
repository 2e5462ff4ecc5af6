import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { launchBrowserWithoutAutoplay } from '../../../scripts/browser.mjs'
import { at, inCall, openTwo, phase } from './support/people.ts'
import { bundlePage, openSite, type Site } from './support/site.ts'
import { lookAt } from './support/unclicked.ts'

/* In a browser that keeps sound back until somebody has clicked, as people's browsers do. */

let browser: Browser
let site: Site
beforeAll(async () => {
  const page = join(import.meta.dir, 'page', 'phone.tsx')
  const opened = await Promise.all([launchBrowserWithoutAutoplay(), bundlePage(page).then(openSite)])
  ;[browser, site] = opened
}, 240_000)
afterAll(async () => {
  await browser?.close()
  await site?.close()
})

const one = (selector: string) => `document.querySelector(${JSON.stringify(selector)})`
const video = one(at('remote-video'))
const isPlayed = `${video} && !${video}.paused && !${video}.muted && !${one(at('tap-to-hear'))}`

/** A call in which Ben's page was loaded again, and the user has not yet answered the browser's prompt. */
async function reloadedInCall() {
  const two = await openTwo(browser, site)
  await inCall(two)
  const { ben } = two
  await ben.addInitScript(() => {
    const { mediaDevices } = navigator
    const open = mediaDevices.getUserMedia.bind(mediaDevices)
    const answer = Promise.withResolvers<void>()
    Object.assign(window, { allow: answer.resolve })
    mediaDevices.getUserMedia = (wish) => answer.promise.then(() => open(wish))
  })
  await ben.reload()
  const page = await lookAt(ben)
  await page.until(`${one(at('tap-to-hear'))}?.textContent === 'Tap to hear'`)
  await page.until(`${one(at('announcement'))}.textContent === 'Tap to hear'`)
  expect(await page.evaluate<boolean>(`${video}.paused`)).toBe(true)
  return { two, ben, page }
}

test('sound that the browser keeps back: "Tap to hear" plays it', async () => {
  const { two, page } = await reloadedInCall()
  await page.click(at('tap-to-hear'))
  await page.until(isPlayed)
  await two.close()
}, 240_000)

test('sound that the browser keeps back: a click anywhere plays it, and so does a key', async () => {
  for (const act of ['click', 'key'] as const) {
    const { two, ben, page } = await reloadedInCall()
    if (act === 'click') await page.click('h1')
    else await ben.keyboard.press('a')
    await page.until(isPlayed)
    await two.close()
  }
}, 240_000)

test('sound that the browser keeps back is played when the microphone is allowed late', async () => {
  const { two, page } = await reloadedInCall()
  await page.evaluate('allow()')
  await page.until(isPlayed)
  await two.close()
}, 240_000)

/** Notes the tones that begin to sound on this page, and in what state their player is. */
async function listen(page: Page): Promise<void> {
  await page.addInitScript(() => {
    const { start } = OscillatorNode.prototype
    const tones: string[] = []
    Object.assign(window, { tones })
    OscillatorNode.prototype.start = function (at) {
      tones.push(this.context.state)
      start.call(this, at)
    }
  })
}

test('a call rings aloud: for the caller at once, and on a page that nobody has clicked with the first key', async () => {
  const two = await openTwo(browser, site, { query: { tones: '1' } })
  const { ann, ben } = two
  await Promise.all([listen(ann), listen(ben)])
  await Promise.all([ann.reload(), ben.reload()])
  const page = await lookAt(ben)
  await ann.click(at('call-video'))
  await page.until(`${one(at('incoming'))}?.open`)
  await ann.waitForFunction('tones.includes("running")')
  expect(await page.evaluate<string[]>('tones')).toEqual([])
  await ben.keyboard.press('Tab')
  await page.until('tones.includes("running")')
  await ben.click(at('reject'))
  await phase(ann, 'over')
  await two.close()
}, 240_000)
