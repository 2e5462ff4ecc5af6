import { afterAll, beforeAll, expect, test } from 'bun:test'
import { openBrowser } from '@ringwire/testkit/browser'
import { block, projectRoot, writeApplication } from '@ringwire/testkit/documents'
import { freePort } from '@ringwire/testkit/ports'
import { makeTemporaryDirectory, type RunningProcess, startProcess } from '@ringwire/testkit/process'
import type { Browser, Page } from 'playwright-core'

/* The words of the README and of docs/guide, run: the commands in a shell, the phones in two browsers. */

const backendGuide = 'docs/guide/backend-developers.md'
const appGuide = 'docs/guide/app-developers.md'
const operatorGuide = 'docs/guide/operators.md'

let running: RunningProcess
let url: string
let browser: Browser
let pages: ReturnType<typeof Bun.serve>
const data = await makeTemporaryDirectory()

beforeAll(async () => {
  running = startProcess([process.execPath, `${projectRoot}/packages/server/src/main.ts`, 'serve'], {
    RINGWIRE_PORT: '0',
    RINGWIRE_DATA_DIR: data.path,
  })
  ;[, url = ''] = await running.waitFor(/Ringwire listens on (http:\/\/\S+)/)
  browser = await openBrowser()
  const phone = block('docs/base-clients.md', 'js', '## A whole phone')
  pages = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch(request) {
      const { pathname } = new URL(request.url)
      if (pathname === '/phone.js') return new Response(phone, { headers: { 'Content-Type': 'text/javascript' } })
      const elements = '<!doctype html><video autoplay playsinline muted></video>'
      return new Response(elements, { headers: { 'Content-Type': 'text/html' } })
    },
  })
  writeApplication(data.path, {
    'index.html': block(appGuide, 'html', '## Your own page'),
    'server.ts': block(appGuide, 'ts', '## Your own page'),
    'backend.ts': block(backendGuide, 'ts', '## Issue tokens'),
    'readme.ts': block('README.md', 'ts', '**3. Call**'),
  })
  // An unpacked package has no JavaScript, and Bun's server takes nothing else.
  const entrypoints = [`${data.path}/readme.ts`]
  const { outputs } = await Bun.build({ entrypoints, target: 'browser', conditions: ['bun'] })
  await Bun.write(`${data.path}/phone.ts`, (await outputs[0]?.text()) ?? '')
}, 240_000)

afterAll(async () => {
  await browser?.close()
  await pages?.stop(true)
  await running?.stop()
  await data.remove()
}, 240_000)

async function shell(script: string, env: Record<string, string> = {}): Promise<string> {
  const child = Bun.spawn(['sh', '-ec', script], {
    cwd: projectRoot,
    env: { ...process.env, RINGWIRE_DATA_DIR: data.path, ...env },
    stdin: 'ignore',
  })
  const text = await new Response(child.stdout).text()
  expect(await child.exited).toBe(0)
  return text
}

/** Steps 1 and 2 of the README, with the port of this run, for one of the two people. */
async function session(key: { id: string; secret: string }, person: 'ann' | 'ben'): Promise<{ ws_url: string }> {
  let command = block('README.md', 'sh', '**2. Ask for a token**').replace('127.0.0.1:8080', new URL(url).host)
  if (person === 'ben') {
    command = command
      .replace('"user_id": "ann", "role": "customer"', '"user_id": "ben", "role": "agent"')
      .replace('"allowed_peer_role": "agent"', '"allowed_peer_role": "customer"')
  }
  const variables = block('README.md', 'sh', 'reads it from these two variables')
  const [id, secret] = [`RINGWIRE_KEY_ID='${key.id}'`, `RINGWIRE_KEY_SECRET='${key.secret}'`]
  const set = variables.replace('RINGWIRE_KEY_ID=…', id).replace('RINGWIRE_KEY_SECRET=…', secret)
  return JSON.parse(await shell(`${set}\n${command}`))
}

/** With `callee` it calls in the same moment, before its socket can be open. */
async function openPhone(page: Page, of: object, callee?: string): Promise<void> {
  await page.goto(`http://127.0.0.1:${pages.port}/`)
  await page.evaluate(
    async ([session, callee]) => {
      const { phone } = await import(`${location.origin}/phone.js`)
      const media = await navigator.mediaDevices.getUserMedia({ audio: true, video: true })
      const video = document.querySelector('video') as HTMLVideoElement
      video.muted = true
      const show = (stream: MediaStream | null) => {
        video.srcObject = stream
      }
      const made = phone(session, media, show, () => true)
      Object.assign(window, { phone: made })
      if (callee !== undefined) made.call(callee, 'agent')
    },
    [of, callee] as const,
  )
}

/** Resolves when the page's socket has had its first message, which is `auth.ok`. */
function firstMessage(page: Page): Promise<void> {
  return new Promise((resolve) => {
    page.on('websocket', (socket) => {
      socket.on('framereceived', () => resolve())
    })
  })
}

/** Frames that the other side's picture has shown. */
function framesShown(page: Page): Promise<number> {
  return page.evaluate(() => document.querySelector('video')?.getVideoPlaybackQuality().totalVideoFrames ?? 0)
}

async function makeKey(
  command = block('README.md', 'sh', '**1. Make a key**'),
): Promise<{ id: string; secret: string }> {
  const made = await shell(command)
  return { id: /Key ID\s+(\S+)/.exec(made)?.[1] ?? '', secret: /Secret\s+(\S+)/.exec(made)?.[1] ?? '' }
}

async function showsPicture(page: Page): Promise<void> {
  await page.waitForFunction(
    () => (document.querySelector('video')?.getVideoPlaybackQuality().totalVideoFrames ?? 0) > 5,
  )
  expect(await framesShown(page)).toBeGreaterThan(5)
}

test('[README] a phone that needs nothing but WebSocket: a call with picture, and hanging up ends it', async () => {
  const key = await makeKey()
  const ann = await (await browser.newContext()).newPage()
  const ben = await (await browser.newContext()).newPage()
  await openPhone(ben, await session(key, 'ben'))
  await openPhone(ann, await session(key, 'ann'), 'ben')
  for (const page of [ann, ben]) await showsPicture(page)
  await ben.evaluate('phone.hangUp()')
  await ann.waitForFunction(() => document.querySelector('video')?.srcObject === null)
  // A page that stays would answer the next call to Ben.
  for (const page of [ann, ben]) await page.context().close()
}, 240_000)

test("[guide] a page of one's own: a call with picture, which goes on when a page is loaded again", async () => {
  const key = await makeKey()
  expect(block(appGuide, 'sh', 'Put its ID and secret into the environment')).toBe('npx bun server.ts\n')
  const env = { RINGWIRE_KEY_ID: key.id, RINGWIRE_KEY_SECRET: key.secret, RINGWIRE_URL: url, PORT: '0' }
  const server = startProcess([process.execPath, `${data.path}/server.ts`], env)
  const [, ofAnn = '', ofBen = ''] = await server.waitFor(/Open (\S+) here, and (\S+) in a private window/)
  expect((await fetch(new URL('/call-token', ofAnn), { method: 'POST' })).status).toBe(401)
  const open = async (signIn: string) => {
    const page = await (await browser.newContext()).newPage()
    const entered = firstMessage(page)
    await page.goto(signIn)
    await entered
    return page
  }
  const [ann, ben] = [await open(ofAnn), await open(ofBen)]
  await ann.click('button')
  for (const page of [ann, ben]) await showsPicture(page)
  await ben.reload()
  for (const page of [ann, ben]) await showsPicture(page)
  await server.stop()
}, 240_000)

/** The first message to a socket with this token. */
async function firstWord(token: string): Promise<object> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/v1/ws`, ['jwt', token])
  const first = await new Promise<string>((resolve) => {
    socket.onmessage = ({ data: text }) => resolve(String(text))
  })
  socket.close()
  return JSON.parse(first)
}
const entered = { event: 'auth.ok', success: true, data: { user_id: 'ann' } }

test('[README] a token without a backend opens a socket', async () => {
  const [command = ''] = block('README.md', 'sh', '**Without a backend**').split('\n')
  expect(command).toStartWith('npx ringwire token')
  const token = /[\w-]+\.[\w-]+\.[\w-]+/.exec(await shell(command))?.[0] ?? ''
  expect(await firstWord(token)).toMatchObject(entered)
}, 240_000)

test('[guide] the route of a backend gives a token to whoever is signed in, and to nobody else', async () => {
  const key = await makeKey(block(backendGuide, 'sh', 'Make a key'))
  const port = await freePort()
  const env = { RINGWIRE_KEY_ID: key.id, RINGWIRE_KEY_SECRET: key.secret, RINGWIRE_URL: url, PORT: String(port) }
  expect(block(backendGuide, 'sh', 'Start it with')).toBe('npx bun backend.ts\n')
  const backend = startProcess([process.execPath, `${data.path}/backend.ts`], env)
  await backend.waitFor(/The backend listens/)
  const command = block(backendGuide, 'sh', 'npx bun backend.ts').replace('127.0.0.1:3000', `127.0.0.1:${port}`)
  const { token } = JSON.parse(await shell(command))
  expect(await firstWord(token)).toMatchObject(entered)

  const route = `http://127.0.0.1:${port}/call-token`
  expect((await fetch(route, { method: 'POST' })).status).toBe(401)
  await backend.stop()
  const wrong = startProcess([process.execPath, `${data.path}/backend.ts`], { ...env, RINGWIRE_KEY_SECRET: 'wrong' })
  await wrong.waitFor(/The backend listens/)
  expect((await fetch(route, { method: 'POST', headers: { Cookie: 'user=ann' } })).status).toBe(502)
  await wrong.stop()
  expect(wrong.output).toContain('PRODUCT_AUTH_INVALID_SECRET')
}, 240_000)

test('[guide] an operator checks the settings before the service runs', async () => {
  const [install, check = '', serve] = block(operatorGuide, 'sh', '## Run it').trimEnd().split('\n')
  // A fresh clone is set up in set-up.long.test.ts; the service of these tests is the third one.
  expect([install, serve]).toEqual(['npm ci --omit=dev --no-audit --no-fund', 'npx ringwire serve'])
  expect(await shell(check)).toContain('RINGWIRE_DATA_DIR')
}, 240_000)

test('[guide] an operator sees that the service lives, and what is in force, without secrets', async () => {
  const probes = block(operatorGuide, 'sh', 'In another terminal').replaceAll('127.0.0.1:8080', new URL(url).host)
  const said = await shell(probes)
  expect(said).toContain('"database":"ok"')
  expect(said).toMatch(/Key ID\s+\S+/)
  const settings = [block(operatorGuide, 'sh', '## Let clients in'), block(operatorGuide, 'sh', 'need a TURN server')]
  const checked = await shell([...settings, 'npx ringwire config check'].join('\n'))
  for (const [, value = ''] of settings.join('').matchAll(/^export (?!\w+SECRET)\w+='?([^'\n]+)'?$/gm)) {
    expect(checked).toContain(value)
  }
  expect(checked).not.toContain('the-static-auth-secret-of-coturn')
}, 240_000)
