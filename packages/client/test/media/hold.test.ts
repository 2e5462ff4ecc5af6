import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { type Phones, startPhones } from './support/phones.ts'
import { withLoopback } from './support/stage.ts'

/* Holds, in real browsers: nothing is sent and nothing is played. */

let phones: Phones
beforeAll(async () => {
  phones = await startPhones()
}, 240_000)
afterAll(() => phones?.stop())

const hold = (page: Page) => page.evaluate(() => window.phone.call?.hold())
const resume = (page: Page) => page.evaluate(() => window.phone.call?.resume())
const untilPeerHolds = (page: Page, held: boolean) =>
  page.waitForFunction((held) => window.phone.call?.peerState.held === held, held)

/** Nothing of the peer's comes in this time, in ms. */
async function expectNothing(page: Page, ms: number): Promise<void> {
  const [before, after] = await page.evaluate(async (ms) => {
    const before = await window.phone.totals()
    await window.phone.pause(ms)
    return [before, await window.phone.totals()]
  }, ms)
  expect([after.audioPackets, after.videoPackets]).toEqual([before.audioPackets, before.videoPackets])
}

const stateOf = (page: Page) =>
  page.evaluate(() => {
    const { media, call } = window.phone
    const { held, slots, remote, local } = media!.state
    return {
      ...{ held, call: call!.held, microphone: slots.audio.name, camera: slots.video.name },
      sends: local.getTracks().length,
      plays: remote.getTracks().some(({ enabled }) => enabled),
      told: call!.peerState.media,
    }
  })

describe('[HOLD1] two phones', () => {
  test('a side that holds sends and plays nothing, its devices stay open, and both go on as before', async () => {
    const { customer, agent, both, connect, expectMedia, close } = await phones.open()
    await connect('video')
    await expectMedia(2, ['audio', 'video'])
    for (const { page } of both) await page.evaluate(() => window.phone.noteConnection())
    await hold(customer.page)
    await untilPeerHolds(agent.page, true)
    // Long enough for a connection that is taken for deaf: it is not replaced.
    await agent.page.waitForFunction(() => window.phone.media?.state.name === 'silent')
    await expectNothing(agent.page, 8_000)
    const sent = await customer.page.evaluate(() => window.phone.bytesSent())
    await customer.page.evaluate(() => window.phone.pause(1_000))
    expect(await customer.page.evaluate(() => window.phone.bytesSent())).toEqual(sent)
    expect(await stateOf(customer.page)).toEqual({
      ...{ held: true, call: true, microphone: 'live', camera: 'live', sends: 0, plays: false },
      told: { audio: true, video: true, screen: false },
    })
    expect(await stateOf(agent.page)).toMatchObject({
      ...{ held: false, call: false, sends: 2, plays: true },
      told: { audio: false, video: false, screen: false },
    })
    for (const { page } of both) expect(await page.evaluate(() => window.phone.isSameConnection())).toBe(true)
    await resume(customer.page)
    await untilPeerHolds(agent.page, false)
    await expectMedia(4, ['audio', 'video'])
    expect(await stateOf(customer.page)).toMatchObject({ held: false, call: false, sends: 2, plays: true })
    for (const { page } of both) expect(await page.evaluate(() => window.phone.isSameConnection())).toBe(true)
    await close()
  }, 240_000)

  test('both hold, one page is loaded again: it holds still; each goes on by itself', async () => {
    const { customer, agent, connect, expectMedia, close } = await phones.open()
    // Not with cameras: both pages share the one of this browser, which stays dark for a page that opens it while all others
    // are on hold.
    await connect('audio')
    await Promise.all([hold(customer.page), hold(agent.page)])
    await Promise.all([untilPeerHolds(customer.page, true), untilPeerHolds(agent.page, true)])
    await customer.page.reload()
    await customer.page.waitForFunction(() => window.phone?.media?.connection?.connectionState === 'connected')
    await untilPeerHolds(customer.page, true)
    await customer.page.waitForFunction(() =>
      Object.values(window.phone.media?.state.slots ?? {}).every(({ name }) => name !== 'opening'),
    )
    expect(await stateOf(customer.page)).toMatchObject({
      ...{ held: true, call: true, microphone: 'live', camera: 'empty', sends: 0 },
    })
    await untilPeerHolds(agent.page, true)
    await agent.page.waitForFunction(() => window.phone.media?.connection?.connectionState === 'connected')
    await Promise.all([expectNothing(customer.page, 2_000), expectNothing(agent.page, 2_000)])
    await resume(customer.page)
    await agent.page.evaluate(() => window.phone.arriving(['audio']))
    expect(await stateOf(agent.page)).toMatchObject({ held: true, plays: false, sends: 0 })
    await resume(agent.page)
    await expectMedia(2, ['audio'])
    await close()
  }, 240_000)
})

describe('[HOLD1] one page with both ends', () => {
  const inPage = withLoopback()

  test('music that the holding side gives is what the peer hears, and only while it holds', async () => {
    await inPage(async (page) => {
      const found = await page.evaluate(async () => {
        const { createPair, flowing, totals, until } = window.loopback
        const context = new AudioContext()
        const tone = context.createOscillator()
        const out = context.createMediaStreamDestination()
        tone.connect(out)
        tone.start()
        const [music] = out.stream.getAudioTracks() as [MediaStreamTrack]
        await context.resume()
        const pair = createPair('audio', { outgoing: { holdMusic: music } })
        await Promise.all([pair.caller.start(), pair.callee.start()])
        // A browser only measures the loudness of what it plays.
        pair.callee.attach(document.createElement('audio'))
        // Nothing sounds but the music.
        await pair.caller.setMuted('audio', true)
        pair.accept()
        await Promise.all([flowing(pair.caller), flowing(pair.callee)])
        const heard = async () => (await totals(pair.callee)).audioEnergy
        const before = await heard()
        await pair.callerCall.hold()
        let now = before
        await until(() => {
          void heard().then((energy) => {
            now = energy
          })
          return now > before + 0.01
        })
        const during = pair.caller.state.local.getTracks()[0] === music
        await pair.callerCall.resume()
        await until(() => pair.caller.state.local.getTracks().every((track) => track !== music))
        pair.close()
        return { errors: pair.errors, quiet: before < 0.01, during, music: music.readyState }
      })
      expect(found).toEqual({ errors: [], quiet: true, during: true, music: 'live' })
    })
  }, 240_000)

  test('a screen that is shared, a camera that is switched, a mute while the call is on hold: sent when it goes on', async () => {
    await inPage(async (page) => {
      const found = await page.evaluate(async () => {
        const { createPair, flowing, until, drawnTrack } = window.loopback
        const pair = createPair('video')
        await Promise.all([pair.caller.start(), pair.callee.start()])
        pair.accept()
        await Promise.all([flowing(pair.caller), flowing(pair.callee)])
        await pair.callerCall.hold()
        const sends = () => pair.caller.state.local.getTracks().map(({ kind }) => kind)
        await until(() => sends().length === 0)
        const screen = drawnTrack(320, 240)
        await pair.caller.shareScreen(screen)
        await pair.caller.setMuted('audio', true)
        await pair.caller.setMuted('audio', false)
        const whileHeld = [...sends(), pair.caller.state.sharing]
        await pair.callerCall.resume()
        await until(() => sends().length === 2)
        const isScreen = pair.caller.state.local.getVideoTracks()[0] === screen
        pair.close()
        return { errors: pair.errors, whileHeld, isScreen }
      })
      expect(found).toEqual({ errors: [], whileHeld: [true], isScreen: true })
    })
  }, 240_000)
})
