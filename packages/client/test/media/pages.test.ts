import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { online, type Phone } from './support/people.ts'
import { type Phones, startPhones } from './support/phones.ts'

/* Real pages on the real service, treated as people treat them: loaded again at any time, open twice, with a wrong clock. */

let phones: Phones

beforeAll(async () => {
  phones = await startPhones()
}, 240_000)

afterAll(async () => {
  await phones?.stop()
})

/** The customer calls; nobody answers yet. */
async function ring(customer: Phone, agent: Phone): Promise<void> {
  await customer.page.evaluate((userId) => window.phone.dial(userId, 'agent', 'video'), agent.userId)
  await rings(agent.page)
}

const rings = (page: Page) =>
  page.waitForFunction(() => {
    const state = window.phone?.call?.state
    return state?.name === 'ringing' && state.direction === 'incoming'
  })

/** As a click on "answer". */
const answer = (page: Page) =>
  page.evaluate(() => {
    const call = window.phone.call as NonNullable<typeof window.phone.call>
    window.phone.take(call)
    void call.accept()
  })

const flowing = (page: Page) => page.evaluate(() => window.phone.flowing())

const isOver = (page: Page, reason: string) =>
  page.waitForFunction((reason) => {
    const state = window.phone.call?.state
    return state?.name === 'over' && state.reason === reason
  }, reason)

test('both pages are loaded again while it rings, when it is answered and in the call; what is off stays off', async () => {
  const { customer, agent, both, expectMedia, close } = await phones.open('silent')
  await ring(customer, agent)
  await customer.page.reload()
  await customer.page.waitForFunction(() => window.phone?.media !== undefined)
  await agent.page.reload()
  await rings(agent.page)
  await answer(agent.page)
  // Answered, and perhaps not connected yet.
  await agent.page.waitForFunction(() => ['accepted', 'connected'].includes(window.phone.call?.state.name ?? ''))
  await agent.page.reload()
  await agent.page.waitForFunction(() => window.phone?.media !== undefined)
  await Promise.all(both.map(({ page }) => flowing(page)))
  await expectMedia(2, ['audio', 'video'])

  await customer.page.evaluate(() => window.phone.media?.setMuted('video', true))
  await agent.page.waitForFunction(() => window.phone.media?.state.receiving.video === false)
  await customer.page.reload()
  await customer.page.waitForFunction(() => window.phone?.media !== undefined)
  await flowing(customer.page)
  await agent.page.waitForFunction(() => window.phone.media?.state.receiving.audio)
  const before = await agent.page.evaluate(() => window.phone.totals())
  await agent.page.evaluate(() => window.phone.measureFlow(2))
  const after = await agent.page.evaluate(() => window.phone.totals())
  expect(after.videoPackets).toBe(before.videoPackets)
  expect(after.audioPackets).toBeGreaterThan(before.audioPackets)
  expect(await customer.page.evaluate(() => window.phone.media?.state.muted)).toEqual({ audio: false, video: true })
  await close()
}, 240_000)

test('three devices of one person and two tabs of one of them ring; who does not answer opens no camera', async () => {
  const { customer, agent, close } = await phones.open('silent')
  const query = (device: string) =>
    `${phones.url}?user=${agent.userId}&role=agent&peer=customer&device=${device}&silent`
  const contexts = await Promise.all([phones.browser.newContext(), phones.browser.newContext()])
  const tablet = await contexts[0].newPage()
  const laptop = await contexts[1].newPage()
  const tab = await contexts[1].newPage()
  const open: [Page, string][] = [
    [tablet, 'tablet'],
    [laptop, 'laptop'],
    [tab, 'laptop'],
  ]
  for (const [page, device] of open) {
    await page.addInitScript(() => {
      const { mediaDevices } = navigator
      const getUserMedia = mediaDevices.getUserMedia.bind(mediaDevices)
      mediaDevices.getUserMedia = (wish) => {
        document.title = 'opened'
        return getUserMedia(wish)
      }
    })
    await page.goto(query(device))
    await online(page)
  }
  await ring(customer, agent)
  await Promise.all(open.map(([page]) => rings(page)))
  await answer(laptop)
  await Promise.all([flowing(customer.page), flowing(laptop)])
  await Promise.all([agent.page, tablet, tab].map((page) => isOver(page, 'answered_elsewhere')))
  const opened = await Promise.all(open.map(([page]) => page.title()))
  expect(opened).toEqual(['Test', 'opened', 'Test'])
  expect(await agent.page.evaluate(() => window.phone.media)).toBeUndefined()
  await customer.page.evaluate(() => window.phone.call?.end())
  await isOver(laptop, 'hangup')
  expect(await laptop.evaluate(() => window.phone.media?.state.name)).toBe('closed')
  await Promise.all(contexts.map((context) => context.close()))
  await close()
}, 240_000)

test('a clock that is a day off, either way: the ring has its time left, and the call has media', async () => {
  const { customer, agent, both, close } = await phones.open('silent')
  const dayMs = 86_400_000
  for (const [i, { page }] of both.entries()) {
    await page.addInitScript(
      (offMs) => {
        const now = Date.now.bind(Date)
        Date.now = () => now() + offMs
      },
      i === 0 ? dayMs : -dayMs,
    )
    await page.reload()
    await online(page)
  }
  await ring(customer, agent)
  await customer.page.waitForFunction(() => {
    const state = window.phone.call?.state
    return state?.name === 'ringing' && state.direction === 'outgoing' && state.invited
  })
  const left = await Promise.all(
    both.map(({ page }) =>
      page.evaluate(() => {
        const state = window.phone.call?.state
        return state?.name === 'ringing' ? (state.expiresAt ?? 0) - Date.now() : 0
      }),
    ),
  )
  for (const ms of left) {
    expect(ms).toBeGreaterThan(0)
    expect(ms).toBeLessThanOrEqual(60_000)
  }
  await answer(agent.page)
  await Promise.all(both.map(({ page }) => flowing(page)))
  await close()
}, 240_000)

test('a page whose scripts stand still, as in the background: media goes on, and so does the page when it is back', async () => {
  const { customer, agent, both, expectMedia, connect, close } = await phones.open()
  await connect('audio')
  const session = await agent.context.newCDPSession(agent.page)
  await session.send('Debugger.enable')
  const stopped = new Promise((resolve) => session.once('Debugger.paused', resolve))
  await session.send('Debugger.pause')
  await stopped
  await customer.page.evaluate(() => window.phone.measureFlow(8))
  expect(await customer.page.evaluate(() => window.phone.media?.state.name)).toBe('flowing')
  await session.send('Debugger.resume')
  await expectMedia(2, ['audio'])
  for (const { page } of both) expect(await page.evaluate(() => window.phone.media?.state.name)).toBe('flowing')
  await close()
}, 240_000)

for (const who of ['customer', 'agent'] as const) {
  test(`[TAKE1] the ${who} of a call goes on at another device, with media`, async () => {
    const { customer, agent, connect, close } = await phones.open()
    await connect('video')
    const [mine, theirs] = who === 'customer' ? [customer, agent] : [agent, customer]
    const context = await phones.browser.newContext()
    const tablet = await context.newPage()
    const [role, peer] = who === 'customer' ? ['customer', 'agent'] : ['agent', 'customer']
    await tablet.goto(`${phones.url}?user=${mine.userId}&role=${role}&peer=${peer}&device=tablet&takes`)
    await online(tablet)
    await tablet.evaluate(() => window.phone.takeOver())
    await isOver(mine.page, 'taken_elsewhere')
    await Promise.all([flowing(tablet), flowing(theirs.page)])
    for (const page of [tablet, theirs.page]) await page.evaluate(() => window.phone.arriving(['audio', 'video']))
    expect(await mine.page.evaluate(() => window.phone.media?.state.name)).toBe('closed')
    expect(await tablet.evaluate(() => window.phone.errors)).toEqual([])
    expect(await theirs.page.evaluate(() => window.phone.errors)).toEqual([])
    await tablet.evaluate(() => window.phone.call?.end())
    await isOver(theirs.page, 'hangup')
    await context.close()
    await close()
  }, 240_000)
}
