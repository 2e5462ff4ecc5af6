import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Browser, Page } from 'playwright-core'
import { launchBrowser } from '../../../../scripts/browser.mjs'
import { servePage } from './support/pages.ts'

/*
 * A browser that plays nothing with sound before the user has done something, as people's do. What a test evaluates counts
 * as a gesture, so the page does all of it by itself and prints what it sees.
 */

let browser: Browser
let pages: Awaited<ReturnType<typeof servePage>>
beforeAll(async () => {
  const strict = launchBrowser('--autoplay-policy=document-user-activation-required')
  ;[browser, pages] = await Promise.all([strict, servePage('loopback.ts')])
}, 240_000)
afterAll(async () => {
  await browser?.close()
  await pages?.stop()
})

/** The lines that the page prints, one at a time. */
function printed(page: Page): () => Promise<string> {
  const lines: string[] = []
  let wake = () => {}
  page.on('console', (message) => {
    lines.push(message.text())
    wake()
  })
  page.on('pageerror', (error) => {
    lines.push(`failed: ${error.message}`)
    wake()
  })
  return async () => {
    while (lines.length === 0) await new Promise<void>((resolve) => (wake = resolve))
    return lines.shift() as string
  }
}

/** Runs in the page: a call whose other side plays in a `<video>`. */
function play(capturesLater: boolean): void {
  window.addEventListener('load', async () => {
    const { createPair, flowing, ownStream } = window.loopback
    const pressed = new Promise((resolve) => document.addEventListener('keyup', resolve, { once: true }))
    const media = ownStream()
    const pair = createPair('video', { outgoing: { media }, incoming: { media: capturesLater ? {} : media } })
    const { caller, callee } = pair
    const video = document.body.appendChild(document.createElement('video'))
    const playback = callee.attach(video)
    const isKept = callee.attach(video) === playback
    callee.on(
      'state',
      (() => {
        let before = 'playing'
        return ({ playback: now }: { playback: string }) => {
          if (now !== before) console.log(`${now} ${video.paused}`)
          before = now
        }
      })(),
    )
    console.log(`${callee.state.playback} ${isKept} ${video.srcObject === callee.state.remote}`)
    await Promise.all([caller.start(), callee.start()])
    pair.accept()
    await flowing(callee)
    if (capturesLater) await callee.start({ audio: true })
    await pressed
    playback.detach()
    console.log(`detached ${video.srcObject} ${pair.errors}`)
    pair.close()
  })
}

async function open(capturesLater: boolean): Promise<{ page: Page; next(): Promise<string>; close(): Promise<void> }> {
  const context = await browser.newContext()
  const page = await context.newPage()
  await page.addInitScript(play, capturesLater)
  const next = printed(page)
  await page.goto(pages.url)
  return { page, next, close: () => context.close() }
}

test('what the browser refuses to play is told as blocked; a click plays it', async () => {
  const { page, next, close } = await open(false)
  expect(await next()).toBe('playing true true')
  expect(await next()).toBe('blocked true')
  await page.mouse.click(5, 5)
  expect(await next()).toBe('playing false')
  await page.keyboard.press('a')
  expect(await next()).toBe('detached null ')
  await close()
}, 240_000)

test('what is blocked plays as soon as the page captures', async () => {
  const { page, next, close } = await open(true)
  expect(await next()).toBe('playing true true')
  expect(await next()).toBe('blocked true')
  expect(await next()).toBe('playing false')
  await page.keyboard.press('a')
  expect(await next()).toBe('detached null ')
  await close()
}, 240_000)
