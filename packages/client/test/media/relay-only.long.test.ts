// Two people of a product that only lets media through its TURN server: real browsers, real coturn [PRIV1].
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { startTurnServer, type TurnServer } from '@ringwire/testkit/turn'
import type { Page } from 'playwright-core'
import { setProduct } from '../../../server/test/support/products.ts'
import { type Phones, startPhones } from './support/phones.ts'

let turn: TurnServer
let phones: Phones

beforeAll(async () => {
  turn = await startTurnServer()
  phones = await startPhones({ RINGWIRE_TURN_URLS: turn.url, RINGWIRE_TURN_SECRET: turn.secret })
  await setProduct(phones.service, 'shop', '--media', 'relay')
  // The service has heard of it; the test's time is the patience.
  while ((await phones.service.issue({ user_id: 'ann' })).ice_transport_policy !== 'relay');
}, 240_000)

afterAll(async () => {
  await phones?.stop()
  await turn?.stop()
})

/** What a page sent and heard about media, as texts. */
async function watched(page: Page) {
  const [sent, heard] = [[] as string[], [] as string[]]
  const note = (texts: string[]) => (frame: { payload: string | Buffer }) => {
    if (String(frame.payload).includes('webrtc.')) texts.push(String(frame.payload))
  }
  page.on('websocket', (socket) => {
    socket.on('framesent', note(sent))
    socket.on('framereceived', note(heard))
  })
  await page.reload()
  await page.waitForFunction(() => window.phone?.client.state.name === 'online')
  return { sent, heard }
}

const typesOf = (texts: string[]) => [
  ...new Set(texts.flatMap((text) => [...text.matchAll(/ typ (\w+)/g)].map(([, type]) => type))),
]
const relatedOf = (texts: string[]) => [
  ...new Set(texts.flatMap((text) => [...text.matchAll(/ raddr (\S+)/g)].map(([, address]) => address))),
]

for (const [who, query, gathersAll] of [
  ['the SDK gathers relayed candidates alone', '', false],
  ['a browser that gathers all is heard with its relayed ones alone', 'unaware=1', true],
] as const) {
  test(`[PRIV1] ${who}: media flows, and neither peer hears an address of the other`, async () => {
    const { both, connect, expectMedia, close } = await phones.open(query)
    const [a, b] = [await watched(both[0]!.page), await watched(both[1]!.page)]
    await connect('video')
    await expectMedia(2, ['audio', 'video'])
    for (const side of [a, b]) {
      expect(typesOf(side.sent)).toContain('relay')
      expect(typesOf(side.sent).includes('host')).toBe(gathersAll)
      expect(typesOf(side.heard)).toEqual(['relay'])
      expect(relatedOf(side.heard)).toEqual(['0.0.0.0'])
      // The addresses in a description next to its candidates: where media comes from, and who made it.
      const named = side.heard.flatMap((text) => [...text.matchAll(/ IN IP[46] ([^\s\\]+)/g)].map(([, it]) => it ?? ''))
      expect(named.filter((address) => !['0.0.0.0', '127.0.0.1'].includes(address))).toEqual([])
    }
    await close()
  }, 240_000)
}
