import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { serious } from '@ringwire/testkit/axe'
import { becomes } from '@ringwire/testkit/becomes'
import { openBrowser } from '@ringwire/testkit/browser'
import { someone } from '@ringwire/testkit/flows'
import type { Browser, Page } from 'playwright-core'
import { focused, hasFocus, hasFocusNamed, tabTo } from './support/keyboard.ts'
import { announces, at, goOnline, inCall, openTwo, phase, seesPeer, talksTo } from './support/people.ts'
import { picture } from './support/pictures.ts'
import { bundlePage, openSite, type Site } from './support/site.ts'

/* Calls between two pages that are only made of the components, in StrictMode. */

const page = join(import.meta.dir, 'page', 'phone.tsx')
let browser: Browser
beforeAll(async () => {
  browser = await openBrowser()
}, 240_000)
afterAll(() => browser?.close())

function withSite(runtime: 'react' | 'preact'): { site: Site } {
  const held = {} as { site: Site }
  beforeAll(async () => {
    held.site = await openSite(await bundlePage(page, runtime))
  }, 240_000)
  afterAll(() => held.site?.close())
  return held
}

/** This Chromium asks nobody and opens whatever is wanted. Here the user has said no to the camera, until they change it. */
async function denyCamera(page: Page): Promise<void> {
  await page.evaluate(() => localStorage.setItem('denied', 'video'))
  await page.addInitScript(() => {
    const { mediaDevices } = navigator
    const open = mediaDevices.getUserMedia.bind(mediaDevices)
    const wishes: MediaStreamConstraints[] = []
    Object.assign(window, { wishes })
    mediaDevices.getUserMedia = async (wish = {}) => {
      wishes.push(wish)
      if (wish.video && localStorage.getItem('denied')) throw new DOMException('', 'NotAllowedError')
      return open(wish)
    }
  })
}

declare global {
  interface Window {
    /** The wishes, if `denyCamera` stands before the devices. */
    wishes: MediaStreamConstraints[]
  }
}

describe('on React', () => {
  const held = withSite('react')

  test('the pointer: a video call, each state of it accessible in light and in dark', async () => {
    const two = await openTwo(browser, held.site)
    const { ann, ben } = two
    await ann.waitForSelector(at('call-video'))
    expect(await serious(ann)).toEqual([])
    await ann.click(at('call-video'))
    await phase(ann, 'calling')
    await ben.waitForSelector(at('incoming'))
    await picture(ann, 'calling')
    await picture(ben, 'incoming')
    expect(await serious(ann)).toEqual([])
    expect(await serious(ben)).toEqual([])

    await ben.click(at('accept'))
    await Promise.all([seesPeer(ann), seesPeer(ben)])
    await talksTo(ben, 'Ann Lee')
    await announces(ben, 'Connected')
    await picture(ben, 'live')
    expect(await serious(ben)).toEqual([])

    // [SAS1] Both read the same numbers.
    for (const one of [ann, ben]) await one.click(at('show-code'))
    const code = await ben.textContent(at('security-code'))
    expect(code).toMatch(/^\d{5}( \d{5}){11}$/)
    expect(await ann.textContent(at('security-code'))).toBe(code)
    await picture(ben, 'security-code')
    expect(await serious(ben)).toEqual([])
    for (const one of [ann, ben]) await one.click(at('show-code'))

    // One way of saying "muted": the name stays, the state changes.
    await ben.click(at('mute'))
    await ben.waitForSelector(`${at('mute')}[aria-pressed=true][aria-label="Mute microphone"]`)
    await ben.click(at('camera'))
    await ann.waitForSelector(at('nothing-sent'))
    await picture(ann, 'no-picture')
    expect(await serious(ann)).toEqual([])
    await ben.click(at('camera'))
    await ann.waitForSelector(at('nothing-sent'), { state: 'detached' })

    await ben.click(at('screen'))
    await ben.waitForSelector(`${at('screen')}[aria-pressed=true]`)
    await ben.waitForSelector(`${at('local-video')}:not([data-mirror])`)
    await ben.click(at('screen'))
    await ben.waitForSelector(`${at('local-video')}[data-mirror]`)
    await ben.click(at('full-screen'))
    await ben.waitForSelector(`${at('full-screen')}[aria-pressed=true]`)
    await becomes(() => ben.evaluate(() => document.fullscreenElement?.getAttribute('data-testid')), 'stage')
    await ben.click(at('full-screen'))
    await ben.waitForSelector(`${at('full-screen')}[aria-pressed=false]`)

    const shownApart = () => ben.evaluate(() => document.pictureInPictureElement?.getAttribute('data-testid') ?? null)
    await ben.click(at('picture-in-picture'))
    await ben.waitForSelector(`${at('picture-in-picture')}[aria-pressed=true]`)
    await becomes(shownApart, 'remote-video')
    await ben.click(at('picture-in-picture'))
    await ben.waitForSelector(`${at('picture-in-picture')}[aria-pressed=false]`)
    await becomes(shownApart, null)

    await ben.click(at('choose-audio'))
    const labels = () => ben.locator(`${at('device-menu')} label`).allTextContents()
    await becomes(async () => (await labels()).includes('Microphone'), true)
    await ben.click(at('choose-video'))
    await ben.waitForSelector(at('device-preview'))
    await becomes(labels, ['Camera'])
    await picture(ben, 'devices')
    expect(await serious(ben)).toEqual([])
    // A press anywhere else closes it.
    await ben.mouse.click(640, 300)
    await ben.waitForSelector(at('device-menu'), { state: 'detached' })

    await ann.click(at('hangup'))
    await Promise.all([phase(ann, 'over'), phase(ben, 'over')])
    await ann.waitForSelector(`${at('ended')}:has-text("You hung up.")`)
    await announces(ben, 'The call with Ann Lee has ended.')
    await picture(ben, 'ended')
    expect(await serious(ben)).toEqual([])
    await two.close()
  }, 240_000)

  test('the keyboard alone: call, cancel, accept, mute, hang up', async () => {
    const two = await openTwo(browser, held.site)
    const { ann, ben } = two
    await tabTo(ann, 'call-video')
    await ann.keyboard.press('Enter')
    await ben.waitForSelector(at('incoming'))
    await ann.keyboard.press('Escape')
    await ben.waitForSelector(at('incoming'), { state: 'detached' })
    await Promise.all([phase(ann, 'over'), phase(ben, 'over')])
    // The controls are gone, and the focus is not lost with them.
    await hasFocus(ann, 'ended')
    for (const page of [ann, ben]) {
      await tabTo(page, 'dismiss')
      await page.keyboard.press('Enter')
      await phase(page, 'idle')
      await hasFocus(page, 'stage')
    }

    await tabTo(ann, 'call-video')
    await ann.keyboard.press('Enter')
    await hasFocus(ben, 'accept')
    const ring: (string | null)[] = []
    for (let presses = 0; presses < 6; presses++) {
      ring.push(await focused(ben))
      await ben.keyboard.press('Tab')
    }
    // The focus may pass the browser's own controls, and never what is behind the dialog.
    expect(new Set(ring.filter((id) => id !== null))).toEqual(new Set(['accept', 'reject', 'accept-without-camera']))
    await tabTo(ben, 'accept')
    await ben.keyboard.press('Enter')
    await Promise.all([seesPeer(ann), seesPeer(ben)])
    await hasFocusNamed(ben, 'Call controls')

    await ben.waitForSelector(`${at('mute')}:enabled`)
    await ben.keyboard.press('m')
    await ben.waitForSelector(`${at('mute')}[aria-pressed=true]`)
    await ben.keyboard.press('v')
    await ben.waitForSelector(`${at('camera')}[aria-pressed=true]`)
    await tabTo(ben, 'choose-audio')
    await ben.keyboard.press('Enter')
    await ben.waitForSelector(`${at('device-menu')} select`)
    await ben.keyboard.press('Tab')
    // A user who chooses a device by its first letter does not mean the microphone.
    await ben.keyboard.press('m')
    await ben.keyboard.press('Escape')
    await ben.waitForSelector(at('device-menu'), { state: 'detached' })
    await hasFocus(ben, 'choose-audio')
    expect(await ben.getAttribute(at('mute'), 'aria-pressed')).toBe('true')
    await tabTo(ben, 'hangup')
    await ben.keyboard.press('Enter')
    await Promise.all([phase(ann, 'over'), phase(ben, 'over')])
    await two.close()
  }, 240_000)

  test('the hang-up button is reached and no control is cut off, upright and lying', async () => {
    const two = await openTwo(browser, held.site, { viewport: { width: 390, height: 844 } })
    await inCall(two)
    // It fills the phone, upright and on its side, until the user says otherwise.
    await two.ann.waitForSelector('.rw-peer[data-fit=cover]')
    await two.ann.setViewportSize({ width: 844, height: 390 })
    await two.ann.waitForSelector('.rw-peer[data-fit=cover]')
    await two.ann.click(`${at('fill')}[aria-pressed=true]`)
    await two.ann.waitForSelector('.rw-peer[data-fit=contain]')
    for (const [width, height] of [
      [390, 844],
      [844, 390],
      [320, 568],
    ] as const) {
      await two.ann.setViewportSize({ width, height })
      const outside = await two.ann.evaluate(() =>
        [...document.querySelectorAll('.rw-stage button')].flatMap((button) => {
          const { left, top, right, bottom, x, y, width, height } = button.getBoundingClientRect()
          const isInside = left >= 0 && top >= 0 && right <= innerWidth && bottom <= innerHeight
          const hit = document.elementFromPoint(x + width / 2, y + height / 2)
          return isInside && button.contains(hit) ? [] : [button.getAttribute('aria-label')]
        }),
      )
      expect([width, height, ...outside]).toEqual([width, height])
    }
    await two.ann.click(at('hangup'))
    await phase(two.ben, 'over')
    await two.close()
  }, 240_000)

  test('the peer is muted, shares its screen, is lost: told in words, in light and in dark', async () => {
    const two = await openTwo(browser, held.site)
    const { ann, ben } = two
    await inCall(two)
    await ann.click(at('mute'))
    await ann.click(at('screen'))
    await ben.waitForSelector(`${at('peer-muted')}:has-text("Ann Lee is muted")`)
    await ben.waitForSelector(`${at('peer-shares')}:has-text("Ann Lee shares the screen")`)
    await ben.waitForSelector('.rw-peer[data-fit=contain]')
    expect(await serious(ben)).toEqual([])
    await ann.click(at('screen'))
    await ann.click(at('camera'))
    await ben.waitForSelector(`${at('nothing-sent')}:has-text("Ann Lee sends no sound and no picture")`)

    await ann.context().close()
    await Promise.all([
      ben.waitForSelector(`${at('call-state')}:has-text("Reconnecting")`),
      // Two minutes, less what has passed since [END3]. It goes on counting, so it is looked for from the beginning.
      ben.waitForSelector(`${at('peer-away')}:has-text("Ann Lee lost the connection, 1:5")`),
    ])
    expect(await ben.locator(at('no-picture')).count()).toBe(0)
    await announces(ben, 'Ann Lee lost the connection')
    const left = await ben.textContent(at('peer-away'))
    await ben.waitForFunction((left) => document.querySelector('[data-testid=peer-away]')?.textContent !== left, left)
    // It is said once, and not again with each second.
    expect(await ben.textContent(at('announcement'))).toBe('Ann Lee lost the connection')
    await picture(ben, 'lost')
    expect(await serious(ben)).toEqual([])
    await ben.click(at('hangup'))
    await phase(ben, 'over')
    await two.close()
  }, 240_000)

  test('[HOLD1] on hold: both stages say so, nothing is seen or heard, and the call goes on, also after a reload', async () => {
    const two = await openTwo(browser, held.site)
    const { ann, ben } = two
    await ann.click(at('call-video'))
    await ann.waitForSelector(`${at('hold')}:disabled`)
    await ben.click(at('accept'))
    await Promise.all([seesPeer(ann), seesPeer(ben)])
    await ann.click(at('hold'))
    await ann.waitForSelector(`${at('hold')}[aria-pressed=true][aria-label="Put on hold"]`)
    await ann.waitForSelector(`${at('on-hold')}:has-text("On hold")`)
    await ben.waitForSelector(`${at('held-by-peer')}:has-text("Ann Lee put you on hold")`)
    await announces(ben, 'Ann Lee put you on hold')
    for (const page of [ann, ben]) {
      await page.waitForSelector('.rw-peer:not([data-seen])')
      for (const chip of ['nothing-sent', 'nothing-arrives', 'no-picture', 'peer-muted', 'own-notice'])
        expect([chip, await page.locator(at(chip)).count()]).toEqual([chip, 0])
      await picture(page, page === ann ? 'on-hold' : 'held')
      expect(await serious(page)).toEqual([])
    }
    await ann.reload()
    await ann.waitForSelector(at('on-hold'))
    await ben.click(at('hold'))
    await ann.waitForSelector(at('held-by-peer'))
    await ann.click(at('hold'))
    await ben.waitForSelector(at('held-by-peer'), { state: 'detached' })
    await ben.click(at('hold'))
    await Promise.all([seesPeer(ann), seesPeer(ben)])
    await announces(ben, 'Connected')
    await ann.click(at('hangup'))
    await phase(ben, 'over')
    await two.close()
  }, 240_000)

  test('a camera that is not allowed is named, before a call and in it, and asked for again', async () => {
    const two = await openTwo(browser, held.site, { query: { preview: '1' } })
    const { ann } = two
    const named = `${at('device-errors')}:has-text("Camera: not allowed")`
    await ann.waitForFunction(() => document.querySelector<HTMLVideoElement>('.rw-preview video')?.videoWidth)
    await ann.waitForFunction(() => (document.querySelector<HTMLMeterElement>('.rw-level')?.value ?? 0) > 0)
    await denyCamera(ann)
    await ann.reload()
    await ann.waitForSelector(named)
    expect(await serious(ann)).toEqual([])
    // Both were refused with one prompt; both are requested again, and the microphone is the one that was chosen.
    await ann.evaluate(() => window.wishes.splice(0))
    const chosen = await ann.getByLabel('Microphone', { exact: true }).locator('option').last().getAttribute('value')
    await ann.getByLabel('Microphone', { exact: true }).selectOption(chosen)
    await ann.waitForFunction(() => window.wishes.length > 0)
    await ann.waitForSelector(named)
    await ann.evaluate(() => localStorage.removeItem('denied'))
    await ann.click(at('retry-devices'))
    await ann.waitForSelector(named, { state: 'detached' })
    await becomes(() => ann.evaluate(() => window.wishes.at(-1)), {
      ...{ audio: { deviceId: { exact: chosen ?? '' } }, video: true },
    })
    await ann.evaluate(() => localStorage.setItem('denied', 'video'))
    await ann.reload()
    await ann.waitForSelector(named)
    await ann.click(at('call-video'))
    await two.ben.click(at('accept'))
    await phase(ann, 'live')
    await ann.waitForSelector(`${at('choose-video')}[data-lacks]`)
    await ann.waitForSelector(`${at('own-notice')}:has-text("seen")`)
    await ann.click(at('choose-video'))
    await ann.waitForSelector(`${at('device-panel')} ${named}`)
    await picture(ann, 'lacking')
    await ann.evaluate(() => localStorage.removeItem('denied'))
    await ann.click(`${at('device-panel')} ${at('retry-devices')}`)
    await ann.waitForSelector(named, { state: 'detached' })
    await seesPeer(two.ben)
    await ann.click(at('hangup'))
    await two.close()
  }, 240_000)

  test('[WAIT1] a second call: held and answered, swapped, loaded again, ended; and one that ends the first', async () => {
    const two = await openTwo(browser, held.site, { query: { busy: 'wait' } })
    const { ann, ben } = two
    await inCall(two)
    const cem = await ann.context().newPage()
    const calls = new URL(ben.url()).searchParams.get('user') ?? ''
    await goOnline(cem, held.site, { user: someone('cem'), role: 'customer', peer: 'agent', calls, name: 'Cem' })
    const callBen = async () => {
      await cem.bringToFront()
      await cem.click(at('call-video'))
      await ben.waitForSelector(`${at('second-call')}:has-text("Cem is calling")`)
    }
    await callBen()
    expect(await ben.locator(at('incoming')).count()).toBe(0)
    await announces(ben, 'Cem is calling')
    await picture(ben, 'second-rings')
    expect(await serious(ben)).toEqual([])
    await ben.click(at('decline-second'))
    await phase(cem, 'over')
    await seesPeer(ben)

    await cem.click(at('dismiss'))
    await callBen()
    await ben.click(at('hold-and-answer'))
    await Promise.all([seesPeer(ben), seesPeer(cem)])
    await talksTo(ben, 'Cem')
    await ann.waitForSelector(at('held-by-peer'))
    await ben.waitForSelector(`${at('second-call')}:has-text("Ann Lee is on hold")`)
    await picture(ben, 'second-on-hold')
    expect(await serious(ben)).toEqual([])
    await ann.bringToFront()
    await ben.click(at('swap'))
    await talksTo(ben, 'Ann Lee')
    await Promise.all([seesPeer(ben), seesPeer(ann)])
    await cem.waitForSelector(at('held-by-peer'))

    await ben.reload()
    await ben.waitForSelector(`${at('second-call')}:has-text("Cem is on hold")`)
    await Promise.all([seesPeer(ben), seesPeer(ann)])
    await ann.click(at('hangup'))
    await cem.bringToFront()
    await talksTo(ben, 'Cem')
    await ben.waitForSelector(at('second-call'), { state: 'detached' })
    await Promise.all([seesPeer(ben), seesPeer(cem)])

    await ann.bringToFront()
    await ann.click(at('dismiss'))
    await ann.click(at('call-audio'))
    await ben.click(at('end-and-answer'))
    await phase(cem, 'over')
    await talksTo(ben, 'Ann Lee')
    await Promise.all([phase(ben, 'live'), phase(ann, 'live')])
    await ann.click(at('hangup'))
    await phase(ben, 'over')
    await two.close()
  }, 240_000)

  test('a reload goes on with the call; one that comes meanwhile is held until this one is over', async () => {
    const two = await openTwo(browser, held.site, { query: { busy: 'hold' } })
    const { ann, ben } = two
    await inCall(two)
    await ben.reload()
    await Promise.all([seesPeer(ben), phase(ben, 'live')])

    const cem = await ann.context().newPage()
    const calls = new URL(ben.url()).searchParams.get('user') ?? ''
    await goOnline(cem, held.site, { user: someone('cem'), role: 'customer', peer: 'agent', calls, name: 'Cem' })
    await cem.click(at('call-audio'))
    await cem.waitForSelector(`${at('call-state')}:has-text("Calling")`)
    expect(await ben.locator(at('incoming')).count()).toBe(0)
    await ann.click(at('hangup'))
    await ben.waitForSelector(`${at('incoming')}:has-text("Cem")`)
    await ben.click(at('accept'))
    await Promise.all([phase(ben, 'live'), phase(cem, 'live')])
    await two.close()
  }, 240_000)
})

describe('on Preact', () => {
  const held = withSite('preact')

  test('a video call: declined, then answered without camera, camera on, hung up', async () => {
    const two = await openTwo(browser, held.site)
    const { ann, ben } = two
    await ann.click(at('call-video'))
    await hasFocus(ben, 'accept')
    await ben.keyboard.press('Escape')
    await phase(ann, 'over')
    await ann.waitForSelector(`${at('ended')}:has-text("declined")`)
    await ann.click(at('dismiss'))

    await ann.click(at('call-video'))
    await ben.click(at('accept-without-camera'))
    await seesPeer(ben)
    await ann.waitForSelector(at('no-picture'))
    await ben.waitForSelector(`${at('camera')}[aria-pressed=true]`)
    await ben.click(at('camera'))
    await seesPeer(ann)
    await ann.click(at('hangup'))
    await Promise.all([phase(ann, 'over'), phase(ben, 'over')])
    await two.close()
  }, 240_000)
})
