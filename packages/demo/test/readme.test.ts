import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import type { Browser, Page } from 'playwright-core'
import { launchBrowser } from './support/browser.ts'
import { makeTemporaryDirectory, type RunningProcess, startProcess } from './support/process.ts'

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
const data = await makeTemporaryDirectory()

beforeAll(async () => {
  running = startProcess([process.execPath, `${root}packages/server/src/main.ts`, 'serve'], {
    RINGWIRE_PORT: '0',
    RINGWIRE_DATA_DIR: data.path,
  })
  ;[, url = ''] = await running.waitFor(/Ringwire listens on (http:\/\/\S+)/)
  browser = await launchBrowser()
  const phone = block('js', '**3. Call.**')
  pages = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch(request) {
      if (new URL(request.url).pathname === '/phone.js') {
        return new Response(phone, { headers: { 'Content-Type': 'text/javascript' } })
      }
      return new Response('<!doctype html><video autoplay playsinline></video>', {
        headers: { 'Content-Type': 'text/html' },
      })
    },
  })
})

afterAll(async () => {
  await browser?.close()
  await pages?.stop(true)
  await running?.stop()
  await data.remove()
})

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

test('[README] the steps lead to a call with picture, and hanging up ends it', async () => {
  const made = await shell(block('sh', '**1. Make a key**'))
  const key = {
    id: /Key ID\s+(\S+)/.exec(made)?.[1] ?? '',
    secret: /Secret\s+(\S+)/.exec(made)?.[1] ?? '',
  }
  const ann = await (await browser.newContext()).newPage()
  const ben = await (await browser.newContext()).newPage()
  const open = [firstMessage(ann), firstMessage(ben)]
  await openPhone(ann, await session(key, 'ann'))
  await openPhone(ben, await session(key, 'ben'))
  await Promise.all(open)

  await ann.evaluate('phone.call("ben", "agent")')
  for (const page of [ann, ben]) {
    await page.waitForFunction(
      () => (document.querySelector('video')?.getVideoPlaybackQuality().totalVideoFrames ?? 0) > 5,
    )
    expect(await framesShown(page)).toBeGreaterThan(5)
  }
  await ben.evaluate('phone.hangUp()')
  await ann.waitForFunction(() => document.querySelector('video')?.srcObject === null)
})

test('[README] a token without a backend opens a socket', async () => {
  const printed = await shell(block('sh', '## Without a backend'))
  const token = /[\w-]+\.[\w-]+\.[\w-]+/.exec(printed)?.[0] ?? ''
  const socket = new WebSocket(`${url.replace('http', 'ws')}/v1/ws`, ['jwt', token])
  const first = await new Promise<string>((resolve) => {
    socket.onmessage = ({ data: text }) => resolve(String(text))
  })
  socket.close()
  expect(JSON.parse(first)).toMatchObject({ event: 'auth.ok', success: true, data: { user_id: 'ann' } })
})
