import type { Firefox } from '@ringwire/testkit/firefox'
import type { Page } from 'puppeteer-core'
import { type DrivenPage, online, type PhoneOf, person } from './people.ts'

/** With what Firefox's driver calls otherwise than Chromium's. */
export interface AnyBrowserPage extends DrivenPage {
  reload(): Promise<unknown>
}

function driven(page: Page): AnyBrowserPage {
  return {
    evaluate: <Result, Argument>(run: (argument: Argument) => Result | Promise<Result>, argument?: Argument) =>
      page.evaluate(run as (argument: unknown) => Result | Promise<Result>, argument) as Promise<Result>,
    waitForFunction: (isTrue: () => unknown) => page.waitForFunction(isTrue, { polling: 50, timeout: 60_000 }),
    async click(selector) {
      // Firefox counts a click only in the tab that people see.
      await page.bringToFront()
      await page.click(selector)
    },
    reload: () => page.reload(),
  }
}

/** The page of a phone in a container of its own, online. */
export async function openInFirefox(
  { browser }: Firefox,
  url: string,
  role: 'customer' | 'agent',
  query = '',
): Promise<PhoneOf<AnyBrowserPage>> {
  const context = await browser.createBrowserContext()
  const page = await context.newPage()
  const failures: string[] = []
  page.on('pageerror', (error) => failures.push(String(error)))
  const { userId, search } = person(role)
  await page.goto(`${url}?${search}&${query}`)
  await online(driven(page))
  return { userId, page: driven(page), failures, close: () => context.close() }
}
