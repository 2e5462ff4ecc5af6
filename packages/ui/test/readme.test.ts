import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { openBrowser } from '@ringwire/testkit/browser'
import { block, checkTypes, readDocument, writeApplication } from '@ringwire/testkit/documents'
import { makeTemporaryDirectory } from '@ringwire/testkit/process'
import type { Browser, Page } from 'playwright-core'
import { at, openTwo, phase, seesPeer } from './support/people.ts'
import { bundlePage, openSite, type Runtime, type Site } from './support/site.ts'

/* The words of the README, run. */

const folder = join(import.meta.dir, '..')
const readme = readDocument('packages/ui/README.md')
const runtimes: readonly Runtime[] = ['react', 'preact']

let directory: Awaited<ReturnType<typeof makeTemporaryDirectory>>
let browser: Browser
const sites = {} as Record<Runtime, Site>

beforeAll(async () => {
  directory = await makeTemporaryDirectory()
  writeApplication(directory.path, { 'phone.tsx': block('packages/ui/README.md', 'tsx', '# @ringwire/ui') })
  browser = await openBrowser()
  for (const runtime of runtimes) {
    sites[runtime] = await openSite(await bundlePage(join(directory.path, 'phone.tsx'), runtime))
  }
}, 240_000)

afterAll(async () => {
  await browser?.close()
  for (const site of Object.values(sites)) await site.close()
  await directory?.remove()
})

test('the example has the types of the packages', async () => {
  expect(await checkTypes(directory.path)).toBe('')
}, 240_000)

/** Of what is in the stage: how high it is, how far its middle is from that of the stage, and how high the stage is. */
function measure(page: Page, selector: string) {
  return page.locator(selector).evaluate((element) => {
    const stage = element.closest('.rw-stage')?.getBoundingClientRect() ?? new DOMRect()
    const { x, width, height } = element.getBoundingClientRect()
    return { height, stage: stage.height, fromTheMiddle: x + width / 2 - stage.x - stage.width / 2 }
  })
}

for (const runtime of runtimes) {
  test(`the example on ${runtime}: a call with picture, and its end`, async () => {
    const two = await openTwo(browser, sites[runtime], { ids: { ann: 'ann', ben: 'ben' } })
    const idle = await measure(two.ann, 'button:has-text("Call Ben")')
    expect(Math.abs(idle.fromTheMiddle)).toBeLessThan(2)
    // What the example says of the page's style: the stage fills the window, and the button is easy to see and to hit.
    const styles = { content: block('packages/ui/README.md', 'css', '# A whole phone') }
    await two.ben.addStyleTag(styles)
    const styled = await measure(two.ben, 'button:has-text("Call Ben")')
    expect(styled.height).toBeGreaterThan(44)
    expect(styled.stage).toBe(784)
    expect(await two.ben.evaluate(() => document.documentElement.scrollHeight)).toBe(800)
    await two.ann.click('button:has-text("Call Ben")')
    await two.ben.click(at('accept'))
    await Promise.all([seesPeer(two.ann), seesPeer(two.ben)])
    const lacksHeight = await measure(two.ann, at('local-video'))
    expect(lacksHeight.stage).toBe(300)
    expect(lacksHeight.height).toBeWithin(100, 125)
    await two.ann.addStyleTag(styles)
    expect((await measure(two.ann, at('local-video'))).stage).toBe(784)
    await two.ben.click(at('hangup'))
    await phase(two.ann, 'over')
    await two.close()
  }, 240_000)
}

test('the README names every variable with its default, and no other', () => {
  const css = readFileSync(join(folder, 'src', 'ui.css'), 'utf8')
  const [root = ''] = /:where\(:root\) \{[^}]*\}/.exec(css) ?? []
  const defaults = [...root.matchAll(/(--rw-[a-z-]+): ([^;]+);/g)].map(([, name, value]) => [name, value])
  const named = [...readme.matchAll(/^\| `(--rw-[a-z-]+)` \| `([^`]+)` \|/gm)].map(([, name, value]) => [name, value])
  expect(defaults.length).toBeGreaterThan(5)
  expect(named).toEqual(defaults)
})
