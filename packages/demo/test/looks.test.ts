import { expect, test } from 'bun:test'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import axe, { type AxeResults, type RunOptions } from 'axe-core'
import type { Page } from 'playwright-core'
import { connect, goOnlineTogether } from './support/participant.ts'
import { drawAsCamera, portraits } from './support/portrait.ts'
import { withServiceAndBrowser } from './support/stage.ts'

/*
 * What the page looks like and what axe finds, in each state. `RINGWIRE_PICTURES=folder` keeps a picture of each, on three
 * screens; `RINGWIRE_PICTURES=docs/images npm test -- demo/test/looks` renews the one in the README alone.
 */

// Nothing rings out while a picture is taken.
const stage = withServiceAndBrowser({ RINGWIRE_RING_TIMEOUT_MS: '120000' })
const documents = join(import.meta.dir, '../../../docs/images')
const folder = process.env.RINGWIRE_PICTURES
const schemes = ['light', 'dark'] as const
const desktop = { width: 1280, height: 800 }
const screens = [desktop, { width: 390, height: 844 }, { width: 844, height: 390 }]

async function takePicture(page: Page, name: string): Promise<void> {
  if (folder === undefined) return
  const isOfDocuments = join(process.cwd(), folder) === documents || folder === documents
  if (isOfDocuments && name !== 'front') return
  const path = isOfDocuments ? join(documents, 'call.png') : join(folder, `${name}.png`)
  await page.screenshot({ path })
}

/** What axe finds serious or critical: of everything, or of the rules that are named. */
async function findFaults(page: Page, rules: string[] | undefined): Promise<string[]> {
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

/** One state of the page, dark and light; on each screen, where pictures are wanted. */
async function look(page: Page, state: string): Promise<void> {
  if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(axe.source)
  for (const colorScheme of schemes) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
    // Colours are all that is different in the dark.
    const faults = await findFaults(page, colorScheme === 'dark' ? ['color-contrast'] : undefined)
    expect({ state, colorScheme, faults }).toEqual({ state, colorScheme, faults: [] })
    for (const screen of folder === undefined ? [] : screens) {
      await page.setViewportSize(screen)
      await takePicture(page, `${state}-${screen.width}x${screen.height}-${colorScheme}`)
    }
    await page.setViewportSize(desktop)
  }
}

test('axe finds nothing serious in any state, dark and light', async () => {
  if (folder !== undefined) await mkdir(folder, { recursive: true })
  const { browser, service } = stage
  const guest = await browser.newPage({ viewport: desktop })
  await guest.goto(`${service.url}/demo/`)
  await guest.waitForSelector('[data-testid=name]')
  await look(guest, 'sign-in')
  await guest.fill('[data-testid=name]', 'Zoe')
  await guest.click('[data-testid=enter]')
  await guest.waitForSelector('[data-testid=connection][data-state=online]')
  await look(guest, 'empty')
  await guest.close()

  const { customer, agent, close } = await goOnlineTogether(browser, service.url, {
    viewport: desktop,
    ...(folder === undefined ? {} : { names: { customer: 'Ann', agent: 'Ben' } }),
    prepare: (page, role) => (folder === undefined ? Promise.resolve() : drawAsCamera(page, portraits[role])),
  })
  const { page } = customer
  // A history to show: one call that was declined and one that was missed.
  await customer.call(agent, 'audio')
  await agent.incoming()
  await customer.page.waitForSelector('[data-testid=call-state]:has-text("Ringing")')
  await look(page, 'calling')
  await agent.click('reject')
  await customer.phase('idle')
  await look(page, 'ended')
  await agent.call(customer, 'video')
  await customer.incoming()
  await look(page, 'incoming')
  await agent.click('hangup')
  await customer.phase('idle')
  await customer.click('dismiss')
  await page.waitForSelector('[data-testid=missed]')
  await look(page, 'history')

  await connect(customer, agent, 'video')
  if (folder !== undefined) {
    // The picture grows sharp as the bandwidth estimate does.
    await page.waitForSelector('[data-testid=call-path]:has-text("1280×720")', { timeout: 40_000 })
    await page.click('[data-event="call.accepted"] summary')
    await customer.click('fill')
    await page.mouse.move(0, 0)
    await page.emulateMedia({ colorScheme: 'light' })
    await takePicture(page, 'front')
    await customer.click('fill')
  }
  await look(page, 'live')
  await customer.click('devices')
  await page.waitForSelector('[data-testid=device-menu] select')
  await look(page, 'devices')
  await close()
}, 240_000)
