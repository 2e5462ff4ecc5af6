// Click to media: from the click on "call" to the first video frame on both sides, in Chromium with a fake camera.
import { join } from 'node:path'
import { type Browser, chromium, type Page } from 'playwright-core'
import { findSystemProgram } from '../../../scripts/system.mjs'
import type { Side } from './candidate.ts'
import { other } from './dialects/dialect.ts'
import { HttpConnection } from './http-connection.ts'
import { within } from './jobs/clients.ts'
import { type Bench, comparison, type Goal, type MeasurementResult } from './measurement.ts'
import { median, ratios } from './statistics.ts'
import { startSystem } from './systems.ts'
import { mintTokens, tokenRequest } from './tokens.ts'

/** Frames come every 33 ms: a median of fewer says little. */
const CALLS = 30
const CALL_WITHIN_MS = 15_000
const NO_CHROMIUM = 'media: not measured, chromium is missing'
const HTML = `<!doctype html><title>media</title><button id="call">call</button>
<video id="first" muted autoplay playsinline></video><video id="second" muted autoplay playsinline></video>
<script src="/media-page.js"></script>`
/** At most this much more than without any service. */
const GOAL: Goal = { bound: 'at most', value: 1.15 }

const WAYS = ['sdkPhone', 'plainPhone', 'bareRelay', 'onePage'] as const
type Way = (typeof WAYS)[number]
const TITLE: Record<Way, string> = {
  sdkPhone: 'Ringwire, by its SDK, two contexts',
  plainPhone: 'Ringwire, only by its interface, two contexts',
  bareRelay: 'bare relay, two contexts',
  onePage: 'no service, one page',
}

/** What media-page.js offers. */
interface MediaPage {
  prepare(way: Way, options: Record<string, string>): Promise<void>
  clickedAt(): number
  firstFrame(): Promise<number>
  hangUp(isCaller: boolean): Promise<void>
}
declare const bench: MediaPage

type Milliseconds = Record<Way, number>

export async function measureMedia(bench: Bench): Promise<MeasurementResult> {
  const executablePath = findSystemProgram('chromium')
  if (executablePath === undefined) {
    return { name: 'media', tables: [], comparisons: [], notes: [NO_CHROMIUM], raw: null }
  }
  const service = await startSystem('ringwire', bench.placement.serverCore, bench.directory)
  const relay = await startSystem('bare', bench.placement.serverCore, bench.directory)
  const pageServer = await servePage(service.port)
  const browser = await launch(executablePath)
  try {
    return report(await calls(browser, service.port, relay.port, `http://127.0.0.1:${pageServer.port}`))
  } finally {
    await browser.close()
    await service.stop()
    await relay.stop()
    await pageServer.stop(true)
  }
}

async function servePage(servicePort: number) {
  const { outputs } = await Bun.build({ entrypoints: [join(import.meta.dir, 'media-page.js')], target: 'browser' })
  const [script] = outputs
  if (script === undefined) throw new Error('media-page.js cannot be bundled')
  return Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch({ url }) {
      const { pathname, searchParams } = new URL(url)
      if (pathname === '/token') {
        const backend = await HttpConnection.open(servicePort)
        const { body } = await backend.request(tokenRequest(servicePort, searchParams.get('id') ?? ''))
        backend.close()
        return new Response(body)
      }
      if (pathname === '/media-page.js') return new Response(script)
      return new Response(HTML, { headers: { 'Content-Type': 'text/html' } })
    },
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

async function calls(browser: Browser, service: number, relay: number, url: string): Promise<Milliseconds[]> {
  const [callerToken, calleeToken] = await mintTokens(service, ['plain-caller', 'plain-callee'])
  const phones = async (way: Way, options: (side: Side) => Record<string, string>) => [
    await open(browser, url, way, options('caller')),
    await open(browser, url, way, options('callee')),
  ]
  const pages: Record<Way, Page[]> = {
    sdkPhone: await phones('sdkPhone', (side) => ({ tokenUrl: `/token?id=sdk-${side}`, peerId: `sdk-${other(side)}` })),
    plainPhone: await phones('plainPhone', (side) => ({
      url: `ws://127.0.0.1:${service}/v1/ws`,
      token: side === 'caller' ? callerToken! : calleeToken!,
      peerId: `plain-${other(side)}`,
    })),
    bareRelay: await phones('bareRelay', (side) => ({
      url: `ws://127.0.0.1:${relay}/`,
      id: side,
      peerId: other(side),
    })),
    onePage: [await open(browser, url, 'onePage', {})],
  }
  const results: Milliseconds[] = []
  // The first call compiles the pages and starts the codecs.
  for (let i = 0; i <= CALLS; i++) {
    const result: Milliseconds = { sdkPhone: 0, plainPhone: 0, bareRelay: 0, onePage: 0 }
    for (const way of WAYS) result[way] = await within(CALL_WITHIN_MS, TITLE[way], call(pages[way]))
    if (i > 0) results.push(result)
  }
  return results
}

/** A context of its own for each, as two people have, and the camera open before the first call. */
async function open(browser: Browser, url: string, way: Way, options: Record<string, string>): Promise<Page> {
  const context = await browser.newContext()
  const page = await context.newPage()
  await page.goto(url)
  await page.evaluate(([way, options]) => bench.prepare(way, options), [way, options] as const)
  return page
}

/** Milliseconds from the click until the last of the pages has its first frame. */
async function call(pages: readonly Page[]): Promise<number> {
  const [caller] = pages
  await caller!.click('#call')
  const frames = await Promise.all(pages.map((page) => page.evaluate(() => bench.firstFrame())))
  const clickedAt = await caller!.evaluate(() => bench.clickedAt())
  for (const page of pages) await page.evaluate((isCaller) => bench.hangUp(isCaller), page === caller)
  return Math.max(...frames) - clickedAt
}

function report(results: Milliseconds[]): MeasurementResult {
  const times = (way: Way) => results.map((result) => result[way])
  const row = (way: Way) => [
    TITLE[way],
    ...[median(times(way)), Math.min(...times(way)), Math.max(...times(way))].map((ms) => `${Math.round(ms)} ms`),
  ]
  const compare = (way: Way, against: Way, goal: Goal | null) =>
    comparison(`media, ${TITLE[way]}`, TITLE[against], ratios(times(way), times(against)), goal)
  return {
    name: 'media',
    tables: [
      {
        title: `Media: click to the first video frame on both sides, ${results.length} calls`,
        head: ['', 'median', 'min', 'max'],
        rows: WAYS.map(row),
      },
    ],
    comparisons: [
      compare('sdkPhone', 'onePage', GOAL),
      compare('sdkPhone', 'bareRelay', GOAL),
      compare('plainPhone', 'onePage', null),
      compare('bareRelay', 'onePage', null),
    ],
    notes: [],
    raw: results,
  }
}
