import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { CallQuality } from '@ringwire/protocol/backend'
import { isLong } from '@ringwire/testkit/long'
import { soon } from '@ringwire/testkit/patience'
import { productKey } from '@ringwire/testkit/service'
import { startTurnServer, type TurnServer } from '@ringwire/testkit/turn'
import type { Page } from 'playwright-core'
import { online } from './support/people.ts'
import { type Phones, startPhones } from './support/phones.ts'

/* Two browser contexts, the real service, real connections. */

let turn: TurnServer
let phones: Phones

beforeAll(async () => {
  turn = await startTurnServer()
  phones = await startPhones({ RINGWIRE_TURN_URLS: turn.url, RINGWIRE_TURN_SECRET: turn.secret })
}, 240_000)

afterAll(async () => {
  await phones?.stop()
  await turn?.stop()
})

const ufrag = (page: Page) =>
  page.evaluate(
    () => /a=ice-ufrag:(\S+)/.exec(window.phone.media?.connection?.currentLocalDescription?.sdp ?? '')?.[1] ?? '',
  )

/** How the media of a call was, as the application's backend reads it. */
async function qualityOf(callUuid: string): Promise<CallQuality | null> {
  const headers = { 'X-SVC-Product-Key-ID': productKey.id, 'X-SVC-Product-Secret': productKey.secret }
  const response = await fetch(`${phones.service.url}/v1/server/calls/${callUuid}`, { headers })
  return ((await response.json()) as { call: { quality: CallQuality | null } }).call.quality
}

test('[REL2] [STAT1] both hear each other in every 500 ms and see each other, and both report it; the end closes both', async () => {
  const { customer, agent, both, connect, expectMedia, close } = await phones.open()
  await connect('video')
  await expectMedia(4, ['audio', 'video'])
  for (const { page } of both) await page.waitForFunction(() => window.phone.call?.state.name === 'connected')
  await agent.page.evaluate(() => window.phone.call?.end())
  for (const { page } of [customer, agent]) {
    await page.waitForFunction(() => window.phone.media?.state.name === 'closed')
  }
  const callUuid = await agent.page.evaluate(() => window.phone.call?.callUuid ?? '')
  const begun = performance.now()
  let quality: CallQuality | null = null
  // The report of the end is there in a moment.
  while (!quality?.caller || !quality.callee) {
    expect(performance.now() - begun).toBeLessThan(soon(20_000))
    quality = await qualityOf(callUuid)
  }
  for (const side of [quality.caller, quality.callee]) {
    expect(side.bitrate?.avg).toBeGreaterThan(1_000)
    expect([side.rtt_ms?.min, side.codec]).toEqual([expect.any(Number), 'audio/opus'])
    expect(side.candidate_pair?.local).toMatch(/^(host|srflx|prflx|relay)$/)
  }
  await close()
}, 240_000)

test('[PLACE5] a callee that loads its page again after the offer came is offered anew, with new ICE credentials', async () => {
  const { customer, close } = await phones.open()
  const wish = { user_id: `agent-${crypto.randomUUID()}`, role: 'agent' }
  const callee = await phones.service.connect(wish)
  await customer.page.evaluate((userId) => window.phone.dial(userId, 'agent', 'audio'), wish.user_id)
  const { data } = await callee.next('call.ringing')
  callee.send('call.accept', { call_uuid: data.call_uuid })
  const first = await callee.next('webrtc.offer')
  await callee.close(1001)
  const back = await phones.service.connect(wish)
  const second = await back.next('webrtc.offer')
  const [lost, anew] = [first, second].map(({ data }) => /a=ice-ufrag:(\S+)/.exec(data.sdp.sdp)?.[1])
  expect(anew).toBeString()
  expect(anew).not.toBe(lost)
  back.send('call.end', { call_uuid: data.call_uuid })
  await customer.page.waitForFunction(() => window.phone.media?.state.name === 'closed')
  await close()
}, 240_000)

test('[RES3] the service dies and comes back: media flows on, ICE restarts, and the call ends normally', async () => {
  const { customer, agent, both, connect, expectMedia, close } = await phones.open()
  await connect('video')
  const before = await Promise.all(both.map(({ page }) => ufrag(page)))
  const flow = expectMedia(8, ['audio', 'video'])
  await phones.service.kill()
  await phones.service.start()
  await Promise.all(both.map(({ page }) => online(page)))
  await flow
  for (const [i, { page }] of both.entries()) {
    await page.waitForFunction((old) => {
      const { connection } = window.phone.media ?? {}
      const now = /a=ice-ufrag:(\S+)/.exec(connection?.currentLocalDescription?.sdp ?? '')?.[1]
      return now !== old && connection?.signalingState === 'stable'
    }, before[i])
  }
  await expectMedia(3, ['audio', 'video'])
  await customer.page.evaluate(() => window.phone.call?.end())
  await agent.page.waitForFunction(() => window.phone.call?.state.name === 'over')
  await close()
}, 240_000)

for (const [how, cut] of [
  ['', false],
  [', sooner where the socket broke with it', true],
] as const) {
  test(`the path is gone: ICE is restarted, and media comes back${how}`, async () => {
    const { both, connect, expectMedia, close } = await phones.open('relay=1')
    await connect('audio')
    await expectMedia(2, ['audio'])
    await Promise.all(both.map(({ page }) => page.evaluate(() => window.phone.noteRestart())))
    await turn.restart()
    const at = Date.now()
    if (cut) for (const { page } of both) await page.evaluate(() => window.phone.cut())
    await Promise.all(both.map(({ page }) => page.evaluate(() => window.phone.restarted())))
    await Promise.all(both.map(({ page }) => page.evaluate(() => window.phone.flowing())))
    await expectMedia(3, ['audio'])
    // Chromium itself calls the path disconnected after some six seconds.
    if (cut) expect(Date.now() - at).toBeLessThan(soon(6000 + 3 * 600))
    await close()
  }, 240_000)
}

test('[INV6] both call each other at once: one call, and the callee of it gives way in its negotiation too', async () => {
  // Far enough away that the invites cross.
  const { customer, agent, both, expectMedia, close } = await phones.open('', 150)
  await Promise.all([
    customer.page.evaluate((userId) => window.phone.dial(userId, 'agent', 'audio'), agent.userId),
    agent.page.evaluate((userId) => window.phone.dial(userId, 'customer', 'audio'), customer.userId),
  ])
  await Promise.all(both.map(({ page }) => page.evaluate(() => window.phone.flowing())))
  const calls = await Promise.all(
    both.map(({ page }) => page.evaluate(() => window.phone.client.calls.map((it) => [it.callUuid, it.direction]))),
  )
  expect(calls.map((list) => list.length)).toEqual([1, 1])
  expect(calls[0]?.[0]?.[0]).toBe(calls[1]?.[0]?.[0] ?? '')
  expect(calls.map((list) => list[0]?.[1]).sort()).toEqual(['incoming', 'outgoing'])
  await expectMedia(2, ['audio'])
  await close()
}, 240_000)

for (const side of isLong ? (['caller', 'callee', 'both'] as const) : (['both'] as const)) {
  const who = side === 'both' ? 'both pages are' : `the ${side}'s page is`
  test(`[PLACE2] ${who} loaded again in mid-call: media is back within 3 s`, async () => {
    const { customer, agent, both, connect, expectMedia, close } = await phones.open()
    await connect('video')
    const uuid = await agent.page.evaluate(() => window.phone.call?.callUuid)
    const reloading = { caller: [customer], callee: [agent], both }[side]
    const at = Date.now()
    await Promise.all(reloading.map(({ page }) => page.reload()))
    await Promise.all(
      reloading.map(async ({ page }) => {
        await page.waitForFunction(() => window.phone?.media !== undefined)
        await page.evaluate(() => window.phone.flowing())
        const flowedAt = await page.evaluate(() => window.phone.flowedAt)
        expect((flowedAt ?? Number.POSITIVE_INFINITY) - at).toBeLessThan(soon(3000))
      }),
    )
    await Promise.all(both.map(({ page }) => page.evaluate(() => window.phone.flowing())))
    for (const { page } of both) expect(await page.evaluate(() => window.phone.call?.callUuid)).toBe(uuid)
    await expectMedia(2, ['audio', 'video'])
    await close()
  }, 240_000)
}

test('[PLACE2] a page that kept nothing of its session is the same device: its call is given back to it', async () => {
  const { agent, both, connect, expectMedia, close } = await phones.open('forget=1')
  await connect('audio')
  const uuid = await agent.page.evaluate(() => window.phone.call?.callUuid)
  const at = Date.now()
  await agent.page.reload()
  await agent.page.waitForFunction(() => window.phone?.media !== undefined)
  await agent.page.evaluate(() => window.phone.flowing())
  const flowedAt = await agent.page.evaluate(() => window.phone.flowedAt)
  expect((flowedAt ?? Number.POSITIVE_INFINITY) - at).toBeLessThan(soon(3000))
  await Promise.all(both.map(({ page }) => page.evaluate(() => window.phone.flowing())))
  expect(await agent.page.evaluate(() => window.phone.call?.callUuid)).toBe(uuid)
  await expectMedia(2, ['audio'])
  await close()
}, 240_000)
