/** The quickstart as its README says: packed, installed, started; two people who see and hear each other. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { openBrowser } from '@ringwire/testkit/browser'
import { keepConnections, refused, seesAndHears } from '@ringwire/testkit/pages-in-calls'
import type { Browser, Page } from 'playwright-core'
import { type Example, startExample } from './support/example.ts'

let application: Example
let url = ''
let browser: Browser

beforeAll(async () => {
  application = await startExample('quickstart')
  url = application.url
  browser = await openBrowser()
}, 400_000)

afterAll(async () => {
  await browser?.close()
  await application?.stop()
})

test('the token route answers who is signed in, and nobody else', async () => {
  const ask = (path: string, cookie = '') => fetch(`${url}${path}`, { method: 'POST', headers: { cookie } })
  expect((await ask('/call-token')).status).toBe(401)
  expect((await ask('/call-token', 'session=guessed')).status).toBe(401)
  expect((await ask('/sign-in?name=mallory')).status).toBe(403)
  const cookie = (await ask('/sign-in?name=ben')).headers.get('set-cookie') ?? ''
  expect(cookie).toContain('HttpOnly')
  const token = (await (await ask('/call-token?user_id=ann', cookie.split(';')[0])).json()) as { user: object }
  expect(token.user).toMatchObject({ user_id: 'ben', role: 'agent' })
})

test('every answer says what the page may load and connect to, and that its type is no guess', async () => {
  for (const path of ['/', '/plain/', '/ui/main.js', '/ui/main.css', '/sign-in', '/nothing']) {
    const { headers } = await fetch(`${url}${path}`)
    expect([path, headers.get('x-content-type-options')]).toEqual([path, 'nosniff'])
    expect(headers.get('content-security-policy')).toMatch(/default-src 'self'; connect-src 'self' ws:\/\/[\d.:]+;/)
  }
})

async function signIn(flavour: string, name: 'ann' | 'ben'): Promise<Page> {
  const page = await (await browser.newContext()).newPage()
  page.setDefaultTimeout(60_000)
  await page.addInitScript(keepConnections)
  await page.goto(`${url}/${flavour}/`)
  await page.click(`#${name}`)
  await page.waitForSelector('[role=status]:has-text("online")')
  return page
}

const [byId, byTestId] = [(id: string) => `#${id}`, (id: string) => `[data-testid=${id}]`]
const ofSdk = { rings: '[role=status]:has-text("Ann")', answer: byId('answer'), hangUp: byId('hang-up') }
const flavours = {
  plain: { ...ofSdk, over: '[role=status]:has-text("Over")' },
  react: { ...ofSdk, over: byId('call') },
  ui: {
    ...{ rings: '[role=alertdialog]:has-text("Ann")', answer: byTestId('accept'), hangUp: byTestId('hangup') },
    over: '[data-testid=stage][data-phase=over]',
  },
}

for (const [flavour, { rings, answer, hangUp, over }] of Object.entries(flavours)) {
  test(`${flavour}: two people see and hear each other, until one hangs up`, async () => {
    const [ann, ben] = await Promise.all([signIn(flavour, 'ann'), signIn(flavour, 'ben')])
    await ann.click('#call')
    await ben.waitForSelector(rings)
    await ben.click(answer)
    await Promise.all([ann, ben].map(seesAndHears))
    await ben.click(hangUp)
    await ann.waitForSelector(over)
    for (const page of [ann, ben]) expect(await refused(page)).toEqual([])
    await Promise.all([ann, ben].map((page) => page.context().close()))
  }, 240_000)
}
