// Click to media: from the click on "call" to the first video frame on both sides, in Chromium with a fake camera.
import { type Browser, chromium, type Page } from 'playwright-core'
import { findSystemProgram } from '../../../scripts/system.mjs'
import { within } from './jobs/clients.ts'
import type { Bench, MeasurementResult } from './measurement.ts'
import { comparison } from './measurement.ts'
import { median, ratios } from './statistics.ts'
import { type RunningSystem, startSystem } from './systems.ts'
import { mintTokens } from './tokens.ts'

const CALLS = 10
const CALL_WITHIN_MS = 15_000
const NO_CHROMIUM = 'media: not measured, chromium is missing'
const HTML = `<!doctype html><title>media</title><button id="call">call</button>
<video id="first" muted autoplay playsinline></video><video id="second" muted autoplay playsinline></video>
<script src="/media-page.js"></script>`

/** What media-page.js offers. */
interface MediaPage {
  prepare(): Promise<void>
  connect(url: string, token: string, side: string): Promise<void>
  clickedAt(): number
  firstFrame(): Promise<number>
  hangUp(): void
}
declare const bench: MediaPage

interface Milliseconds {
  service: number
  onePage: number
}

export async function measureMedia(bench: Bench): Promise<MeasurementResult> {
  const executablePath = findSystemProgram('chromium')
  if (executablePath === undefined) {
    return { name: 'media', tables: [], comparisons: [], notes: [NO_CHROMIUM], raw: null }
  }
  const pageServer = servePage()
  const service = await startSystem('ringwire', bench.placement.serverCore, bench.directory)
  try {
    const browser = await launch(executablePath)
    try {
      return report(await calls(browser, service, `http://127.0.0.1:${pageServer.port}/`))
    } finally {
      await browser.close()
    }
  } finally {
    await service.stop()
    await pageServer.stop(true)
  }
}

function servePage() {
  const script = Bun.file(new URL('media-page.js', import.meta.url))
  return Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: ({ url }) =>
      url.endsWith('.js') ? new Response(script) : new Response(HTML, { headers: { 'Content-Type': 'text/html' } }),
  })
}

function launch(executablePath: string): Promise<Browser> {
  return chromium.launch({
    executablePath,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      '--use-fake-device-for-media-stream',
      '--use-fake-ui-for-media-stream',
      '--disable-features=WebRtcHideLocalIpsWithMdns',
      '--autoplay-policy=no-user-gesture-required',
    ],
  })
}

async function calls(browser: Browser, service: RunningSystem, url: string): Promise<Milliseconds[]> {
  const [callerToken, calleeToken] = await mintTokens(service.port, ['media-caller', 'media-callee'])
  const caller = await open(browser, url)
  const callee = await open(browser, url)
  const alone = await open(browser, url)
  const wsUrl = `ws://127.0.0.1:${service.port}/v1/ws`
  await caller.evaluate(([to, token]) => bench.connect(to!, token!, 'caller'), [wsUrl, callerToken!])
  await callee.evaluate(([to, token]) => bench.connect(to!, token!, 'callee'), [wsUrl, calleeToken!])
  const results: Milliseconds[] = []
  // The first call compiles the pages and starts the codecs.
  for (let i = 0; i <= CALLS; i++) {
    const service = await within(CALL_WITHIN_MS, 'A call through the service', call(caller, [caller, callee]))
    const onePage = await within(CALL_WITHIN_MS, 'A call in one page', call(alone, [alone]))
    if (i > 0) results.push({ service, onePage })
  }
  return results
}

/** A context of its own for each, as two people have, and the camera open before the first call. */
async function open(browser: Browser, url: string): Promise<Page> {
  const context = await browser.newContext()
  const page = await context.newPage()
  await page.goto(url)
  await page.evaluate(() => bench.prepare())
  return page
}

/** Milliseconds from the click until the last of the pages has its first frame. */
async function call(caller: Page, pages: readonly Page[]): Promise<number> {
  await caller.click('#call')
  const frames = await Promise.all(pages.map((page) => page.evaluate(() => bench.firstFrame())))
  const clickedAt = await caller.evaluate(() => bench.clickedAt())
  for (const page of pages) await page.evaluate(() => bench.hangUp())
  return Math.max(...frames) - clickedAt
}

function report(results: Milliseconds[]): MeasurementResult {
  const service = results.map((result) => result.service)
  const onePage = results.map((result) => result.onePage)
  const row = (title: string, values: number[]) => [
    title,
    ...[median(values), Math.min(...values), Math.max(...values)].map((ms) => `${Math.round(ms)} ms`),
  ]
  return {
    name: 'media',
    tables: [
      {
        title: `Media: click to the first video frame on both sides, ${results.length} calls`,
        head: ['', 'median', 'min', 'max'],
        rows: [row('Ringwire, two contexts', service), row('no service, one page', onePage)],
      },
    ],
    comparisons: [comparison('media', 'no service, one page', ratios(service, onePage), null)],
    notes: [],
    raw: results,
  }
}
