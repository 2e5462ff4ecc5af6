import { expect } from 'bun:test'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { expectFlow } from '../../../../demo/test/support/flow.ts'

export interface Phone {
  userId: string
  role: 'customer' | 'agent'
  page: Page
  context: BrowserContext
  failures: string[]
}

/** A service that is so far away, each way. */
async function delay(page: Page, ms: number): Promise<void> {
  await page.routeWebSocket(/\/v1\/ws/, (route) => {
    const service = route.connectToServer()
    route.onMessage((message) => void setTimeout(() => service.send(message), ms))
    service.onMessage((message) => void setTimeout(() => route.send(message), ms))
  })
}

async function open(browser: Browser, url: string, role: Phone['role'], query: string, ms: number): Promise<Phone> {
  const context = await browser.newContext()
  // Shorter than a test may take, so that a failure says what it waited for.
  context.setDefaultTimeout(60_000)
  const page = await context.newPage()
  const failures: string[] = []
  page.on('pageerror', (error) => failures.push(error.message))
  if (ms > 0) await delay(page, ms)
  const userId = `${role}-${crypto.randomUUID().slice(0, 8)}`
  const peer = role === 'customer' ? 'agent' : 'customer'
  await page.goto(`${url}?user=${userId}&role=${role}&peer=${peer}&device=${crypto.randomUUID()}&${query}`)
  await online(page)
  return { userId, role, page, context, failures }
}

export async function online(page: Page): Promise<void> {
  await page.waitForFunction(() => window.phone?.client.state.name === 'online')
}

/** Two people in browser contexts of their own, online. */
export async function openPhones(browser: Browser, url: string, query = '', delayMs = 0) {
  const [customer, agent] = await Promise.all([
    open(browser, url, 'customer', query, delayMs),
    open(browser, url, 'agent', query, delayMs),
  ])
  const both = [customer, agent]
  return {
    ...{ customer, agent, both },
    /** The customer calls; the agent's page answers by itself. */
    async connect(callType: 'audio' | 'video'): Promise<void> {
      await customer.page.evaluate(([userId, type]) => window.phone.dial(userId, 'agent', type), [
        agent.userId,
        callType,
      ] as [string, string])
      await agent.page.waitForFunction(() => window.phone.media !== undefined)
      await Promise.all(both.map(({ page }) => page.evaluate(() => window.phone.flowing())))
    },
    /**
     * Sound in every window of 500 ms at both, and pictures in all of them together. They begin when each kind comes: media
     * flows by what comes first, and the other side may still be opening its devices.
     */
    async expectMedia(windows: number, kinds: readonly ('audio' | 'video')[]): Promise<void> {
      const measure = async ([count, kinds]: [number, readonly ('audio' | 'video')[]]) => {
        await window.phone.until(() => kinds.every((kind) => window.phone.media?.state.receiving[kind]))
        return window.phone.measureFlow(count)
      }
      const flows = both.map(({ page }) => page.evaluate(measure, [windows, kinds] as [number, typeof kinds]))
      for (const flow of await Promise.all(flows)) expectFlow(flow, kinds)
    },
    async close(): Promise<void> {
      const errors = await Promise.all(both.map(({ page }) => page.evaluate(() => window.phone.errors)))
      await Promise.all(both.map(({ context }) => context.close()))
      expect([...errors.flat(), ...both.flatMap(({ failures }) => failures)]).toEqual([])
    },
  }
}
