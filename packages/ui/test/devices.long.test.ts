import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { becomes } from '@ringwire/testkit/becomes'
import type { Browser, Page } from 'playwright-core'
import { launchBrowser } from '../../../scripts/browser.mjs'
import { focused, hasFocus } from './support/keyboard.ts'
import { at, inCall, openTwo, phase, seesPeer } from './support/people.ts'
import { bundlePage, openSite, type Site } from './support/site.ts'

/* What is opened, sent and said of microphones and cameras, between two pages that are only made of the components. */

let browser: Browser
let site: Site
beforeAll(async () => {
  const page = join(import.meta.dir, 'page', 'phone.tsx')
  const opened = await Promise.all([
    launchBrowser('--use-fake-device-for-media-stream=fps=5,device-count=2'),
    bundlePage(page).then(openSite),
  ])
  ;[browser, site] = opened
}, 240_000)
afterAll(async () => {
  await browser?.close()
  await site?.close()
})

declare global {
  interface Window {
    /** The requests since the page was loaded. */
    asked: MediaStreamConstraints[]
    /** The name of the error that a camera fails with from now on. */
    cameraFails?: string
  }
}

/** Notes the requests. With `lacks`, this machine has neither microphone nor camera. */
async function watchDevices(page: Page, { lacks = false } = {}): Promise<void> {
  await page.addInitScript((lacks) => {
    const { mediaDevices } = navigator
    const open = mediaDevices.getUserMedia.bind(mediaDevices)
    window.asked = []
    mediaDevices.getUserMedia = async (wish = {}) => {
      window.asked.push(structuredClone(wish))
      if (lacks) throw new DOMException('', 'NotFoundError')
      if (wish.video && window.cameraFails) throw new DOMException('', window.cameraFails)
      return open(wish)
    }
  }, lacks)
  await page.reload()
  await page.waitForSelector(at('call-video'))
}

const asked = (page: Page) => page.evaluate(() => window.asked)
const text = (page: Page, testId: string) => page.textContent(at(testId))

test('a peer without devices: the time runs, both sides say what is not sent, and the call can be ended', async () => {
  const two = await openTwo(browser, site)
  const { ann, ben } = two
  await watchDevices(ann, { lacks: true })
  await ann.click(at('call-video'))
  await ben.click(at('accept'))
  await Promise.all([phase(ann, 'live'), phase(ben, 'live')])
  await ben.waitForSelector(`${at('nothing-sent')}:has-text("Ann Lee sends no sound and no picture")`)
  await ben.waitForSelector(`${at('call-state')} [role=timer]`)
  await ann.waitForSelector(`${at('own-notice')}:has-text("you cannot be heard or seen")`)
  await seesPeer(ann)
  await ben.click(at('hangup'))
  await phase(ann, 'over')
  expect(await text(ben, 'duration')).toMatch(/^Duration \d+:\d\d$/)
  await two.close()
}, 240_000)

describe('accept without camera', () => {
  const answered = async (media: string) => {
    const two = await openTwo(browser, site, { query: { media } })
    await watchDevices(two.ben)
    await two.ann.click(at('call-video'))
    await two.ben.click(at('accept-without-camera'))
    await seesPeer(two.ben)
    await two.ann.waitForSelector(`${at('no-picture')}:has-text("Ben Ortiz has the camera off")`)
    return two
  }

  test('opens no camera that the application has described, and the button opens that one', async () => {
    const two = await answered('constraints')
    expect(await asked(two.ben)).toEqual([{ audio: { noiseSuppression: false } }])
    await two.ben.click(at('camera'))
    await seesPeer(two.ann)
    expect(await asked(two.ben)).toContainEqual({ video: { width: { ideal: 320 }, facingMode: 'user' } })
    await two.close()
  }, 240_000)

  test("sends only the sound of the application's stream, and the button sends its picture", async () => {
    const two = await answered('stream')
    await two.ben.click(at('camera'))
    await seesPeer(two.ann)
    expect(await asked(two.ben)).toEqual([])
    await two.close()
  }, 240_000)
})

test('devices that the user chose win over those that the application has described', async () => {
  const two = await openTwo(browser, site, { query: { preview: '1', media: 'constraints' } })
  const { ann } = two
  await ann.waitForFunction(() => document.querySelectorAll('.rw-menu option').length > 3)
  await watchDevices(ann)
  await ann.waitForFunction(() => document.querySelectorAll('.rw-menu option').length > 3)
  const chosen: (string | null)[] = []
  for (const name of ['Microphone', 'Camera']) {
    const last = ann.getByLabel(name, { exact: true }).locator('option').last()
    chosen.push(await last.getAttribute('value'))
    await ann.getByLabel(name, { exact: true }).selectOption(chosen.at(-1) ?? '')
  }
  // Chromium's second fake camera has a format that nothing shows: it is opened, and no picture is waited for.
  await ann.click(at('call-video'))
  await two.ben.click(at('accept'))
  await Promise.all([phase(ann, 'live'), phase(two.ben, 'live')])
  const [audio, video] = chosen
  // The side that a camera faces is no longer asked for, because another camera may be the one at that side.
  expect((await asked(ann)).at(-1)).toEqual({
    audio: { noiseSuppression: false, deviceId: { exact: audio ?? '' } },
    video: { width: { ideal: 320 }, deviceId: { exact: video ?? '' } },
  })
  await two.close()
}, 240_000)

test('a device that the user chose and that is gone by now is replaced by another', async () => {
  const two = await openTwo(browser, site, { query: { preview: '1' } })
  const { ann } = two
  const camera = ann.getByLabel('Camera', { exact: true })
  await ann.waitForFunction(() => document.querySelectorAll('.rw-menu option').length > 3)
  await camera.selectOption((await camera.locator('option').last().getAttribute('value')) ?? '')
  // From here on there is no device with that id, as after its plug was pulled.
  await ann.evaluate(() => {
    const { mediaDevices } = navigator
    const open = mediaDevices.getUserMedia.bind(mediaDevices)
    mediaDevices.getUserMedia = async (wish = {}) => {
      const { deviceId } = (wish.video ?? {}) as MediaTrackConstraints
      if (deviceId) throw new OverconstrainedError('deviceId')
      return open(wish)
    }
  })
  await inCall(two)
  await two.close()
}, 240_000)

test('an audio call opens no camera, whatever the application has described, until somebody adds a picture', async () => {
  const two = await openTwo(browser, site, { query: { media: 'constraints' } })
  const { ann, ben } = two
  await Promise.all([watchDevices(ann), watchDevices(ben)])
  await ann.click(at('call-audio'))
  await ben.click(at('accept'))
  await Promise.all([phase(ann, 'live'), phase(ben, 'live')])
  for (const page of [ann, ben]) expect(await asked(page)).toEqual([{ audio: { noiseSuppression: false } }])

  await ann.click(`${at('camera')}[aria-label="Turn camera on"]`)
  await seesPeer(ben)
  await ben.click(`${at('camera')}[aria-label="Turn camera on"]`)
  await seesPeer(ann)
  // From now on it is a button as in a video call.
  await ann.click(`${at('camera')}[aria-label="Turn camera off"][aria-pressed=false]`)
  await ann.waitForSelector(`${at('camera')}[aria-pressed=true]`)
  await ben.waitForSelector('.rw-peer:not([data-seen])')
  await ann.click(at('camera'))
  await seesPeer(ben)
  await two.close()
}, 240_000)

const cameraFails = (page: Page, name?: string) =>
  page.evaluate((name) => {
    if (name) window.cameraFails = name
    else delete window.cameraFails
  }, name)

test('an audio call: a camera that cannot be added is named, the button keeps the focus, and V comes with it', async () => {
  const two = await openTwo(browser, site)
  const { ann, ben } = two
  await watchDevices(ann)
  await ann.click(at('call-audio'))
  await ben.click(at('accept'))
  await Promise.all([phase(ann, 'live'), phase(ben, 'live')])
  // A key that is hit by chance adds no picture, and none is promised.
  await ann.waitForSelector(`${at('camera')}:not([aria-keyshortcuts]):enabled`)
  await ann.keyboard.press('v')
  await cameraFails(ann, 'NotAllowedError')
  await ann.focus(at('camera'))
  await ann.keyboard.press('Enter')
  await ann.waitForSelector(`${at('own-notice')}:has-text("Camera: not allowed")`)
  expect(await asked(ann)).toHaveLength(2)
  expect(await focused(ann)).toBe('camera')
  await cameraFails(ann)
  await ann.keyboard.press('Enter')
  await ann.waitForSelector(`${at('camera')}[aria-keyshortcuts=V][aria-pressed=false]`)
  await seesPeer(ben)
  expect(await focused(ann)).toBe('camera')

  // While it is off another program takes it.
  await ann.keyboard.press('v')
  await ann.waitForSelector(`${at('camera')}[aria-pressed=true]`)
  await cameraFails(ann, 'NotReadableError')
  await ann.keyboard.press('v')
  await ann.waitForSelector(`${at('own-notice')}:has-text("Camera: another program uses it")`)
  expect(await ann.getAttribute(at('camera'), 'aria-pressed')).toBe('true')
  await cameraFails(ann)
  await ann.keyboard.press('v')
  await ann.waitForSelector(`${at('camera')}[aria-pressed=false]`)
  await ann.waitForSelector(at('own-notice'), { state: 'detached' })
  await two.close()
}, 240_000)

test('a camera that is unplugged in a call is told to be off, and the button opens another one', async () => {
  const two = await openTwo(browser, site)
  const { ann, ben } = two
  await watchDevices(ann)
  await inCall(two)
  await cameraFails(ann, 'NotFoundError')
  await ann.evaluate(() => {
    const { srcObject } = document.querySelector('[data-testid=local-video]') as HTMLVideoElement
    const [track] = (srcObject as MediaStream).getVideoTracks()
    track?.stop()
    // The browser says it of a device that is gone, and not of one that the page has stopped.
    track?.dispatchEvent(new Event('ended'))
  })
  await ann.waitForSelector(`${at('camera')}[aria-pressed=true]:enabled`)
  await ann.waitForSelector(`${at('own-notice')}:has-text("No camera: you cannot be seen")`)
  await ann.waitForSelector(`${at('stage')}[data-camera-off]`)
  await ben.waitForSelector(`${at('no-picture')}:has-text("Ann Lee has the camera off")`)
  await cameraFails(ann)
  await ann.click(at('camera'))
  await ann.waitForSelector(at('own-notice'), { state: 'detached' })
  await ben.waitForSelector(at('no-picture'), { state: 'detached' })
  await two.close()
}, 240_000)

test('a call that a child places when it is mounted has the media of its provider', async () => {
  const two = await openTwo(browser, site)
  const { ann, ben } = two
  const url = new URL(ann.url())
  for (const [name, value] of [
    ['media', 'constraints'],
    ['at-once', '1'],
  ] as const)
    url.searchParams.set(name, value)
  await watchDevices(ann)
  await ann.goto(url.href)
  await ben.click(at('accept'))
  await Promise.all([phase(ann, 'live'), phase(ben, 'live')])
  const [first] = await asked(ann)
  expect(first).toEqual({ audio: { noiseSuppression: false }, video: { width: { ideal: 320 }, facingMode: 'user' } })
  await two.close()
}, 240_000)

test('a phone changes to its other camera, and the next call begins with that one', async () => {
  const two = await openTwo(browser, site, { isMobile: true, hasTouch: true, viewport: { width: 390, height: 664 } })
  const { ann } = two
  await inCall(two)
  const camera = () =>
    ann.evaluate(() => {
      const { srcObject } = document.querySelector('[data-testid=local-video]') as HTMLVideoElement
      return (srcObject as MediaStream).getVideoTracks()[0]?.getSettings().deviceId
    })
  const first = await camera()
  await ann.tap(at('flip'))
  await ann.waitForFunction((first) => {
    const { srcObject } = document.querySelector('[data-testid=local-video]') as HTMLVideoElement
    const now = (srcObject as MediaStream).getVideoTracks()[0]?.getSettings().deviceId
    return now !== undefined && now !== first
  }, first)
  const second = await camera()
  await ann.tap(at('hangup'))
  await phase(two.ben, 'over')
  await ann.tap(at('call-again'))
  await two.ben.tap(at('accept'))
  await Promise.all([phase(ann, 'live'), phase(two.ben, 'live')])
  await ann.waitForSelector(`${at('camera')}[aria-pressed=false]:enabled`)
  await becomes(camera, second)
  await two.close()
}, 240_000)

test('after hanging up no key calls; the end names the person, and "Call again" calls in the same way', async () => {
  const two = await openTwo(browser, site)
  const { ann, ben } = two
  await inCall(two)
  await ann.focus(at('hangup'))
  await ann.keyboard.press('Space')
  await phase(ann, 'over')
  await hasFocus(ann, 'ended')
  for (const key of ['Space', 'Enter']) await ann.keyboard.press(key)
  expect(await ann.getAttribute(at('stage'), 'data-phase')).toBe('over')
  expect(await focused(ann)).toBe('ended')
  expect(await text(ann, 'ended')).toContain('Ben Ortiz')
  expect(await text(ann, 'duration')).toMatch(/^Duration \d+:\d\d$/)
  await ann.click(at('call-again'))
  await ben.waitForSelector(`${at('incoming')}:has-text("Incoming video call")`)
  await ann.click(at('hangup'))
  await ben.waitForSelector(`${at('call-again')}:has-text("Call back")`)
  await two.close()
}, 240_000)

test('a camera at the back is not mirrored, also where `process` makes the picture', async () => {
  const two = await openTwo(browser, site, { query: { process: '1' } })
  const { ann } = two
  await ann.evaluate(() => {
    const { getSettings } = MediaStreamTrack.prototype
    // A drawn track tells no side.
    MediaStreamTrack.prototype.getSettings = function () {
      const isCamera = this.kind === 'video' && !('canvas' in this)
      return { ...getSettings.call(this), ...(isCamera && { facingMode: 'environment' }) }
    }
  })
  await inCall(two)
  for (const [page, isMirror] of [
    [ann, false],
    [two.ben, true],
  ] as const) {
    await page.waitForFunction(() => document.querySelector<HTMLVideoElement>('.rw-self video')?.videoWidth)
    await becomes(() => page.locator(`${at('local-video')}[data-mirror]`).count(), isMirror ? 1 : 0)
  }
  await two.close()
}, 240_000)

test('the preview shows the chosen camera, and any other where that is gone', async () => {
  const two = await openTwo(browser, site, { query: { preview: '1' } })
  const { ann } = two
  await watchDevices(ann)
  const shown = () =>
    ann.waitForFunction(() => document.querySelector<HTMLVideoElement>('.rw-preview video')?.videoWidth)
  await shown()
  const cameras = ann.getByLabel('Camera', { exact: true })
  const chosen = (await cameras.locator('option').last().getAttribute('value')) ?? ''
  await ann.evaluate((chosen) => {
    const { mediaDevices } = navigator
    const open = mediaDevices.getUserMedia.bind(mediaDevices)
    mediaDevices.getUserMedia = async (wish = {}) => {
      const stream = await open(wish)
      if (!JSON.stringify(wish).includes(chosen)) return stream
      for (const track of stream.getTracks()) track.stop()
      throw new DOMException('', 'NotFoundError')
    }
  }, chosen)
  await cameras.selectOption(chosen)
  await ann.waitForFunction(() => window.asked.some(({ video }) => video === true) && window.asked.length > 2)
  await shown()
  expect(await asked(ann)).toContainEqual({ audio: true, video: { deviceId: { exact: chosen } } })
  expect((await asked(ann)).at(-1)).toEqual({ video: true })
  await ann.waitForSelector(at('device-errors'), { state: 'detached' })
  await two.close()
}, 240_000)
