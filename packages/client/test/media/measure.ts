// `bun packages/client/test/media/measure.ts [count]`: how long calls take to their media, as medians. Not a test.
import { writeSync } from 'node:fs'
import type { Page } from 'playwright-core'
import { startPhones } from './support/phones.ts'

const count = Number(process.argv[2] ?? 10)

interface Times {
  packet: number
  frame: number
}

/** Looks every 5 ms, from now on or from the page's next load, for the first packet and the first decoded frame. */
function watch(): void {
  const seen = { packet: 0, frame: 0 }
  Object.assign(window, { seen })
  const timer = setInterval(async () => {
    const { connection } = window.phone?.media ?? {}
    if (!connection) return
    const { audioPackets, videoPackets, framesDecoded } = await window.phone.totals()
    if (audioPackets + videoPackets > 0) seen.packet ||= Date.now()
    if (framesDecoded > 0) seen.frame ||= Date.now()
    if (seen.frame > 0) clearInterval(timer)
  }, 5)
}

declare global {
  interface Window {
    seen: Times
  }
}

async function seen(page: Page, from: number): Promise<Times> {
  await page.waitForFunction(() => window.seen?.frame > 0)
  const { packet, frame } = await page.evaluate(() => window.seen)
  return { packet: packet - from, frame: frame - from }
}

/** From the click on "call" to media at both: the other page answers at once. And from the answer's click. */
async function call(query: string, delayMs: number): Promise<{ dialled: Times; answered: Times }> {
  const { customer, agent, both, close } = await phones.open(`silent=1&${query}`, delayMs)
  for (const { page } of both) await page.evaluate(watch)
  const dialledAt = await customer.page.evaluate((userId) => {
    window.phone.dial(userId, 'agent', 'video')
    return Date.now()
  }, agent.userId)
  await agent.page.waitForFunction(() => window.phone.call !== undefined, undefined, { polling: 5 })
  const answeredAt = await agent.page.evaluate(() => {
    const { call } = window.phone
    const at = Date.now()
    if (call) window.phone.take(call)
    void call?.accept()
    return at
  })
  const all = await Promise.all(both.map(({ page }) => seen(page, answeredAt)))
  const answered = { packet: Math.max(...all.map((it) => it.packet)), frame: Math.max(...all.map((it) => it.frame)) }
  const before = answeredAt - dialledAt
  await close()
  return { dialled: { packet: answered.packet + before, frame: answered.frame + before }, answered }
}

/** From the reload to media at the page that was loaded again, and at the other one. */
async function reload(): Promise<{ own: Times; other: Times }> {
  const { customer, agent, connect, expectMedia, close } = await phones.open()
  await connect('video')
  await expectMedia(1, ['audio', 'video'])
  await agent.page.addInitScript(watch)
  // The other page sees the new connection by counters that begin anew.
  await customer.page.evaluate(`window.watch = ${watch}`)
  await customer.page.evaluate(() => {
    const before = window.phone.media?.connection
    const timer = setInterval(() => {
      if (window.phone.media?.connection === before) return
      clearInterval(timer)
      window.watch()
    }, 5)
  })
  const at = Date.now()
  await agent.page.reload()
  const [own, other] = await Promise.all([seen(agent.page, at), seen(customer.page, at)])
  await close()
  return { own, other }
}

declare global {
  interface Window {
    watch: typeof watch
  }
}

const median = (values: number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN

function print(what: string, times: Times[]): void {
  const packet = times.map((it) => it.packet)
  const frame = times.map((it) => it.frame)
  const range = (values: number[]) => `${Math.round(median(values))} (${Math.min(...values)} to ${Math.max(...values)})`
  writeSync(1, `${what}: first packet ${range(packet)} ms, first frame ${range(frame)} ms\n`)
}

const phones = await startPhones()
try {
  const rounds = Array.from({ length: count }, (_, i) => i)
  const ways = [0, 40].flatMap((delayMs) => ['', 'late=1'].map((query) => ({ delayMs, query })))
  for (const { delayMs, query } of ways) {
    const calls: Awaited<ReturnType<typeof call>>[] = []
    for (const _ of rounds) calls.push(await call(query, delayMs))
    const how = `service ${delayMs} ms away, ${query === '' ? 'offer while it rings' : 'offer after the answer'}`
    print(
      `From the call to media at both (${how})`,
      calls.map(({ dialled }) => dialled),
    )
    print(
      `From the answer to media at both (${how})`,
      calls.map(({ answered }) => answered),
    )
  }
  const reloads: Awaited<ReturnType<typeof reload>>[] = []
  for (const _ of rounds) reloads.push(await reload())
  print(
    'From the reload to media at the page that was loaded again',
    reloads.map(({ own }) => own),
  )
  print(
    'From the reload to media at the other page',
    reloads.map(({ other }) => other),
  )
} finally {
  await phones.stop()
}
