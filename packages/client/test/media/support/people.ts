import { expect } from 'bun:test'
import { until } from '@ringwire/testkit/patience'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { expectFlow, isFlowing } from '../../../../demo/test/support/flow.ts'

/** A page of any browser, as the tests drive it. */
export interface DrivenPage {
  evaluate<Result, Argument>(run: (argument: Argument) => Result | Promise<Result>, argument: Argument): Promise<Result>
  evaluate<Result>(run: () => Result | Promise<Result>): Promise<Result>
  waitForFunction(isTrue: () => unknown): Promise<unknown>
  click(selector: string): Promise<void>
}

export interface PhoneOf<AnyPage extends DrivenPage> {
  readonly userId: string
  readonly page: AnyPage
  /** Errors that nothing in the page caught. */
  readonly failures: readonly string[]
  close(): Promise<void>
}

export interface Phone extends PhoneOf<Page> {
  role: 'customer' | 'agent'
  context: BrowserContext
}

/** A service that is so far away, each way. */
async function delay(page: Page, ms: number): Promise<void> {
  await page.routeWebSocket(/\/v1\/ws/, (route) => {
    const service = route.connectToServer()
    route.onMessage((message) => void setTimeout(() => service.send(message), ms))
    service.onMessage((message) => void setTimeout(() => route.send(message), ms))
  })
}

/** The page of a phone in a browser context of its own, online; the service is `ms` away, each way. */
export async function openPhone(
  browser: Browser,
  url: string,
  role: Phone['role'],
  query = '',
  ms = 0,
): Promise<Phone> {
  const context = await browser.newContext()
  // Shorter than a test may take, so that a failure says what it waited for.
  context.setDefaultTimeout(60_000)
  const page = await context.newPage()
  const failures: string[] = []
  page.on('pageerror', (error) => failures.push(error.message))
  if (ms > 0) await delay(page, ms)
  const { userId, search } = person(role)
  // The first of a name counts: a test may say whom the phone may call.
  await page.goto(`${url}?${query}&${search}`)
  await online(page)
  return { userId, role, page, context, failures, close: () => context.close() }
}

/** Somebody new, and the query with which the page of a phone is theirs. */
export function person(role: Phone['role']): { userId: string; search: string } {
  const userId = `${role}-${crypto.randomUUID().slice(0, 8)}`
  const peer = role === 'customer' ? 'agent' : 'customer'
  return { userId, search: `user=${userId}&role=${role}&peer=${peer}&device=${crypto.randomUUID()}` }
}

export async function online(page: DrivenPage): Promise<void> {
  await page.waitForFunction(() => window.phone?.client.state.name === 'online')
}

/** Two people in browser contexts of their own, online. */
export async function openPhones(browser: Browser, url: string, query = '', delayMs = 0) {
  const [customer, agent] = await Promise.all([
    openPhone(browser, url, 'customer', query, delayMs),
    openPhone(browser, url, 'agent', query, delayMs),
  ])
  return pairOf(customer, agent)
}

/** What two people do with each other, whichever browser each of them has. */
export function pairOf<AnyPage extends DrivenPage, AnyPhone extends PhoneOf<AnyPage>>(
  customer: AnyPhone,
  agent: AnyPhone,
) {
  const both = [customer, agent]

  function measure(windows: number, kinds: readonly ('audio' | 'video')[]) {
    const inPage = async ([count, kinds]: [number, readonly ('audio' | 'video')[]]) => {
      await window.phone.until(() => kinds.every((kind) => window.phone.media?.state.receiving[kind]))
      await window.phone.arriving(kinds)
      return window.phone.measureFlow(count)
    }
    return Promise.all(both.map(({ page }) => page.evaluate(inPage, [windows, kinds] as [number, typeof kinds])))
  }

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
     * flows by what comes first, the other side may still be opening its devices, and a new path takes a moment.
     */
    async expectMedia(windows: number, kinds: readonly ('audio' | 'video')[]): Promise<void> {
      for (const flow of await measure(windows, kinds)) expectFlow(flow, kinds)
    },
    /** The same from some moment on: what the old path still carried says nothing of the new one. */
    async expectMediaAtLast(windows: number, kinds: readonly ('audio' | 'video')[]): Promise<void> {
      await until('media flows at both', async () =>
        (await measure(windows, kinds)).every((it) => isFlowing(it, kinds)),
      )
    },
    /** `expected`: what a browser may complain of. */
    async close(expected?: RegExp): Promise<void> {
      const errors = await Promise.all(both.map(({ page }) => page.evaluate(() => window.phone.errors)))
      await Promise.all(both.map((phone) => phone.close()))
      const failures = [...errors.flat(), ...both.flatMap((phone) => phone.failures)]
      expect(failures.filter((text) => expected?.test(text) !== true)).toEqual([])
    },
  }
}
