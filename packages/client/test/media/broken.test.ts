import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { launchBrowser } from '../../../../scripts/browser.mjs'
import { withLoopback } from './support/stage.ts'

/*
 * Devices that are in use, unplugged, denied and allowed again. The camera of this browser is a file: one that is empty is
 * unplugged. Which file is a camera that another program has is a race in this Chromium: here the page says so, as browsers do.
 */

const directory = mkdtempSync(join(tmpdir(), 'ringwire-camera-'))
const file = join(directory, 'camera.y4m')
const head = 'YUV4MPEG2 W320 H240 F10:1 Ip A0:0 C420\n'
const pictures = Array.from({ length: 2 }, (_, i) => [
  Buffer.from('FRAME\n'),
  Buffer.alloc((320 * 240 * 3) / 2, 60 + 90 * i),
])

const camera = {
  plug: () => writeFileSync(file, Buffer.concat([Buffer.from(head), ...pictures.flat()])),
  unplug: () => writeFileSync(file, ''),
}

const inPage = withLoopback(() => launchBrowser(`--use-file-for-fake-video-capture=${file}`))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

/** A video call whose callee has no device, so that all that happens to devices happens to the caller. */
async function openCall(page: Page): Promise<string> {
  return page.evaluate(async () => {
    const { createPair, ownStream, flowing } = window.loopback
    const quick = { statsIntervalMs: 250 }
    const pair = createPair('video', { outgoing: quick, incoming: { ...quick, media: ownStream() } })
    Object.assign(window, { pair })
    const started = pair.caller.start().then(
      () => 'all',
      ({ code }) => code as string,
    )
    await pair.callee.start()
    pair.accept()
    await Promise.all([flowing(pair.caller), flowing(pair.callee)])
    return started
  })
}

/** What the caller lacks, when it lacks this. */
async function lacks(page: Page, errors: object): Promise<void> {
  const wanted = JSON.stringify(errors)
  const read = () => page.evaluate(() => JSON.stringify([window.pair.caller.state.errors, window.pair.errors]))
  await page
    .waitForFunction((wanted) => JSON.stringify(window.pair.caller.state.errors) === wanted, wanted)
    .catch(async (error) => {
      throw new Error(`lacks ${await read()}, not ${wanted}`, { cause: error })
    })
}

const arrives = (page: Page, kind: 'audio' | 'video') =>
  page.waitForFunction((kind) => window.pair.callee.state.receiving[kind], kind)

const errorsOf = (page: Page) => page.evaluate(() => window.pair.errors.splice(0).map((it) => it.split(' (')[0]))

test('a camera that another program has, then one that is unplugged in the call', async () => {
  camera.plug()
  await inPage(async (page) => {
    await page.context().grantPermissions(['camera', 'microphone'])
    await page.evaluate(() => {
      const { mediaDevices } = navigator
      const open = mediaDevices.getUserMedia.bind(mediaDevices)
      Object.assign(window, { isTaken: true })
      mediaDevices.getUserMedia = async (wish) => {
        if (wish?.video && (window as unknown as { isTaken: boolean }).isTaken)
          throw new DOMException('Could not start video source', 'NotReadableError')
        return open(wish)
      }
    })
    expect(await openCall(page)).toBe('IN_USE')
    await lacks(page, { video: 'IN_USE' })
    // A person without a camera still has sound.
    await arrives(page, 'audio')
    const retry = () =>
      page.evaluate(() =>
        window.pair.caller.retryDevices().then(
          () => 'all',
          ({ code }) => code as string,
        ),
      )
    expect(await retry()).toBe('IN_USE')
    await page.evaluate(() => Object.assign(window, { isTaken: false }))
    expect(await retry()).toBe('all')
    await lacks(page, {})
    await arrives(page, 'video')
    expect(await errorsOf(page)).toEqual([])

    camera.unplug()
    await lacks(page, { video: 'DEVICE_LOST' })
    expect(await errorsOf(page)).toEqual(['outgoing: The video device ended, and no other could be opened'])
    await page.waitForFunction(() => !window.pair.callee.state.receiving.video)
    expect(await page.evaluate(() => window.pair.callee.state.name)).toBe('flowing')
    camera.plug()
    // This Chromium does not watch the file, and may not have let go of it yet; a webcam tells of its camera and of its microphone.
    await page.evaluate(() => {
      const tell = () => navigator.mediaDevices.dispatchEvent(new Event('devicechange'))
      tell()
      setTimeout(tell, 1_000)
    })
    await lacks(page, {})
    await arrives(page, 'video')
    expect(await page.evaluate(() => window.pair.caller.state.local.getTracks().map((it) => it.readyState))).toEqual([
      'live',
      'live',
    ])
    await page.evaluate(() => window.pair.close())
  })
}, 240_000)

/** This Chromium has no prompts and opens every device. Here it asks its own permissions first, as with them. */
async function heedPermissions(page: Page): Promise<void> {
  await page.evaluate(() => {
    const { mediaDevices, permissions } = navigator
    const open = mediaDevices.getUserMedia.bind(mediaDevices)
    mediaDevices.getUserMedia = async (wish = {}) => {
      const names = [wish.audio && 'microphone', wish.video && 'camera'].filter(Boolean) as PermissionName[]
      const states = await Promise.all(names.map(async (name) => (await permissions.query({ name })).state))
      if (states.some((state) => state !== 'granted')) throw new DOMException('', 'NotAllowedError')
      return open(wish)
    }
  })
}

/**
 * Takes the permissions away, as a person does in the settings of the page. Chromium ends the tracks of a device that is
 * denied. The denial lasts as long as the session of DevTools does, so it stays open with the page.
 */
async function forbidDevices(page: Page): Promise<void> {
  const session = await page.context().newCDPSession(page)
  const { targetInfo } = await session.send('Target.getTargetInfo')
  const { browserContextId } = targetInfo
  for (const name of ['microphone', 'camera']) {
    await session.send('Browser.setPermission', {
      permission: { name },
      setting: 'denied',
      ...(browserContextId === undefined ? {} : { browserContextId }),
    })
  }
}

test('a camera that is denied and allowed later; both taken away in the call, and given back', async () => {
  camera.plug()
  await inPage(async (page) => {
    const context = page.context()
    await context.grantPermissions(['microphone'])
    await heedPermissions(page)
    expect(await openCall(page)).toBe('NOT_ALLOWED')
    await lacks(page, { video: 'NOT_ALLOWED' })
    await arrives(page, 'audio')
    await context.grantPermissions(['microphone', 'camera'])
    await lacks(page, {})
    await arrives(page, 'video')
    expect(await errorsOf(page)).toEqual([])

    await forbidDevices(page)
    await page.waitForFunction(() => Object.keys(window.pair.caller.state.errors).length === 2)
    expect(await page.evaluate(() => window.pair.caller.state.errors)).toEqual({
      audio: 'NOT_ALLOWED',
      video: 'NOT_ALLOWED',
    })
    expect((await errorsOf(page)).length).toBe(2)
    // A user who switches off a camera that cannot be opened does not want it back.
    await page.evaluate(() => window.pair.caller.setMuted('video', true))
    await lacks(page, { audio: 'NOT_ALLOWED' })
    // Connected, and nothing comes.
    await page.waitForFunction(() => window.pair.callee.state.name === 'silent')
    expect(await page.evaluate(() => window.pair.callee.connection?.connectionState)).toBe('connected')
    await context.grantPermissions(['microphone', 'camera'])
    await lacks(page, {})
    await page.waitForFunction(() => window.pair.callee.state.name === 'flowing')
    const found = await page.evaluate(async () => {
      const { caller, callee } = window.pair
      await window.loopback.measureFlow(callee, 2)
      return { muted: caller.state.muted, receiving: callee.state.receiving }
    })
    // A device that was off before stays off.
    expect(found).toEqual({ muted: { audio: false, video: true }, receiving: { audio: true, video: false } })
    await page.evaluate(() => window.pair.close())
  })
}, 240_000)

test('nobody has a device: connected and silent, until somebody has one; the quality is told when it is known', async () => {
  camera.plug()
  await inPage(async (page) => {
    const found = await page.evaluate(async () => {
      const { createPair, flowing, until } = window.loopback
      const quick = { statsIntervalMs: 250 }
      const pair = createPair('video', { outgoing: { ...quick, media: {} }, incoming: { ...quick, media: {} } })
      const { caller, callee } = pair
      await Promise.all([caller.start(), callee.start()])
      pair.accept()
      await until(() => caller.state.name === 'silent' && callee.state.name === 'silent')
      const unknown = caller.state.quality
      const told: string[] = []
      callee.on('quality', (quality) => told.push(quality))
      await caller.start({ audio: true, video: true })
      await flowing(callee)
      await until(() => told.length > 0)
      const reported = [pair.callerCall.reported, pair.calleeCall.reported]
      const { name, quality } = callee.state
      pair.close()
      return { unknown, told, name, quality, closed: callee.state.quality, reported, errors: pair.errors }
    })
    expect(found).toEqual({
      ...{ unknown: 'unknown', told: ['good'], name: 'flowing', quality: 'good', closed: 'unknown' },
      // Only who hears something says that it is connected.
      ...{ reported: [0, 1], errors: [] },
    })
  })
}, 240_000)
