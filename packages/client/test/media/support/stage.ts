import { afterAll, beforeAll, expect } from 'bun:test'
import { openBrowser } from '@ringwire/testkit/browser'
import type { Browser, Page } from 'playwright-core'
import { servePage } from './pages.ts'

/** A browser, and the page of that script for each test. A failure in the page's own code fails the test. */
export function withLoopback(
  open: () => Promise<Browser> = openBrowser,
): (run: (page: Page) => Promise<void>) => Promise<void> {
  let browser: Browser
  let pages: Awaited<ReturnType<typeof servePage>>

  beforeAll(async () => {
    ;[browser, pages] = await Promise.all([open(), servePage('loopback.ts')])
  }, 240_000)

  afterAll(async () => {
    await browser?.close()
    await pages?.stop()
  })

  return async (run) => {
    const context = await browser.newContext()
    const page = await context.newPage()
    const failures: string[] = []
    page.on('pageerror', (error) => failures.push(error.message))
    await page.goto(pages.url)
    await page.waitForFunction(() => window.loopback !== undefined)
    await run(page)
    await context.close()
    expect(failures).toEqual([])
  }
}
