import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { relaySender } from '@ringwire/protocol/relay-text'
import { readUsualCandidate } from '@ringwire/protocol/usual-candidate'
import { type Firefox, openFirefox } from '@ringwire/testkit/firefox'
import { startTurnServer, type TurnServer } from '@ringwire/testkit/turn'
import { type AnyBrowserPage, openInFirefox } from './support/firefox-phones.ts'
import { openPhone, type PhoneOf, pairOf } from './support/people.ts'
import { type Phones, startPhones } from './support/phones.ts'

/* The Firefox that people have, with itself and with Chromium. The real service, real connections. */

type Browsers = 'Chromium' | 'Firefox'
const pairings: readonly [caller: Browsers, callee: Browsers][] = [
  ['Firefox', 'Chromium'],
  ['Chromium', 'Firefox'],
  ['Firefox', 'Firefox'],
]

let turn: TurnServer
let phones: Phones
let firefox: Firefox

beforeAll(async () => {
  turn = await startTurnServer()
  ;[phones, firefox] = await Promise.all([
    startPhones({ RINGWIRE_TURN_URLS: turn.url, RINGWIRE_TURN_SECRET: turn.secret }),
    openFirefox(),
  ])
}, 240_000)

afterAll(async () => {
  await firefox?.close()
  await phones?.stop()
  await turn?.stop()
})

function open(browser: Browsers, role: 'customer' | 'agent', query: string): Promise<PhoneOf<AnyBrowserPage>> {
  return browser === 'Firefox'
    ? openInFirefox(firefox, phones.url, role, query)
    : openPhone(phones.browser, phones.url, role, query)
}

async function openPair([caller, callee]: (typeof pairings)[number], query = '') {
  const [customer, agent] = await Promise.all([open(caller, 'customer', query), open(callee, 'agent', query)])
  return pairOf(customer, agent)
}

test.each(['Chromium', 'Firefox'] as const)(
  '[REL4] the service reads a candidate of %s by one pattern',
  async (browser) => {
    const { page, close } = await open(browser, 'customer', '')
    const candidate = await page.evaluate(() => {
      const connection = new RTCPeerConnection()
      connection.createDataChannel('any')
      return new Promise<RTCIceCandidateInit>((resolve) => {
        connection.onicecandidate = ({ candidate }) => candidate?.candidate && resolve(candidate.toJSON())
        void connection.setLocalDescription()
      })
    })
    const data = { call_uuid: crypto.randomUUID(), candidate }
    const text = JSON.stringify({ event: 'webrtc.ice_candidate', request_id: '7', data })
    expect(readUsualCandidate(text, relaySender('ann', 'customer'))).toBeDefined()
    await close()
  },
  240_000,
)

for (const pairing of pairings) {
  describe(`${pairing[0]} calls ${pairing[1]}`, () => {
    test('both hear and see each other, and the end closes both', async () => {
      const { customer, agent, both, connect, expectMedia, close } = await openPair(pairing)
      await connect('video')
      await expectMedia(3, ['audio', 'video'])
      for (const { page } of both) await page.waitForFunction(() => window.phone.call?.state.name === 'connected')
      await customer.page.evaluate(() => window.phone.call?.end())
      await agent.page.waitForFunction(() => window.phone.media?.state.name === 'closed')
      await close()
    }, 240_000)

    test('[SAS1] both see the same security code, which an ICE restart keeps and a reload changes', async () => {
      const { customer, agent, both, connect, close } = await openPair(pairing)
      await connect('video')
      const codes = async () => {
        for (const { page } of both) await page.waitForFunction(() => window.phone.media?.securityCode !== undefined)
        return Promise.all(both.map(({ page }) => page.evaluate(() => window.phone.media?.securityCode)))
      }
      const [mine, theirs] = await codes()
      expect(mine).toMatch(/^\d{5}( \d{5}){11}$/)
      expect(theirs).toBe(mine!)
      for (const { page } of both) await page.evaluate(() => window.phone.noteRestart())
      await customer.page.evaluate(() => window.phone.media?.restart())
      for (const { page } of both) await page.evaluate(() => window.phone.restarted())
      expect(await codes()).toEqual([mine, mine])
      await agent.page.reload()
      await agent.page.waitForFunction(() => window.phone?.media !== undefined)
      for (const { page } of both) await page.evaluate(() => window.phone.flowing())
      const [again, theirsAgain] = await codes()
      expect(again).not.toBe(mine!)
      expect(theirsAgain).toBe(again!)
      await close(/ICE failed/)
    }, 240_000)

    test('[MEDIA1] each side mutes its camera and microphone, and the other one is told', async () => {
      const { customer, agent, connect, expectMedia, close } = await openPair(pairing)
      await connect('video')
      for (const [muted, other] of [
        [customer, agent],
        [agent, customer],
      ] as const) {
        await expectMedia(1, ['audio', 'video'])
        await muted.page.evaluate(() => window.phone.media?.setMuted('video', true))
        await muted.page.evaluate(() => window.phone.media?.setMuted('audio', true))
        await other.page.waitForFunction(() => {
          const { audio, video } = window.phone.call?.peerState.media ?? { audio: true, video: true }
          return !audio && !video
        })
        await other.page.waitForFunction(() => window.phone.media?.state.receiving.video === false)
        await muted.page.evaluate(() => window.phone.media?.setMuted('video', false))
        await muted.page.evaluate(() => window.phone.media?.setMuted('audio', false))
      }
      await expectMedia(2, ['audio', 'video'])
      await close()
    }, 240_000)

    test('[HOLD1] each side puts the call on hold: no packet of it arrives meanwhile, and its media comes back', async () => {
      const { customer, agent, connect, expectMedia, close } = await openPair(pairing)
      await connect('video')
      for (const [holding, other] of [
        [customer, agent],
        [agent, customer],
      ] as const) {
        await expectMedia(1, ['audio', 'video'])
        await holding.page.evaluate(() => window.phone.call?.hold())
        await other.page.waitForFunction(() => window.phone.call?.peerState.held === true)
        // The packets that were on their way have come.
        await other.page.waitForFunction(() => window.phone.media?.state.name === 'silent')
        const [before, after] = await other.page.evaluate(async () => {
          const before = await window.phone.totals()
          await window.phone.pause(3_000)
          return [before, await window.phone.totals()]
        })
        expect([after.audioPackets, after.videoPackets]).toEqual([before.audioPackets, before.videoPackets])
        expect(await holding.page.evaluate(() => window.phone.media?.state.slots.audio.name)).toBe('live')
        await holding.page.evaluate(() => window.phone.call?.resume())
        await other.page.waitForFunction(() => window.phone.call?.peerState.held === false)
      }
      await expectMedia(3, ['audio', 'video'])
      await close()
    }, 240_000)

    test('each side shares its screen in place of its camera, and stops', async () => {
      const { customer, agent, connect, expectMedia, close } = await openPair(pairing)
      await connect('video')
      await expectMedia(1, ['audio', 'video'])
      for (const [sharing, other] of [
        [customer, agent],
        [agent, customer],
      ] as const) {
        const width = async () => (await other.page.evaluate(() => window.phone.totals())).width
        const camera = await width()
        await sharing.page.click('#share')
        await other.page.waitForFunction(() => window.phone.call?.peerState.media?.screen === true)
        await expectMedia(2, ['audio', 'video'])
        expect(camera).toBeGreaterThan(0)
        await sharing.page.evaluate(() => window.phone.media?.stopScreen())
        await other.page.waitForFunction(() => window.phone.call?.peerState.media?.screen === false)
        await expectMedia(2, ['audio', 'video'])
      }
      await close()
    }, 240_000)

    for (const side of ['caller', 'callee'] as const) {
      test(`[PLACE2] the page of the ${side} is loaded again in mid-call: media is back`, async () => {
        const { customer, agent, both, connect, expectMedia, close } = await openPair(pairing)
        await connect('video')
        const { page } = side === 'caller' ? customer : agent
        const uuid = await page.evaluate(() => window.phone.call?.callUuid)
        await page.reload()
        await page.waitForFunction(() => window.phone?.media !== undefined)
        for (const { page } of both) await page.evaluate(() => window.phone.flowing())
        expect(await page.evaluate(() => window.phone.call?.callUuid)).toBe(uuid)
        await expectMedia(2, ['audio', 'video'])
        await close()
      }, 240_000)

      test(`the ${side} restarts ICE: both get new credentials on the same connection, and media goes on or comes back`, async () => {
        const { customer, agent, both, connect, expectMediaAtLast, close } = await openPair(pairing)
        await connect('video')
        const { page } = side === 'caller' ? customer : agent
        for (const { page } of both) {
          await page.evaluate(() => {
            window.phone.noteRestart()
            window.phone.noteConnection()
          })
        }
        await page.evaluate(() => window.phone.media?.restart())
        for (const { page } of both) await page.evaluate(() => window.phone.restarted())
        for (const { page } of both) expect(await page.evaluate(() => window.phone.isSameConnection())).toBe(true)
        // Now and then the two hold different pairs for the right one: then a new connection brings media back.
        await expectMediaAtLast(3, ['audio', 'video'])
        await close(/ICE failed/)
      }, 240_000)
    }

    test('the path is gone: ICE is restarted, and media comes back', async () => {
      const { both, connect, expectMedia, expectMediaAtLast, close } = await openPair(pairing, 'relay=1')
      await connect('audio')
      await expectMedia(2, ['audio'])
      for (const { page } of both) await page.evaluate(() => window.phone.noteRestart())
      await turn.restart()
      for (const { page } of both) await page.evaluate(() => window.phone.restarted())
      for (const { page } of both) await page.evaluate(() => window.phone.flowing())
      await expectMediaAtLast(3, ['audio'])
      // It was gone, and Firefox says so where that takes long.
      await close(/ICE failed/)
    }, 240_000)
  })
}
