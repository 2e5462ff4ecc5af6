import { afterAll, beforeAll, expect, test } from 'bun:test'
import { openBrowser } from '@ringwire/testkit/browser'
import { soon } from '@ringwire/testkit/patience'
import { TcpProxy } from '@ringwire/testkit/tcp-proxy'
import type { Browser, Page } from 'playwright-core'
import { expectFlow, measureFlow } from './support/flow.ts'
import { connect, goOnlineTogether, type Participant } from './support/participant.ts'
import { DemoService } from './support/service.ts'

/** The pages come from the service itself; their WebSockets go through a network that can break. */
let network: TcpProxy
let service: DemoService
let browser: Browser

beforeAll(async () => {
  network = await new TcpProxy(() => service.url).start()
  ;[service, browser] = await Promise.all([
    new DemoService({ RINGWIRE_PUBLIC_URL: network.url }).start(),
    openBrowser(),
  ])
}, 240_000)

afterAll(async () => {
  await browser?.close()
  await service?.dispose()
  await network?.stop()
})

const state = (page: Page, name: string) => page.waitForSelector(`[data-testid=connection][data-state=${name}]`)
const callOf = ({ page }: Participant) => page.getAttribute('[data-testid=stage]', 'data-call')

/** Sound arrives at both, in each of `windows` windows of 500 ms, whatever `happens` meanwhile. */
async function expectSoundThroughout(people: Participant[], windows: number, happens: () => Promise<void>) {
  const flows = Promise.all(people.map(({ page }) => measureFlow(page, windows, ['audio'])))
  await happens()
  for (const flow of await flows) expectFlow(flow, ['audio'])
}

/** The call is still one call for everybody: one hangs up, both hear it, and the history of both says the same. */
async function expectGoodEnd(caller: Participant, callee: Participant, callUuid: string | null): Promise<void> {
  for (const person of [caller, callee]) expect(await callOf(person)).toBe(callUuid)
  await callee.click('hangup')
  await caller.note('has ended')
  await Promise.all([caller.phase('idle'), callee.phase('idle')])
  for (const { page } of [caller, callee]) {
    await page.waitForSelector(`[data-testid=record]:first-child[data-status=ended][data-call="${callUuid}"]`)
  }
}

/** How often the page asked for devices. */
async function countOpenings(page: Page): Promise<void> {
  await page.addInitScript(() => {
    const { mediaDevices } = navigator
    const open = mediaDevices?.getUserMedia.bind(mediaDevices)
    window.openings = 0
    if (!open) return
    mediaDevices.getUserMedia = (wish) => {
      window.openings++
      return open(wish)
    }
  })
}

declare global {
  interface Window {
    openings: number
  }
}

for (const who of ['one', 'both'] as const) {
  test(`[RES1] the network of ${who} is cut for a while: the sound never stops, and nothing of the call is lost`, async () => {
    const { customer, agent, close } = await goOnlineTogether(browser, service.url)
    await connect(customer, agent, 'audio')
    const callUuid = await callOf(customer)
    await expectSoundThroughout([customer, agent], 12, async () => {
      if (who === 'one') await customer.context.setOffline(true)
      network.refuse()
      await Promise.all([customer, agent].map(({ page }) => state(page, 'waiting')))
      // A second attempt of each is refused too.
      await measureFlow(customer.page, 3)
      network.mend()
      if (who === 'one') await customer.context.setOffline(false)
      await Promise.all([customer, agent].map(({ page }) => state(page, 'online')))
    })
    await expectGoodEnd(customer, agent, callUuid)
    await close()
  }, 240_000)
}

test('[RES3] kill -9 of the service, and its restart: the sound never stops, and the call is ended normally', async () => {
  const { customer, agent, close } = await goOnlineTogether(browser, service.url)
  await connect(customer, agent, 'audio')
  const callUuid = await callOf(customer)
  await expectSoundThroughout([customer, agent], 14, async () => {
    await service.kill()
    await service.start()
    const again = '[data-testid=log-list] > [data-event="auth.ok"] ~ [data-event="auth.ok"]'
    await Promise.all([customer, agent].map(({ page }) => page.waitForSelector(again, { state: 'attached' })))
  })
  await expectGoodEnd(customer, agent, callUuid)
  await close()
}, 240_000)

test('[RES1] a page is loaded again in mid-call: the same call, and its sound is back within 3 s', async () => {
  const { customer, agent, close } = await goOnlineTogether(browser, service.url)
  await connect(customer, agent, 'audio')
  const callUuid = await callOf(customer)
  const times: number[] = []
  for (const { page } of [customer, agent, customer]) {
    const began = performance.now()
    await page.reload({ waitUntil: 'commit' })
    await page.waitForSelector('[data-testid=stage][data-phase=live]')
    times.push(performance.now() - began)
    await Promise.all([customer, agent].map((person) => measureFlow(person.page, 1)))
  }
  const median = times.sort((a, b) => a - b)[1] ?? Number.POSITIVE_INFINITY
  console.log(`Sound after a reload: ${times.map(Math.round).join(', ')} ms`)
  expect(median).toBeLessThan(soon(3000))
  await expectSoundThroughout([customer, agent], 3, async () => {})
  await expectGoodEnd(customer, agent, callUuid)
  await close()
}, 240_000)

test('[RES1] a page that is gone back to waits for a gesture: nothing is switched on, and the call can be rejoined or ended', async () => {
  const { customer, agent, close } = await goOnlineTogether(browser, service.url, { prepare: countOpenings })
  await connect(customer, agent, 'audio')
  const callUuid = await callOf(customer)
  const { page } = customer
  const goBack = async () => {
    await page.goto('about:blank')
    await page.goto(`${service.url}/demo/`)
    await page.waitForSelector(`[data-testid=restorable] [data-call="${callUuid}"]`)
  }
  await goBack()
  expect(await page.evaluate(() => window.openings)).toBe(0)
  await customer.phase('idle')
  await agent.phase('live')
  await customer.click('rejoin')
  await customer.phase('live')
  expect(await callOf(customer)).toBe(callUuid)
  await expectSoundThroughout([customer, agent], 2, async () => {})
  expect(await page.evaluate(() => window.openings)).toBe(1)

  await goBack()
  await customer.click('end-restorable')
  await agent.note('has ended')
  await agent.phase('idle')
  await page.waitForSelector('[data-testid=restorable]', { state: 'detached' })
  expect(await page.evaluate(() => window.openings)).toBe(0)
  await close()
}, 240_000)
