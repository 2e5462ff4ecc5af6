import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { openBrowser } from '@ringwire/testkit/browser'
import { checkTypes, writeApplication } from '@ringwire/testkit/documents'
import { makeTemporaryDirectory } from '@ringwire/testkit/process'
import { productKey } from '@ringwire/testkit/service'
import type { Browser, Page } from 'playwright-core'
import { createCallClient } from '../../src/client.ts'
import type { CallState } from '../../src/types.ts'
import { MediaService } from '../media/support/service.ts'
import { block, bundle, fromSource, plainPhone } from './blocks.ts'

/* The words of docs/client.md, run: its phone and its React phone in two browsers each, its bot on Bun and on Node. */

const people = {
  ann: { userId: 'ann', role: 'customer', peerRole: 'agent' },
  ben: { userId: 'ben', role: 'agent', peerRole: 'customer' },
}

const mount = `
import { createCallClient } from '@ringwire/client'
import { createElement } from 'react'
import { createRoot } from 'react-dom/client'
import { Phone } from './phone-view.tsx'

const client = createCallClient({
  getToken: async () => (await fetch('/call-token', { method: 'POST' })).json(),
  storage: sessionStorage,
})
client.connect()
createRoot(document.querySelector('main') as HTMLElement).render(createElement(Phone, { client }))
`

/** What docs/base-clients.md says of its phone, done. It answers every call. */
const plain = `
import { phone } from './plain-phone.js'

const session = await (await fetch('/call-token', { method: 'POST' })).json()
const media = await navigator.mediaDevices.getUserMedia({ audio: true, video: true })
const show = (stream) => {
  document.querySelector('video').srcObject = stream
}
window.phone = phone(session, media, show, () => true)
`

let directory: Awaited<ReturnType<typeof makeTemporaryDirectory>>
let service: MediaService
let browser: Browser
const servers: ReturnType<typeof Bun.serve>[] = []

beforeAll(async () => {
  directory = await makeTemporaryDirectory()
  writeApplication(directory.path, {
    'phone.ts': block('ts', 'A phone in the browser'),
    'phone-view.tsx': block('tsx', 'React'),
    'mount.ts': mount,
    'plain-phone.js': plainPhone(),
    'plain.js': plain,
    'bot.ts': block('ts', 'A bot'),
  })
  ;[service, browser] = await Promise.all([new MediaService().start(), openBrowser()])
}, 240_000)

afterAll(async () => {
  for (const server of servers) await server.stop(true)
  await browser?.close()
  await service?.dispose()
  await directory?.remove()
})

/** An application's server: its page, its script, and its backend that knows who is signed in. */
async function serve(html: string, script: string, person: keyof typeof people): Promise<string> {
  const text = await bundle(join(directory.path, script), 'browser')
  // A device only of this test, so that nothing of the previous one comes to it.
  const deviceId = crypto.randomUUID()
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch(request) {
      const { pathname } = new URL(request.url)
      if (pathname === '/call-token' && request.method === 'POST')
        return service.tokenFor({ ...people[person], deviceId })
      if (/^\/phone\.[jt]s$/.test(pathname))
        return new Response(text, { headers: { 'Content-Type': 'text/javascript' } })
      return new Response(`<!doctype html>${html}`, { headers: { 'Content-Type': 'text/html' } })
    },
  })
  servers.push(server)
  return `http://127.0.0.1:${server.port}/`
}

async function open(
  html: string,
  script: string,
  bens = script,
): Promise<{ ann: Page; ben: Page; close(): Promise<void> }> {
  const failures: string[] = []
  const pages = await Promise.all(
    (['ann', 'ben'] as const).map(async (person) => {
      const context = await browser.newContext()
      const page = await context.newPage()
      page.setDefaultTimeout(60_000)
      page.on('pageerror', (error) => failures.push(error.message))
      const isOnline = page.waitForEvent('websocket').then((socket) => socket.waitForEvent('framereceived'))
      await page.goto(await serve(html, person === 'ben' ? bens : script, person))
      await isOnline
      return page
    }),
  )
  const [ann, ben] = pages as [Page, Page]
  return {
    ...{ ann, ben },
    async close() {
      for (const page of pages) await page.context().close()
      expect(failures).toEqual([])
    },
  }
}

async function seesFrames(page: Page): Promise<void> {
  await page.waitForFunction(
    () => (document.querySelector('video')?.getVideoPlaybackQuality().totalVideoFrames ?? 0) > 5,
  )
}

test('the examples have the types of the packages', async () => {
  expect(await checkTypes(directory.path)).toBe('')
}, 240_000)

test('the page names its script so that Bun bundles it, as the server of the guide does', async () => {
  const page = join(directory.path, 'index.html')
  await Bun.write(page, `<!doctype html>${block('html', 'A phone in the browser')}`)
  const { outputs } = await Bun.build({ entrypoints: [page], target: 'browser', conditions: fromSource })
  const [script] = outputs.filter(({ path }) => path.endsWith('.js'))
  expect(await script?.text()).toContain('RTCPeerConnection')
}, 240_000)

test('the phone: a call with picture, a reload in mid-call, and the end', async () => {
  const { ann, ben, close } = await open(block('html', 'A phone in the browser'), 'phone.ts')
  await ann.click('#call')
  await ben.waitForSelector('#status:has-text("ann is calling")')
  await ben.click('#answer')
  await Promise.all([seesFrames(ann), seesFrames(ben)])
  await ben.reload()
  await Promise.all([seesFrames(ann), seesFrames(ben)])
  await ben.click('#hang-up')
  await ann.waitForSelector('#status:has-text("Over: hangup")')
  await close()
}, 240_000)

test('the React phone: a call with picture, mute, a reload in mid-call, and the end', async () => {
  const page = '<main></main><script type="module" src="phone.js"></script>'
  const { ann, ben, close } = await open(page, 'mount.ts')
  await ann.click('button:has-text("Call Ben"):enabled')
  await ben.waitForSelector('p:has-text("ann: ringing")')
  await ben.click('button:has-text("Answer")')
  await Promise.all([seesFrames(ann), seesFrames(ben)])
  await ann.waitForSelector('figcaption:has-text("flowing")')
  await ann.click('button:has-text("Mute")')
  await ann.waitForSelector('button:has-text("Unmute")')
  await ann.waitForSelector('p:has-text("connected")')
  await ben.reload()
  await seesFrames(ben)
  await ann.click('button:has-text("Hang up")')
  for (const it of [ann, ben]) await it.waitForSelector('button:has-text("Call Ben")')
  await close()
}, 240_000)

test('the phone and the one of docs/base-clients.md, which knows nothing of the SDK, call each other', async () => {
  const { ann, ben, close } = await open(block('html', 'A phone in the browser'), 'phone.ts', 'plain.js')
  await ann.click('#call')
  await Promise.all([seesFrames(ann), seesFrames(ben)])
  await ann.click('#hang-up')
  await ann.waitForSelector('#status:has-text("Over")')
  await ben.waitForFunction(() => document.querySelector('video')?.srcObject === null)

  await ben.evaluate('phone.call("ann", "customer")')
  await ann.waitForSelector('#status:has-text("ben is calling")')
  await ann.click('#answer')
  // That phone names no type, so this is an audio call: its picture is seen, and sound goes back.
  await seesFrames(ann)
  await ben.waitForFunction(() => {
    const stream = document.querySelector('video')?.srcObject
    return stream instanceof MediaStream && stream.getTracks().some(({ muted, kind }) => kind === 'audio' && !muted)
  })
  await ben.evaluate('phone.hangUp()')
  await ann.waitForSelector('#status:has-text("Over: hangup")')
  await close()
}, 240_000)

/** A customer who calls the bot: how the call went. */
async function callBot(userId: string): Promise<CallState[]> {
  const client = createCallClient({
    getToken: async () => (await service.tokenFor({ userId, role: 'customer', peerRole: 'agent' })).json(),
  })
  client.connect()
  const call = client.call({ userId: 'bot', role: 'agent' })
  const states: CallState[] = []
  await new Promise<void>((resolve) => {
    call.on('state', (state) => {
      states.push(state)
      if (state.name === 'over') resolve()
    })
  })
  client.close()
  return states
}

for (const runtime of ['Bun', 'Node'] as const) {
  test(`the bot answers and hangs up, on ${runtime}`, async () => {
    const source = join(directory.path, 'bot.ts')
    const bundled = join(directory.path, 'bot.mjs')
    await Bun.write(bundled, await bundle(source, 'node'))
    const node = Bun.which('node') ?? 'node'
    // Node has a WebSocket from 22 on; 20 has the same one behind an option.
    const isOld = Number(Bun.spawnSync([node, '--version']).stdout.toString().slice(1).split('.')[0]) < 22
    const command =
      runtime === 'Bun' ? [process.execPath, source] : [node, ...(isOld ? ['--experimental-websocket'] : []), bundled]
    const bot = Bun.spawn(command, {
      env: {
        PATH: process.env.PATH ?? '',
        RINGWIRE_URL: service.url,
        RINGWIRE_KEY_ID: productKey.id,
        RINGWIRE_KEY_SECRET: productKey.secret,
      },
      stdout: 'pipe',
    })
    const states = await callBot(`customer-${runtime.toLowerCase()}`)
    expect(states.map(({ name }) => name)).toContain('accepted')
    expect(states.at(-1)).toMatchObject({ name: 'over', status: 'ended', reason: 'closed_today' })
    bot.kill()
    const said = await new Response(bot.stdout).text()
    expect(said.split('\n').slice(0, 3)).toEqual(['connecting', 'online', `customer-${runtime.toLowerCase()} called`])
  }, 240_000)
}

test('media and hooks are as small as the page says, and bring nothing with them', async () => {
  const both = join(directory.path, 'media-and-preview.ts')
  await Bun.write(both, "export * from '@ringwire/client/media'\nexport * from '@ringwire/client/media/preview'\n")
  const source = (file: string) => join(import.meta.dir, '..', '..', 'src', file)
  const sizeOf = async (entry: string): Promise<number> => {
    const { outputs } = await Bun.build({
      entrypoints: [entry],
      target: 'browser',
      minify: true,
      external: ['react'],
      conditions: fromSource,
    })
    return Bun.gzipSync(await outputs[0]!.text(), { level: 9 }).byteLength
  }
  const entries = [source('media/call-media.ts'), source('react/hooks.ts'), both]
  const [media = 0, hooks, withPreview = 0] = await Promise.all(entries.map(sizeOf))
  console.log(`gzipped: media ${media} bytes, hooks ${hooks} bytes; the preview adds ${withPreview - media} bytes`)
  expect(media).toBeLessThan(12_000)
  expect(withPreview - media).toBeLessThan(700)
  expect(hooks).toBeLessThan(500)
})
