import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { openBrowser } from '@ringwire/testkit/browser'
import type { Browser } from 'playwright-core'
import { at, inCall, openTwo, phase } from './support/people.ts'
import { bundlePage, openSite, type Site } from './support/site.ts'

/* A call between two pages that are made of the components alone, in StrictMode. */

let site: Site
let browser: Browser

beforeAll(async () => {
  const script = await bundlePage(join(import.meta.dir, 'page', 'phone.tsx'))
  ;[site, browser] = await Promise.all([openSite(script), openBrowser()])
}, 90_000)

afterAll(async () => {
  await browser?.close()
  await site?.close()
})

test('a video call: answered, muted, hung up', async () => {
  const two = await openTwo(browser, site)
  const { ann, ben } = two
  await inCall(two)
  expect(await ben.textContent(at('call-name'))).toBe('Ann Lee')
  await ben.click(at('mute'))
  await ben.waitForSelector(`${at('mute')}[aria-pressed=true][aria-label="Mute microphone"]`)
  await ben.click(at('camera'))
  await ann.waitForSelector(at('no-picture'))
  await ben.click(at('camera'))
  await ann.waitForSelector(at('no-picture'), { state: 'detached' })
  await ann.click(at('hangup'))
  await Promise.all([phase(ann, 'over'), phase(ben, 'over')])
  expect(await ann.textContent(at('ended'))).toContain('You hung up.')
  expect(await ben.textContent(at('announcement'))).toBe('The call with Ann Lee has ended.')
  await two.close()
}, 90_000)
