/**
 * `npm create ringwire` as its README says: packed, made, installed and started. Two people see and hear each other, and the
 * backend verifies the webhooks of their call.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createRingwire } from '@ringwire/server-sdk'
import { becomes } from '@ringwire/testkit/becomes'
import { openBrowser } from '@ringwire/testkit/browser'
import { block } from '@ringwire/testkit/documents'
import { keepConnections, refused, seesAndHears } from '@ringwire/testkit/pages-in-calls'
import { freePort } from '@ringwire/testkit/ports'
import { makeTemporaryDirectory } from '@ringwire/testkit/process'
import { Service } from '@ringwire/testkit/service'
import type { Browser, Page } from 'playwright-core'
import { type Application, installAndStart, npm } from '../../../examples/test/support/example.ts'
import { create, readEnv } from './support/creating.ts'

const root = join(import.meta.dir, '..', '..', '..')
const pictures = process.env.RINGWIRE_PICTURES
const guide = 'docs/guide/app-developers.md'

let directory: Awaited<ReturnType<typeof makeTemporaryDirectory>>
let packed = ''
let browser: Browser

beforeAll(async () => {
  directory = await makeTemporaryDirectory()
  packed = join(directory.path, 'packed')
  await npm(root, 'run', 'pack', '--', packed)
  browser = await openBrowser()
}, 400_000)

afterAll(async () => {
  await browser?.close()
  await directory?.remove()
})

/** The command of the guide, with a folder and packages of the test, and more options; nothing of the workspace is near. */
async function createPacked(env: Readonly<Record<string, string>>, folder: string, ...options: string[]) {
  const [command = ''] = block(guide, 'sh', 'Then, in any folder:').split('\n')
  const typed = command.replaceAll('~/ringwire-packages', packed).replace(' my-app ', ` ${folder} `)
  // In a terminal npx asks whether it may install the package.
  const all = { ...env, npm_config_yes: 'true' }
  return create({ cwd: directory.path, env: all, command: ['sh', '-c', `${typed} "$@"`, 'sh'] }, ...options)
}

async function signIn(application: Application, name: 'ann' | 'ben', viewport = { width: 1280, height: 800 }) {
  const page = await (await browser.newContext({ viewport })).newPage()
  page.setDefaultTimeout(60_000)
  await page.addInitScript(keepConnections)
  await page.goto(application.url)
  await page.waitForSelector(`[data-name=${name}]`)
  await photograph(page, `sign-in-${name}`)
  await page.click(`[data-name=${name}]`)
  await page.waitForSelector('[role=status][data-state=online]')
  return page
}

let flavour = ''
/** With RINGWIRE_PICTURES=FOLDER. */
async function photograph(page: Page, name: string): Promise<void> {
  if (pictures !== undefined) await page.screenshot({ path: join(pictures, `${flavour}-${name}.png`) })
}

const [byId, byTestId] = [(id: string) => `#${id}`, (id: string) => `[data-testid=${id}]`]
const parts = {
  plain: { rings: '#status:has-text("Ann is calling")', answer: byId('answer'), hangUp: byId('hang-up') },
  react: { rings: '[role=alertdialog]:has-text("Ann")', answer: byTestId('accept'), hangUp: byTestId('hangup') },
}

/** A call from its first ring to its end, and what the backend printed of it. */
async function call(application: Application): Promise<void> {
  const { rings, answer, hangUp } = parts[flavour as keyof typeof parts]
  const phone = { width: 390, height: 844 }
  const [ann, ben] = await Promise.all([signIn(application, 'ann'), signIn(application, 'ben', phone)])
  await photograph(ann, 'idle')
  await photograph(ben, 'idle-phone')
  await ann.click('[data-call=video]')
  await ben.waitForSelector(rings)
  await photograph(ann, 'calling')
  await photograph(ben, 'rings-phone')
  await ben.click(answer)
  await Promise.all([ann, ben].map(seesAndHears))
  await photograph(ann, 'live')
  await photograph(ben, 'live-phone')
  await ben.click(hangUp)
  const [, uuid] = await application.says(/^call\.ringing {2}([0-9a-f-]{36}) {2}ann → ben$/m)
  await application.says(new RegExp(`^call\\.ended {2}${uuid} {2}ann → ben {2}hangup$`, 'm'))
  await photograph(ann, 'over')
  for (const page of [ann, ben]) expect(await refused(page)).toEqual([])
  // A page that is loaded again is still signed in.
  await ben.reload()
  await ben.waitForSelector('[role=status][data-state=online]')
  await Promise.all([ann, ben].map((page) => page.context().close()))
}

for (const each of ['react', 'plain'] as const) {
  test(`${each}: made, installed, started; two people see and hear each other, and the webhooks are verified`, async () => {
    flavour = each
    const port = `${await freePort()}`
    const options = [`--${each}`, '--yes', '--port', port]
    // No service that may run on this machine gets a request.
    const env = { RINGWIRE_DATA_DIR: '/nowhere' }
    const first = await createPacked(env, each, ...options)
    expect([first.code, first.err]).toEqual([0, ''])
    const before = readFileSync(join(directory.path, each, '.env'), 'utf8')
    const second = await createPacked(env, each, ...options)
    expect([second.code, second.err]).toEqual([2, expect.stringContaining('has files')])
    expect(readFileSync(join(directory.path, each, '.env'), 'utf8')).toBe(before)
    const application = await installAndStart(join(directory.path, each), {})
    try {
      expect(application.url).toBe(`http://127.0.0.1:${port}`)
      const post = (path: string) => fetch(`${application.url}${path}`, { method: 'POST', body: '{}' })
      for (const path of ['/call-token', '/webhooks', '/invites']) {
        expect([path, (await post(path)).status]).toEqual([path, 401])
      }
      expect((await post('/sign-in?name=mallory')).status).toBe(403)
      await call(application)
    } finally {
      await application.stop()
    }
    await hasTypes(join(directory.path, each))
  }, 300_000)
}

/** What an editor says of the page: nothing. */
async function hasTypes(folder: string): Promise<void> {
  const tsc = Bun.spawn([join(root, 'node_modules', '.bin', 'tsc'), '-p', folder], { stdout: 'pipe' })
  expect([await new Response(tsc.stdout).text(), await tsc.exited]).toEqual(['', 0])
}

test('the README of the package shows the commands of the guide', () => {
  const readme = block('packages/create-ringwire/README.md', 'sh', 'Then, in any folder:')
  expect(readme).toBe(block(guide, 'sh', 'Then, in any folder:'))
})

test('with a service that runs: the key that was made there is used, its webhooks come, and the backend is asked', async () => {
  flavour = 'plain'
  const service = await new Service({ RINGWIRE_WEBHOOK_ALLOW: '127.0.0.1' }).start()
  const port = `${await freePort()}`
  const env = { RINGWIRE_DATA_DIR: service.dataDir }
  const made = await createPacked(env, 'known', '--plain', '--yes', '--product', 'known', '--port', port)
  expect([made.code, made.err]).toEqual([0, ''])
  const settings = readEnv(join(directory.path, 'known'))
  expect(settings).toMatchObject({ RINGWIRE_URL: service.url, PRODUCT: 'known' })
  const application = await installAndStart(join(directory.path, 'known'), {})
  try {
    await call(application)
    const { RINGWIRE_URL: url = '', RINGWIRE_KEY_ID: keyId = '', RINGWIRE_KEY_SECRET: secret = '' } = settings
    const ringwire = createRingwire({ url, keyId, secret })
    const { data } = await ringwire.calls.list()
    expect(data.map(({ status, end_reason }) => [status, end_reason])).toEqual([['ended', 'hangup']])
    // The service writes such entries of the timeline within seconds, not at once [TRACE1].
    const asked = async () => {
      const { entries } = (await ringwire.calls.timeline(data[0]?.call_uuid ?? '')) ?? { entries: [] }
      return entries.find(({ what }) => what === 'invite_hook')?.detail.result
    }
    await becomes(asked, 'allow')
  } finally {
    await application.stop()
    await service.dispose()
  }
}, 300_000)
