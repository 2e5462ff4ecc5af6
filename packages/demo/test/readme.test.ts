import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { openBrowser } from '@ringwire/testkit/browser'
import { makeTemporaryDirectory, type RunningProcess, startProcess } from '@ringwire/testkit/process'
import type { Browser, Page } from 'playwright-core'

/* The README's own words, run: its commands in a shell, its phone in two browsers. */

const root = new URL('../../../', import.meta.url).pathname
const readme = readFileSync(`${root}README.md`, 'utf8')

/** The code of a block: what stands between the fences after the heading or text `after`. */
function block(language: string, after: string): string {
  const start = readme.indexOf(`\`\`\`${language}\n`, readme.indexOf(after))
  const from = start + language.length + 4
  return readme.slice(from, readme.indexOf('\n```', from))
}

let running: RunningProcess
let url: string
let browser: Browser
let pages: ReturnType<typeof Bun.serve>
let sdkPhone = ''
/** Answers of step 2, by who they are for. */
const tokens = new Map<string, object>()
const data = await makeTemporaryDirectory()

beforeAll(async () => {
  running = startProcess([process.execPath, `${root}packages/server/src/main.ts`, 'serve'], {
    RINGWIRE_PORT: '0',
    RINGWIRE_DATA_DIR: data.path,
  })
  ;[, url = ''] = await running.waitFor(/Ringwire listens on (http:\/\/\S+)/)
  browser = await openBrowser()
  const phone = block('js', 'this is a whole phone')
  pages = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch(request) {
      const { pathname } = new URL(request.url)
      const script = (text: string) => new Response(text, { headers: { 'Content-Type': 'text/javascript' } })
      const page = (html: string) => new Response(html, { headers: { 'Content-Type': 'text/html' } })
      if (pathname === '/phone.js') return script(phone)
      if (pathname === '/sdk.js') return script(sdkPhone)
      const person = new URL(request.headers.get('referer') ?? request.url).searchParams.get('person')
      if (pathname === '/call-token') return Response.json(tokens.get(person ?? ''))
      const elements = '<video autoplay playsinline muted></video><button>Call</button>'
      return page(
        `<!doctype html>${elements}${pathname === '/sdk' ? '<script type="module" src="/sdk.js"></script>' : ''}`,
      )
    },
  })
  sdkPhone = await bundleSdkPhone()
}, 90_000)

afterAll(async () => {
  await browser?.close()
  await pages?.stop(true)
  await running?.stop()
  await data.remove()
}, 90_000)

/** The SDK's phone as an application would bundle it, from the SDK's source; the two elements are left to the reader. */
async function bundleSdkPhone(): Promise<string> {
  const entry = `${data.path}/phone.ts`
  const elements = "const video = document.querySelector('video')\nconst button = document.querySelector('button')\n"
  writeFileSync(entry, elements + block('ts', '**3. Call**'))
  symlinkSync(`${root}node_modules`, `${data.path}/node_modules`)
  const { outputs } = await Bun.build({ entrypoints: [entry], target: 'browser', conditions: ['bun'] })
  return outputs[0]?.text() ?? ''
}

async function shell(script: string, env: Record<string, string> = {}): Promise<string> {
  const child = Bun.spawn(['sh', '-ec', script], {
    cwd: root,
    env: { ...process.env, RINGWIRE_DATA_DIR: data.path, ...env },
    stdin: 'ignore',
  })
  const text = await new Response(child.stdout).text()
  expect(await child.exited).toBe(0)
  return text
}

/** Steps 1 and 2 of the README, with the port of this run, for one of the two people. */
async function session(key: { id: string; secret: string }, person: 'ann' | 'ben'): Promise<{ ws_url: string }> {
  let command = block('sh', '**2. Ask for a token**').replace('127.0.0.1:8080', new URL(url).host)
  if (person === 'ben') {
    command = command
      .replace('"user_id": "ann", "role": "customer"', '"user_id": "ben", "role": "agent"')
      .replace('"allowed_peer_role": "agent"', '"allowed_peer_role": "customer"')
  }
  return JSON.parse(await shell(command, { KEY_ID: key.id, SECRET: key.secret }))
}

async function openPhone(page: Page, of: object): Promise<void> {
  await page.goto(`http://127.0.0.1:${pages.port}/`)
  await page.evaluate(async (session) => {
    const { phone } = await import(`${location.origin}/phone.js`)
    const media = await navigator.mediaDevices.getUserMedia({ audio: true, video: true })
    const video = document.querySelector('video') as HTMLVideoElement
    video.muted = true
    const show = (stream: MediaStream | null) => {
      video.srcObject = stream
    }
    Object.assign(window, { phone: phone(session, media, show, () => true) })
  }, of)
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

async function makeKey(): Promise<{ id: string; secret: string }> {
  const made = await shell(block('sh', '**1. Make a key**'))
  return { id: /Key ID\s+(\S+)/.exec(made)?.[1] ?? '', secret: /Secret\s+(\S+)/.exec(made)?.[1] ?? '' }
}

async function showsPicture(page: Page): Promise<void> {
  await page.waitForFunction(
    () => (document.querySelector('video')?.getVideoPlaybackQuality().totalVideoFrames ?? 0) > 5,
  )
  expect(await framesShown(page)).toBeGreaterThan(5)
}

test('[README] the steps lead to a call with picture, and hanging up ends it', async () => {
  const key = await makeKey()
  const ann = await (await browser.newContext()).newPage()
  const ben = await (await browser.newContext()).newPage()
  const open = [firstMessage(ann), firstMessage(ben)]
  await openPhone(ann, await session(key, 'ann'))
  await openPhone(ben, await session(key, 'ben'))
  await Promise.all(open)

  await ann.evaluate('phone.call("ben", "agent")')
  for (const page of [ann, ben]) await showsPicture(page)
  await ben.evaluate('phone.hangUp()')
  await ann.waitForFunction(() => document.querySelector('video')?.srcObject === null)
  // Whoever stays would answer the next call to Ben.
  for (const page of [ann, ben]) await page.context().close()
}, 90_000)

test('[README] the phone of the SDK: a call with picture, which goes on when a page is loaded again', async () => {
  const key = await makeKey()
  for (const person of ['ann', 'ben'] as const) tokens.set(person, await session(key, person))
  const open = async (person: string) => {
    const page = await (await browser.newContext()).newPage()
    const entered = firstMessage(page)
    await page.goto(`http://127.0.0.1:${pages.port}/sdk?person=${person}`)
    await entered
    return page
  }
  const [ann, ben] = [await open('ann'), await open('ben')]
  await ann.click('button')
  for (const page of [ann, ben]) await showsPicture(page)
  await ben.reload()
  for (const page of [ann, ben]) await showsPicture(page)
}, 90_000)

test('[README] a token without a backend opens a socket', async () => {
  const printed = await shell(block('sh', '## Without a backend'))
  const token = /[\w-]+\.[\w-]+\.[\w-]+/.exec(printed)?.[0] ?? ''
  const socket = new WebSocket(`${url.replace('http', 'ws')}/v1/ws`, ['jwt', token])
  const first = await new Promise<string>((resolve) => {
    socket.onmessage = ({ data: text }) => resolve(String(text))
  })
  socket.close()
  expect(JSON.parse(first)).toMatchObject({ event: 'auth.ok', success: true, data: { user_id: 'ann' } })
}, 90_000)
