/** The site as `npm run docs -- --serve` builds and shows it, below a path, in a browser. `RINGWIRE_PICTURES=folder` keeps pictures. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { becomes } from '@ringwire/testkit/becomes'
import { openBrowser } from '@ringwire/testkit/browser'
import { block, projectRoot } from '@ringwire/testkit/documents'
import { makeTemporaryDirectory } from '@ringwire/testkit/process'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'

const base = '/book/'
const folder = await makeTemporaryDirectory()
const problems: string[] = []
let url = ''
let browser: Browser
let server: Bun.Subprocess<'ignore', 'pipe', 'inherit'>

/** Everything that npm reads stays in the environment, because an install is a part of this. */
beforeAll(async () => {
  server = Bun.spawn(['node', 'scripts/site.mjs', '--base', base, '--out', folder.path, '--serve', '--port', '0'], {
    cwd: projectRoot,
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'inherit',
  })
  let said = ''
  const decoder = new TextDecoder()
  for await (const bytes of server.stdout) {
    said += decoder.decode(bytes, { stream: true })
    url = /http:\/\/127\.0\.0\.1:\d+\/\S*/.exec(said)?.[0] ?? ''
    if (url !== '') break
  }
  if (url === '') throw new Error(`The site was not built:\n${said}`)
  browser = await openBrowser()
}, 600_000)

afterAll(async () => {
  await browser?.close()
  server?.kill()
  await server?.exited
  await folder.remove()
})

async function open(path: string, options: BrowserContextOptions = {}): Promise<Page> {
  const page = await (await browser.newContext({ colorScheme: 'light', ...options })).newPage()
  page.setDefaultTimeout(60_000)
  page.on('console', (message) => {
    if (message.type() === 'error') problems.push(`${page.url()}: ${message.text()}`)
  })
  page.on('pageerror', (error) => problems.push(`${page.url()}: ${error.message}`))
  page.on('request', (request) => {
    if (!/^(data:|blob:)/.test(request.url()) && !request.url().startsWith(url)) problems.push(`asked ${request.url()}`)
  })
  page.on('response', (response) => {
    if (response.status() >= 400) problems.push(`${response.status()} ${response.url()}`)
  })
  await go(page, path)
  return page
}

/** Leads to a page, and waits until its scripts are there: before that, a click on anything but a link is lost. */
async function go(page: Page, path: string): Promise<void> {
  await page.goto(`${url}${path}`, { waitUntil: 'networkidle' })
  await page.waitForFunction(() => '__vue_app__' in (document.querySelector('#app') ?? {}))
}

async function keepPicture(page: Page, name: string): Promise<void> {
  const pictures = process.env.RINGWIRE_PICTURES
  if (pictures !== undefined) await page.screenshot({ path: join(pictures, `site-${name}.png`) })
}

const widthBeyond = (page: Page) =>
  page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)

/** The top of the element comes to be in the window, not far below its top. */
async function scrollsTo(page: Page, selector: string): Promise<void> {
  await page.waitForFunction((selector) => {
    const { top = -1 } = document.querySelector(selector)?.getBoundingClientRect() ?? {}
    return top >= 0 && top < 400
  }, selector)
}

test('the start page has a picture of a call and the commands of the README', async () => {
  const page = await open('')
  await page.waitForFunction(
    () => (document.querySelector<HTMLImageElement>('.VPHomeHero img')?.naturalWidth ?? 0) > 500,
  )
  const code = await page.locator('.vp-doc pre code').allInnerTexts()
  for (const after of ['## Two commands', 'Make a key', 'Ask for a token', 'Without a backend']) {
    expect(code.map((text) => text.trim())).toContain(block('README.md', 'sh', after).trim())
  }
  await keepPicture(page, 'start')
  await page.getByRole('link', { name: 'app-developers.md' }).click()
  await page.getByRole('heading', { level: 1, name: 'For app developers' }).waitFor()
  await page.waitForURL(`${url}guide/app-developers.html`)
  await page.context().close()
})

test('a rule of the rule book has an anchor, and ids of rules in other pages lead to it', async () => {
  const page = await open('protocol.html#INV3')
  expect(await page.locator('#INV3').innerText()).toStartWith('INV3 ')
  await scrollsTo(page, '#INV3')
  expect(await page.locator('.diagram svg text', { hasText: 'call.invited' }).count()).toBe(1)
  await keepPicture(page, 'rule')
  await page.goto(`${url}architecture.html`)
  await page.getByRole('link', { name: '[ORD3]' }).first().click()
  await page.waitForURL(`${url}protocol.html#ORD3`)
  expect(await page.locator('#ORD3').innerText()).toStartWith('ORD3 ')
  await page.context().close()
})

test('both references show fields, examples and what answers', async () => {
  const page = await open('reference/rest/tokens.html')
  const main = page.locator('.vp-doc')
  for (const text of ['POST /v1/call/session-token', 'context_type', '"display_name": "Ann"', '429']) {
    expect(await main.innerText()).toContain(text)
  }
  await keepPicture(page, 'rest')
  await page.goto(`${url}reference/websocket/index.html`)
  await page.locator('.vp-doc').getByRole('link', { name: 'call.ringing' }).click()
  await page.waitForURL(`${url}reference/websocket/service.html#callringing`)
  await scrollsTo(page, '#callringing')
  await main.filter({ hasText: 'data.call_uuid' }).waitFor()
  await keepPicture(page, 'websocket')
  await page.context().close()
})

test('the search finds “hold” without a server, and its result leads to the page', async () => {
  const page = await open('')
  await page.getByRole('button', { name: 'Search' }).click()
  await page.locator('#localsearch-input').fill('hold')
  const result = page.locator('.VPLocalSearchBox .result').first()
  await result.waitFor()
  await keepPicture(page, 'search')
  await result.click()
  await page.locator('.VPLocalSearchBox').waitFor({ state: 'detached' })
  await page.waitForURL((at) => at.href.startsWith(url) && at.href !== url)
  // The start page has no such word: this is the text of the page that was found.
  await page
    .locator('.vp-doc')
    .filter({ hasText: /\bhold/i })
    .waitFor()
  await page.context().close()
})

test('one click makes it dark, and the next page stays dark', async () => {
  const page = await open('generated/call-states.html', { viewport: { width: 1440, height: 900 } })
  const brightness = () =>
    page.evaluate(() => Number(/\d+/.exec(getComputedStyle(document.body).backgroundColor)?.[0] ?? Number.NaN))
  const isDark = async () => (await brightness()) < 60
  expect(await brightness()).toBeGreaterThan(200)
  expect((await page.locator('.VPSidebar').boundingBox())?.width).toBeGreaterThan(250)
  await page.getByRole('switch', { name: 'Switch to dark theme' }).click()
  await becomes(isDark, true)
  await keepPicture(page, 'dark')
  await page.goto(`${url}client.html`)
  await becomes(isDark, true)
  await page.context().close()
})

test('nothing is wider than a phone, and the menu leads on', async () => {
  const page = await open('', { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true })
  for (const path of [
    ...['', 'guide/app-developers.html', 'protocol.html', 'generated/call-states.html', 'generated/errors.html'],
    ...['reference/rest/server-calls.html', 'reference/websocket/clients.html', 'architecture.html'],
  ]) {
    await go(page, path)
    expect([path, await widthBeyond(page)]).toEqual([path, 0])
    if (path === '' || path.startsWith('reference/rest'))
      await keepPicture(page, `phone-${path === '' ? 'start' : 'rest'}`)
  }
  await page.getByRole('button', { name: 'Menu' }).click()
  await page.locator('.VPSidebar').getByRole('link', { name: 'The rule book' }).click()
  await page.getByRole('heading', { level: 1, name: 'Protocol' }).waitFor()
  await page.context().close()
})

test('llms.txt leads to every document as Markdown', () => {
  const text = readFileSync(join(folder.path, 'llms.txt'), 'utf8')
  const links = Array.from(text.matchAll(/\]\(([^)]+)\)/g), ([, link = '']) => link)
  expect(links).toContain(`${base}protocol.md`)
  expect(links).toContain(`${base}generated/openapi.json`)
  expect(links.length).toBeGreaterThan(50)
  for (const link of links) expect([link, existsSync(join(folder.path, link.slice(base.length)))]).toEqual([link, true])
})

test('no page had an error, or asked another host for anything', () => {
  expect(problems).toEqual([])
})
