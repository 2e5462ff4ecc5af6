import { expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { withLoopback } from './support/stage.ts'

/* Whose track is whose, which of two wishes counts, and when a device is open. */

const inPage = withLoopback()

/** A page that records every track that getUserMedia gave (`opened`) and every request to it (`wishes`). */
async function watchDevices(page: Page): Promise<void> {
  await page.evaluate(() => {
    const { mediaDevices } = navigator
    const open = mediaDevices.getUserMedia.bind(mediaDevices)
    Object.assign(window, { opened: [], wishes: [], before: async () => {} })
    mediaDevices.getUserMedia = async (wish = {}) => {
      window.wishes.push(wish)
      await window.before(wish)
      const stream = await open(wish)
      window.opened.push(...stream.getTracks())
      return stream
    }
  })
}

declare global {
  interface Window {
    opened: MediaStreamTrack[]
    wishes: MediaStreamConstraints[]
    before(wish: MediaStreamConstraints): Promise<void>
  }
}

const run = (work: (page: Page) => Promise<void>) =>
  inPage(async (page) => {
    await watchDevices(page)
    await work(page)
  })

test('a track of the application that ends is lost: no device takes its place, and none of its settings was touched', async () => {
  await run(async (page) => {
    const found = await page.evaluate(async () => {
      const { createPair, flowing, ownStream, until } = window.loopback
      const given = ownStream()
      const [sound, picture] = given.getTracks() as [MediaStreamTrack, MediaStreamTrack]
      const pair = createPair('video', { outgoing: { media: given } })
      const { caller, callee } = pair
      await Promise.all([caller.start(), callee.start({})])
      pair.accept()
      await flowing(callee)
      const before = { slots: caller.state.slots, hint: picture.contentHint }
      await Promise.all([caller.setMuted('audio', true), caller.setMuted('video', true)])
      const muted = [sound.enabled, picture.enabled, sound.readyState, picture.readyState]
      const sent = caller.connection?.getSenders().map(({ track }) => track)
      await Promise.all([caller.setMuted('audio', false), caller.setMuted('video', false)])
      await until(() => callee.state.receiving.video)
      for (const track of [sound, picture]) {
        track.stop()
        track.dispatchEvent(new Event('ended'))
      }
      await until(() => pair.errors.length === 2)
      navigator.mediaDevices.dispatchEvent(new Event('devicechange'))
      await caller.retryDevices()
      await until(() => !callee.state.receiving.video)
      const { slots, errors } = caller.state
      const asked = window.wishes.length
      pair.close()
      return { before, muted, sent, slots, errors, told: pair.errors, asked }
    })
    expect(found).toEqual({
      before: {
        slots: { audio: { name: 'live', own: false }, video: { name: 'live', own: false }, screen: { name: 'empty' } },
        hint: '',
      },
      muted: [true, true, 'live', 'live'],
      sent: [null, null],
      slots: {
        audio: { name: 'lost', code: 'DEVICE_LOST' },
        video: { name: 'lost', code: 'DEVICE_LOST' },
        screen: { name: 'empty' },
      },
      errors: { audio: 'DEVICE_LOST', video: 'DEVICE_LOST' },
      told: [
        'outgoing: The audio track that was given ended (undefined)',
        'outgoing: The video track that was given ended (undefined)',
      ],
      asked: 0,
    })
  })
}, 240_000)

test('a camera that is off is closed, and the chosen one is opened again as it was asked for', async () => {
  await run(async (page) => {
    const found = await page.evaluate(async () => {
      const { createPair, flowing, until } = window.loopback
      const pair = createPair('video')
      const { caller, callee } = pair
      const cameras = (await navigator.mediaDevices.enumerateDevices()).filter(({ kind }) => kind === 'videoinput')
      await Promise.all([caller.start({ audio: true, video: { width: 320, height: 240 } }), callee.start({})])
      pair.accept()
      await flowing(callee)
      const deviceId = cameras.at(-1)?.deviceId ?? ''
      await caller.switchDevice('video', deviceId)
      await until(() => callee.state.receiving.video)
      const lit = () => window.opened.filter(({ kind, readyState }) => kind === 'video' && readyState === 'live').length
      const on = [lit(), caller.state.slots.video.name]
      await caller.setMuted('video', true)
      const off = [lit(), caller.state.slots.video.name, caller.state.local.getVideoTracks().length]
      await until(() => !callee.state.receiving.video)
      // Another one that is chosen while the camera is off is not opened either.
      await caller.switchDevice('video', deviceId)
      off.push(lit())
      await caller.setMuted('video', false)
      await until(() => callee.state.receiving.video)
      const { width, deviceId: again } = caller.state.local.getVideoTracks()[0]?.getSettings() ?? {}
      const result = { on, off, again: [lit(), width, again === deviceId], errors: pair.errors }
      pair.close()
      return { ...result, end: lit() }
    })
    expect(found).toEqual({
      ...{ on: [1, 'live'], off: [0, 'empty', 0, 0], again: [1, 320, true], errors: [], end: 0 },
    })
  })
}, 240_000)

test('a camera that is off when media starts, or that is switched off while it opens, is not left open', async () => {
  await run(async (page) => {
    const found = await page.evaluate(async () => {
      const { createPair } = window.loopback
      const pair = createPair('video')
      const { caller, callee } = pair
      await caller.setMuted('video', true)
      await caller.start({ audio: true, video: true })
      const asked = JSON.stringify(window.wishes)
      let release = () => {}
      window.before = () => new Promise((resolve) => (release = resolve))
      const started = callee.start({ video: true })
      await window.loopback.until(() => window.wishes.length === 2)
      const opening = callee.state.slots.video.name
      await callee.setMuted('video', true)
      release()
      await started
      const open = window.opened.filter(({ readyState }) => readyState === 'live').map(({ kind }) => kind)
      const after = callee.state.slots.video.name
      pair.close()
      return { asked, opening, open, after }
    })
    expect(found).toEqual({ asked: '[{"audio":true}]', opening: 'opening', open: ['audio'], after: 'empty' })
  })
}, 240_000)

test('another device keeps the size and the echo cancellation that were asked for', async () => {
  await run(async (page) => {
    const wishes = await page.evaluate(async () => {
      const { caller, close } = window.loopback.createPair('video')
      await caller.start({ audio: { echoCancellation: false }, video: { width: 320, facingMode: 'user' } })
      await caller.switchDevice('audio', 'default')
      await caller.switchDevice('video', { facingMode: 'environment' })
      close()
      return window.wishes.slice(1)
    })
    expect(wishes).toEqual([
      { audio: { echoCancellation: false, deviceId: { exact: 'default' } } },
      { video: { width: 320, facingMode: 'environment' } },
    ])
  })
}, 240_000)

test('of two switches the newer one counts, in whatever order they come', async () => {
  await run(async (page) => {
    const found = await page.evaluate(async () => {
      const { caller, close } = window.loopback.createPair('video')
      await caller.start({ video: { width: 320 } })
      const gates: (() => void)[] = []
      window.before = () => new Promise((resolve) => void gates.push(resolve))
      const older = caller.switchDevice('video', { width: 640 })
      const newer = caller.switchDevice('video', { width: 160 })
      await window.loopback.until(() => gates.length === 2)
      gates[1]?.()
      await newer
      gates[0]?.()
      await older
      const width = caller.state.local.getVideoTracks()[0]?.getSettings().width
      const live = window.opened.filter(({ readyState }) => readyState === 'live').length
      const slot = caller.state.slots.video.name
      close()
      return { width, live, slot }
    })
    expect(found).toEqual({ width: 160, live: 1, slot: 'live' })
  })
}, 240_000)

test('a phone with one camera at a time: the old one makes way, and comes back if the new one cannot be had', async () => {
  await run(async (page) => {
    const found = await page.evaluate(async () => {
      const { createPair, flowing, until } = window.loopback
      const pair = createPair('video')
      const { caller, callee } = pair
      await Promise.all([caller.start({ audio: true, video: { width: 320 } }), callee.start({})])
      pair.accept()
      await flowing(callee)
      let isBroken = false
      window.before = async ({ video }) => {
        const isOpen = window.opened.some(({ kind, readyState }) => kind === 'video' && readyState === 'live')
        const isOther = typeof video === 'object' && video.width === 640
        if (isOpen || (isBroken && isOther)) throw new DOMException('', 'NotReadableError')
      }
      const width = () => caller.state.local.getVideoTracks()[0]?.getSettings().width
      const live = () => window.opened.filter((it) => it.kind === 'video' && it.readyState === 'live').length
      await caller.switchDevice('video', { width: 640 })
      const first = [width(), live()]
      await caller.switchDevice('video', { width: 320 })
      isBroken = true
      const code = await caller.switchDevice('video', { width: 640 }).catch((error) => error.code)
      const back = [width(), live(), caller.state.slots.video.name]
      await until(() => callee.state.receiving.video)
      const errors = [...pair.errors, ...Object.keys(caller.state.errors)]
      pair.close()
      return { first, code, back, errors }
    })
    expect(found).toEqual({ first: [640, 1], code: 'IN_USE', back: [320, 1, 'live'], errors: [] })
  })
}, 240_000)

test('a screen whose picker is still open is not shared after stopScreen()', async () => {
  await run(async (page) => {
    const found = await page.evaluate(async () => {
      const { createPair, drawnTrack } = window.loopback
      const { caller, close } = createPair('video')
      await caller.start({ audio: true })
      const screen = drawnTrack(640, 360)
      let pick = () => {}
      navigator.mediaDevices.getDisplayMedia = () =>
        new Promise((resolve) => {
          pick = () => resolve(new MediaStream([screen]))
        })
      const shared = caller.shareScreen()
      const opening = caller.state.slots.screen.name
      await caller.stopScreen()
      pick()
      await shared
      const result = [opening, caller.state.slots.screen.name, caller.state.sharing, screen.readyState]
      close()
      return result
    })
    expect(found).toEqual(['opening', 'empty', false, 'ended'])
  })
}, 240_000)

test('start() with the same wish while the devices open, or later, opens nothing twice', async () => {
  await run(async (page) => {
    const found = await page.evaluate(async () => {
      const { caller, close } = window.loopback.createPair('video')
      const wish = () => ({ audio: true, video: { width: 320 } })
      await Promise.all([caller.start(wish()), caller.start(wish())])
      await caller.start(wish())
      const asked = window.wishes.length
      await caller.start({ audio: true, video: { width: 640 } })
      close()
      return [asked, window.wishes.length]
    })
    expect(found).toEqual([1, 2])
  })
}, 240_000)
