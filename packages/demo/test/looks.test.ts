import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import axe, { type AxeResults, type RunOptions } from 'axe-core'
import type { Browser, Page } from 'playwright-core'
import { launchBrowser } from '../../../scripts/browser.mjs'
import { findLayoutFaults } from './support/layout.ts'
import { connect, goOnlineTogether, type Participant } from './support/participant.ts'
import { drawAsCamera, portraits } from './support/portrait.ts'
import { DemoService } from './support/service.ts'

/*
 * What the page looks like in each state, on each screen, dark and light: what axe finds, and what a person would find
 * wrong. `RINGWIRE_PICTURES=folder` keeps a picture of each.
 * `RINGWIRE_PICTURES=docs/images npm test -- demo/test/looks` renews only the picture of the README.
 */

const documents = join(import.meta.dir, '../../../docs/images')
const folder = process.env.RINGWIRE_PICTURES
const isOfDocuments = folder !== undefined && (join(process.cwd(), folder) === documents || folder === documents)
const schemes = ['light', 'dark'] as const
const desktop = { width: 1280, height: 800 }
const phones = [
  { width: 390, height: 844 },
  { width: 390, height: 664 },
  { width: 360, height: 640 },
  { width: 844, height: 390 },
]
const screens = [desktop, { width: 1024, height: 700 }, ...phones]

const stage = {} as { service: DemoService; browser: Browser }
beforeAll(async () => {
  if (folder !== undefined) await mkdir(folder, { recursive: true })
  const [service, browser] = await Promise.all([
    // Nothing rings out while a picture is taken.
    new DemoService({ RINGWIRE_RING_TIMEOUT_MS: '120000' }).start(),
    // A phone has two cameras.
    launchBrowser('--use-fake-device-for-media-stream=fps=5,device-count=2'),
  ])
  Object.assign(stage, { service, browser })
}, 240_000)
afterAll(async () => {
  await stage.browser?.close()
  await stage.service?.dispose()
})

async function takePicture(page: Page, name: string): Promise<void> {
  if (folder === undefined || (isOfDocuments && name !== 'front')) return
  await page.screenshot({ path: isOfDocuments ? join(documents, 'call.png') : join(folder, `${name}.png`) })
}

/** What axe finds serious or critical: of everything, or of the rules that are named. */
async function findFaults(page: Page, rules: string[] | undefined): Promise<string[]> {
  if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(axe.source)
  const found = await page.evaluate(async (rules) => {
    const { axe } = window as unknown as { axe: { run(where: Document, how: RunOptions): Promise<AxeResults> } }
    const { violations } = await axe.run(document, {
      resultTypes: ['violations'],
      ...(rules === undefined ? {} : { runOnly: rules }),
    })
    return violations.map(({ id, impact, nodes }) => ({
      id,
      impact,
      nodes: nodes.map(({ html }) => html.slice(0, 120)),
    }))
  }, rules)
  return found
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes.join(' | ')}`)
}

/** Every fault of every state, so that one run shows them all. */
const faults: string[] = []

/** One state of the page on each screen, dark and light. */
async function look(page: Page, state: string, on = screens): Promise<void> {
  if (isOfDocuments) return
  for (const screen of on) {
    await page.setViewportSize(screen)
    for (const colorScheme of schemes) {
      const name = `${state}-${screen.width}x${screen.height}-${colorScheme}`
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
      // Colours are all that is different in the dark, and the room is all that is different on another screen.
      const isFirst = screen === on[0]
      if (isFirst) {
        const found = await findFaults(page, colorScheme === 'dark' ? ['color-contrast'] : undefined)
        faults.push(...found.map((fault) => `${name}: ${fault}`))
      }
      if (colorScheme === 'light') {
        const found = await findLayoutFaults(page)
        faults.push(...found.map((fault) => `${name}: ${fault}`))
      }
      await takePicture(page, name)
    }
  }
  await page.setViewportSize(on[0] ?? desktop)
}

/** Somebody with a phone in the hand: two cameras, and a finger. */
const handheld = { isMobile: true, hasTouch: true, viewport: { width: 390, height: 664 } }

async function togetherOnline(names: { customer: string; agent: string }) {
  return goOnlineTogether(stage.browser, stage.service.url, {
    viewport: desktop,
    names,
    contextOf: (role) => (role === 'agent' ? handheld : {}),
    prepare: (page, role) => (folder === undefined ? Promise.resolve() : drawAsCamera(page, portraits[role])),
  })
}

/** The picture of the README shows a call and the log. It waits until the bandwidth estimate allows a sharp picture. */
async function takeFront({ page, click }: Participant): Promise<void> {
  await page.waitForSelector('[data-testid=call-path]:has-text("1280×720")', { timeout: 40_000 })
  await click('log-toggle')
  await page.click('[data-event="call.accepted"] summary')
  await page.mouse.move(0, 0)
  await page.emulateMedia({ colorScheme: 'light' })
  await takePicture(page, 'front')
  await click('log-toggle')
}

test('nothing is wrong before a call, and with one that nobody answered', async () => {
  const { browser, service } = stage
  const guest = await browser.newPage({ viewport: desktop })
  await guest.goto(`${service.url}/demo/`)
  await guest.waitForSelector('[data-testid=name]')
  await look(guest, 'sign-in')
  await guest.fill('[data-testid=name]', 'Zoe')
  await guest.click('[data-testid=enter]')
  await guest.waitForSelector('[data-testid=nobody]:has-text("Nobody to call yet")')
  await look(guest, 'empty')
  await guest.close()

  const { customer, agent, close } = await togetherOnline({ customer: 'Ann Lee', agent: 'Ben Ortiz' })
  const { page } = customer
  await customer.call(agent, 'audio')
  await agent.incoming()
  await page.waitForSelector('[data-testid=call-state]:has-text("Ringing")')
  await look(page, 'calling')
  await look(agent.page, 'phone-incoming-audio', phones)
  await agent.click('reject')
  await customer.phase('idle')
  await look(page, 'ended')
  await agent.click('dismiss')
  await agent.call(customer, 'video')
  await customer.incoming()
  await look(page, 'incoming')
  await agent.click('hangup')
  await customer.phase('idle')
  await look(page, 'missed')
  await customer.click('dismiss')
  await page.waitForSelector('[data-testid=missed]')
  await look(page, 'history')
  await customer.click('log-toggle')
  await look(page, 'history-without-log')

  await agent.close()
  await page.waitForSelector('[data-testid=nobody]:has-text("Nobody is online right now")')
  await look(page, 'offline')
  await close()
  expect(faults.splice(0)).toEqual([])
}, 400_000)

test('nothing is wrong in a call with pictures, at a desk and on a phone', async () => {
  const { customer, agent, close } = await togetherOnline({ customer: 'Ann', agent: 'Ben' })
  const { page } = customer
  await connect(customer, agent, 'video')
  if (folder !== undefined) await takeFront(customer)
  await look(page, 'live')
  await agent.page.waitForSelector('[data-testid=flip]')
  await look(agent.page, 'phone-live', phones)
  await customer.click('log-toggle')
  await look(page, 'live-log')
  await customer.click('log-toggle')
  await customer.click('choose-audio')
  await page.waitForSelector('[data-testid=device-panel] select')
  await look(page, 'microphones')
  await customer.click('choose-video')
  await page.waitForSelector('[data-testid=device-preview]')
  await look(page, 'cameras')
  await page.keyboard.press('Escape')

  await agent.click('mute')
  await page.waitForSelector('[data-testid=peer-muted]')
  await look(page, 'peer-muted')
  await look(agent.page, 'phone-muted', phones)
  await agent.click('camera')
  await page.waitForSelector('[data-testid=nothing-sent]')
  await customer.click('mute')
  await customer.click('screen')
  await agent.page.waitForSelector('[data-testid=peer-shares]')
  await look(page, 'nothing-sent')
  await look(agent.page, 'phone-screen', phones)
  await page.waitForFunction(() =>
    /0:0[2-9]|0:[1-9]|[1-9]:/.test(document.querySelector('.rw-timer')?.textContent ?? ''),
  )
  await agent.click('hangup')
  await customer.phase('idle')
  await look(page, 'ended-call')
  await look(agent.page, 'phone-ended', phones)
  await close()
  expect(faults.splice(0)).toEqual([])
}, 400_000)

test('nothing is wrong with long names, with sound alone, and while the service is away', async () => {
  const names = {
    customer: 'Maximiliane von Hohenstein-Weissenburg',
    agent: 'Bartholomew Featherstonehaugh-Cholmondeley'.slice(0, 40),
  }
  const { customer, agent, close } = await togetherOnline(names)
  const { page } = customer
  await look(page, 'long-people')
  await agent.call(customer, 'audio')
  await customer.incoming()
  await look(page, 'long-incoming')
  await customer.click('accept')
  await Promise.all([customer.phase('live'), agent.phase('live')])
  await look(page, 'audio')
  await look(agent.page, 'phone-audio', phones)
  await agent.click('mute')
  await page.waitForSelector('[data-testid=peer-muted]')
  await customer.click('camera')
  await agent.page.waitForSelector('.rw-peer[data-seen]')
  await look(page, 'audio-with-picture')
  await look(agent.page, 'phone-audio-with-picture', phones)
  await stage.service.kill()
  await page.waitForSelector('[data-testid=note]:has-text("cannot be reached")')
  await look(page, 'unreachable')
  await look(agent.page, 'phone-unreachable', phones)
  await stage.service.start()
  await page.waitForSelector('[data-testid=note]:empty', { state: 'attached' })
  await customer.click('hangup')
  await agent.phase('idle')
  await look(page, 'long-ended')
  await look(agent.page, 'phone-long-ended', phones)
  await close()
  expect(faults.splice(0)).toEqual([])
}, 400_000)
