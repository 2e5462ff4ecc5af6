import type { Page } from 'playwright-core'

/** The test id of what has the focus. */
export const focused = (page: Page) => page.evaluate(() => document.activeElement?.getAttribute('data-testid') ?? null)

export async function tabTo(page: Page, testId: string): Promise<void> {
  for (let presses = 0; presses < 30; presses++) {
    if ((await focused(page)) === testId) return
    await page.keyboard.press('Tab')
  }
  throw new Error(`Tab never reached ${testId}`)
}
