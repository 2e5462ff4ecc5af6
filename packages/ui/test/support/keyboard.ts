import { becomes } from '@ringwire/testkit/becomes'
import type { Page } from 'playwright-core'

/** The test id of what has the focus. */
export const focused = (page: Page) => page.evaluate(() => document.activeElement?.getAttribute('data-testid') ?? null)

/** The focus comes there: a page moves it a moment after it has changed. */
export const hasFocus = (page: Page, testId: string) => becomes(() => focused(page), testId)

/** The focus comes to the element that assistive technology calls so. */
export const hasFocusNamed = (page: Page, label: string) =>
  becomes(() => page.evaluate(() => document.activeElement?.getAttribute('aria-label')), label)

export async function tabTo(page: Page, testId: string): Promise<void> {
  for (let presses = 0; presses < 30; presses++) {
    if ((await focused(page)) === testId) return
    await page.keyboard.press('Tab')
  }
  throw new Error(`Tab never reached ${testId}`)
}
