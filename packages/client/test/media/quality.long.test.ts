import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createHmac } from 'node:crypto'
import { startTurnServer, type TurnServer } from '@ringwire/testkit/turn'
import { type LossyWay, startLossyWay } from './support/lossy-way.ts'
import { withLoopback } from './support/stage.ts'

/* What Chromium's own statistics say of a way that really loses datagrams: all that the caller sends and gets goes by it. */

const inPage = withLoopback()
let turn: TurnServer
let way: LossyWay

beforeAll(async () => {
  turn = await startTurnServer()
  way = await startLossyWay(Number(/:(\d+)\?/.exec(turn.url)?.[1]))
}, 240_000)

afterAll(async () => {
  way?.stop()
  await turn?.stop()
})

test('a fifth of the datagrams lost is poor at both ends, and good again when none are', async () => {
  const username = `${Math.floor(Date.now() / 1000) + 3600}:caller`
  const credential = createHmac('sha1', turn.secret).update(username).digest('base64')
  await inPage(async (page) => {
    await page.evaluate(
      async ([callers, callees]) => {
        const { createPair, flowing } = window.loopback
        // coturn is only on loopback, and so has to be the address that it relays to.
        const through = (server: RTCIceServer | undefined) => ({
          iceServers: server ? [server] : [],
          configuration: { iceTransportPolicy: 'relay' as const },
        })
        const pair = createPair('video', { outgoing: through(callers), incoming: through(callees) })
        await Promise.all([pair.caller.start(), pair.callee.start()])
        pair.accept()
        await Promise.all([flowing(pair.caller), flowing(pair.callee)])
        Object.assign(window, { pair })
      },
      [`turn:127.0.0.1:${way.port}?transport=udp`, turn.url].map((urls) => ({ urls, username, credential })),
    )
    const both = (quality: string) =>
      page.waitForFunction(
        (quality) => [window.pair.caller, window.pair.callee].every(({ state }) => state.quality === quality),
        quality,
        { timeout: 40_000 },
      )
    await both('good')
    const since = performance.now()
    way.loseEvery(5)
    await both('poor')
    const poorAfterMs = performance.now() - since
    way.loseEvery(0)
    await both('good')
    console.log(`poor ${Math.round(poorAfterMs)} ms after the loss began`)
    expect(await page.evaluate(() => window.pair.errors)).toEqual([])
    await page.evaluate(() => window.pair.close())
  })
}, 240_000)
