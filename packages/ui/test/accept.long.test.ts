import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import type { CallMediaOptions, createCallMedia, MediaError } from '@ringwire/client/media'
import type { Call, CallClient } from '@ringwire/client/types'
import { openBrowser } from '@ringwire/testkit/browser'
import { TcpProxy } from '@ringwire/testkit/tcp-proxy'
import type { Browser, Page } from 'playwright-core'
import { at, openTwo, phase, seesPeer } from './support/people.ts'
import { bundlePage, openSite, type Site } from './support/site.ts'

/* Accept is pressed where the service does not hear it, or refuses it, and pressed once more. */

declare global {
  interface Window {
    client: CallClient
    createCallMedia: typeof createCallMedia
    mediaOptions: CallMediaOptions
    /** All that were made, those that are closed too. */
    connections: RTCPeerConnection[]
    /** The constraints given to getUserMedia. */
    asked: MediaStreamConstraints[]
  }
}

let browser: Browser
let site: Site
/** Ben's way to the service, and to the server of his page. */
let networks: TcpProxy[] = []

beforeAll(async () => {
  const page = join(import.meta.dir, 'page', 'phone.tsx')
  ;[browser, site] = await Promise.all([openBrowser(), bundlePage(page).then(openSite)])
  networks = await Promise.all([new TcpProxy(site.service.url).start(), new TcpProxy(site.url).start()])
}, 240_000)
afterEach(() => {
  for (const network of networks) network.mend()
})
afterAll(async () => {
  await browser?.close()
  await Promise.all(networks.map((network) => network.stop()))
  await site?.close()
})

/** Notes each connection that the page makes, and each time that it asks for devices. */
function watch(): void {
  const { mediaDevices } = navigator
  const { RTCPeerConnection } = window
  const open = mediaDevices.getUserMedia.bind(mediaDevices)
  Object.assign(window, { connections: [], asked: [] })
  window.RTCPeerConnection = class extends RTCPeerConnection {
    constructor(configuration?: RTCConfiguration) {
      super(configuration)
      window.connections.push(this)
    }
  }
  mediaDevices.getUserMedia = (wish = {}) => {
    window.asked.push(wish)
    return open(wish)
  }
}

/** Ann's call rings at Ben's, who reaches the world through `networks`. */
async function ringing() {
  const [toService, toSite] = networks as [TcpProxy, TcpProxy]
  const two = await openTwo(browser, site, { ben: { url: `${toSite.url}/`, query: { ws: toService.wsUrl } } })
  await Promise.all([two.ann.evaluate(watch), two.ben.evaluate(watch)])
  await two.ann.click(at('call-video'))
  await two.ben.waitForSelector(at('incoming'))
  return two
}

/** The only connection of the page that is not closed carries more sound and more pictures from look to look. */
async function hearsAndSees(page: Page): Promise<void> {
  await page.evaluate(async () => {
    const [connection, ...others] = window.connections.filter(({ signalingState }) => signalingState !== 'closed')
    if (!connection || others.length > 0) throw new Error(`${others.length + 1} of them are open`)
    const look = async () => {
      const now = { bytes: 0, frames: 0 }
      for (const [, stats] of await connection.getStats()) {
        if (stats.type !== 'inbound-rtp') continue
        if (stats.kind === 'audio') now.bytes += stats.bytesReceived
        else now.frames += stats.framesDecoded
      }
      return now
    }
    for (let round = 0; round < 3; round++) {
      const before = await look()
      for (let now = before; now.bytes <= before.bytes || now.frames <= before.frames; now = await look())
        await new Promise((resolve) => setTimeout(resolve, 50))
    }
  })
}

/** The call goes both ways, over one connection, and each device was opened once. */
async function goesBothWays({ ann, ben }: { ann: Page; ben: Page }): Promise<void> {
  for (const page of [ann, ben]) {
    await phase(page, 'live')
    await seesPeer(page)
    await page.waitForFunction(() => window.client.calls[0]?.state.name === 'connected')
    await hearsAndSees(page)
    const asked = await page.evaluate(() => window.asked)
    expect(asked.map((wish) => Object.keys(wish))).toEqual([['audio', 'video']])
  }
}

for (const arrives of ['late', 'never'] as const) {
  test(`Accept on a dead network, and again after its time: one connection, and what was said arrives ${arrives}`, async () => {
    const two = await ringing()
    const { ann, ben } = two
    for (const network of networks) {
      if (arrives === 'never') network.silence()
      network.stall()
    }
    await ben.click(at('accept'))
    const code = await ben.evaluate(() => window.client.calls[0]?.accept().catch((error) => error.code))
    expect(code).toBe('TIMEOUT')
    // A client that has accepted stays so: only a reply brings the dialog back, no timer.
    await phase(ben, 'connecting')
    expect(await ben.locator(at('incoming')).count()).toBe(0)
    // A page with a dialog of its own takes the time-out for an end: it makes its media again, and accepts again.
    const again = await ben.evaluateHandle(() => {
      const { client, createCallMedia, mediaOptions } = window
      const [call] = client.calls as [Call]
      const accepted = Promise.all([createCallMedia(call, mediaOptions).resume(), call.accept()])
      try {
        createCallMedia(call, { earlyOffer: false })
      } catch (error) {
        return { accepted, code: (error as MediaError).code }
      }
      return { accepted, code: undefined }
    })
    expect(await again.evaluate((it) => it.code)).toBe('ALREADY_EXISTS')
    for (const network of networks) network.mend()
    await again.evaluate(({ accepted }) => accepted)
    await goesBothWays(two)
    await ann.click(at('hangup'))
    await Promise.all([phase(ann, 'over'), phase(ben, 'over')])
    await two.close()
  }, 240_000)
}

test('Accept that is refused brings the dialog back, and nothing stays open behind it; the next Accept connects', async () => {
  const two = await ringing()
  const { ann, ben } = two
  await ben.evaluate(() => {
    const { send } = WebSocket.prototype
    WebSocket.prototype.send = function (text) {
      const message = JSON.parse(String(text))
      if (message.event !== 'call.accept') return send.call(this, text)
      WebSocket.prototype.send = send
      send.call(this, JSON.stringify({ ...message, data: { call_uuid: 5 } }))
    }
  })
  await ben.click(at('accept'))
  await ben.waitForFunction(() => window.connections.length > 0)
  await ben.waitForSelector(at('incoming'))
  await ben.waitForFunction(() => window.connections.every(({ signalingState }) => signalingState === 'closed'))
  await ben.evaluate(() => window.asked.splice(0))
  await ben.click(at('accept'))
  await goesBothWays(two)
  await ann.click(at('hangup'))
  await two.close()
}, 240_000)
