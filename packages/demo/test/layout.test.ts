import { afterAll, beforeAll, expect, test } from 'bun:test'
import { openBrowser } from '@ringwire/testkit/browser'
import type { Browser } from 'playwright-core'
import { findLayoutFaults } from './support/layout.ts'

/* What finds the faults of a layout finds them: each page here has one, or none. */

let browser: Browser
beforeAll(async () => {
  browser = await openBrowser()
}, 240_000)
afterAll(() => browser?.close())

const button = (style = '') => `<button aria-label="Go" style="width: 100px; height: 40px; ${style}">Go</button>`

const pages: [name: string, body: string, faults: string | undefined][] = [
  ['a button', button(), undefined],
  ['a button that its parent cuts off', `<div style="overflow: clip; width: 60px">${button()}</div>`, 'covered'],
  [
    'a button behind the ground of its parent',
    `<div style="isolation: isolate"><div style="background: white">${button('position: relative; z-index: -1')}</div></div>`,
    'covered',
  ],
  [
    'a button of which a neighbour covers one side',
    `<div style="position: relative">${button()}<i style="position: absolute; inset: 0 auto 0 0; width: 30px">x</i></div>`,
    'covered',
  ],
  [
    'a line about a person of which only the title tells the rest',
    '<p class="person-about" title="x" style="width: 60px; overflow: hidden; white-space: nowrap">customer · in a call</p>',
    'cut off',
  ],
  [
    'two parts of a call, and a panel that is closed',
    `<div class="rw-stage"><p class="rw-second">Dan is calling</p><i class="rw-self" style="margin-top: -24px; display: block">x</i>
      <details><summary style="padding: 8px">Lock</summary><p class="rw-panel">12345</p></details></div>`,
    'lie on each other',
  ],
  [
    'a link that goes over two lines',
    '<p style="width: 120px">These are words <a href="#there">and these are a link of several words</a>.</p>',
    undefined,
  ],
]

for (const [name, body, expected] of pages) {
  test(`${name}: ${expected ?? 'no fault'}`, async () => {
    const page = await browser.newPage({ viewport: { width: 400, height: 300 } })
    await page.setContent(`<!doctype html><title>Layout</title><body>${body}</body>`)
    const faults = await findLayoutFaults(page)
    await page.close()
    if (expected === undefined) expect(faults).toEqual([])
    else expect(faults.join()).toContain(expected)
  }, 240_000)
}
