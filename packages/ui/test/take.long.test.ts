import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { serious } from '@ringwire/testkit/axe'
import { openBrowser } from '@ringwire/testkit/browser'
import { someone } from '@ringwire/testkit/flows'
import type { Browser } from 'playwright-core'
import { noteConnections, receives } from './support/flow.ts'
import { hasFocusNamed, tabTo } from './support/keyboard.ts'
import { announces, at, inCall, openPerson, openTwo, phase, seesPeer } from './support/people.ts'
import { picture } from './support/pictures.ts'
import { bundlePage, openSite, type Site } from './support/site.ts'

/* A call goes on at another device of one of the two [TAKE1]. */

let browser: Browser
let site: Site
beforeAll(async () => {
  const page = join(import.meta.dir, 'page', 'phone.tsx')
  ;[browser, site] = await Promise.all([openBrowser(), bundlePage(page).then((bundle) => openSite(bundle))])
}, 240_000)
afterAll(async () => {
  await browser?.close()
  await site?.close()
})

/** The desk of somebody who has a phone in the hand already. */
const openDesk = (user: string) =>
  openPerson(browser, site, { user, role: 'agent', peer: 'customer', name: 'Ben Ortiz' })

test('[TAKE1] "Continue here" by the keyboard: media goes on at the desk, the phone says where, and back again', async () => {
  const ids = { ann: someone('ann'), ben: someone('ben') }
  const two = await openTwo(browser, site, { ids })
  const { ann, ben } = two
  const desk = await openDesk(ids.ben)
  await Promise.all([ann, ben, desk].map(noteConnections))
  await inCall(two)
  await desk.waitForSelector(`${at('takeable')}:has-text("Your call with Ann Lee is at another device")`)
  await picture(desk, 'takeable')
  expect(await serious(desk)).toEqual([])
  expect(await ben.locator(at('takeable')).count()).toBe(0)

  await tabTo(desk, 'continue-here')
  await desk.keyboard.press('Enter')
  await phase(ben, 'over')
  await announces(ben, 'You go on at another of your devices.')
  await ben.waitForSelector(at('dismiss'))
  expect(await ben.locator(at('call-again')).count()).toBe(0)
  await Promise.all([seesPeer(desk), receives(desk), receives(ann)])
  await desk.waitForSelector(at('takeable'), { state: 'detached' })
  await hasFocusNamed(desk, 'Call controls')
  await announces(ann, 'Connected')

  await ben.click(at('continue-here'))
  await phase(desk, 'over')
  await Promise.all([seesPeer(ben), receives(ben), receives(ann)])
  await ben.click(at('hangup'))
  await phase(ann, 'over')
  await desk.context().close()
  await two.close()
}, 240_000)

test('[TAKE1] a call that was made at the other device shows when the window comes to the front, and goes when it ends', async () => {
  const ids = { ann: someone('ann'), ben: someone('ben') }
  const two = await openTwo(browser, site, { ids })
  const desk = await openDesk(ids.ben)
  await two.ben.click(at('call-audio'))
  await two.ann.click(at('accept'))
  await phase(two.ben, 'live')
  expect(await desk.locator(at('takeable')).count()).toBe(0)
  await desk.evaluate(() => window.dispatchEvent(new Event('focus')))
  await desk.waitForSelector(at('continue-here'))
  await two.ann.click(at('hangup'))
  await desk.waitForSelector(at('takeable'), { state: 'detached' })
  await two.close()
  await desk.context().close()
}, 240_000)
