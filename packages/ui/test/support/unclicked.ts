import type { Page } from 'playwright-core'

/**
 * What Playwright evaluates counts as a click of the user, and so do its waits: a page that was looked at by them may
 * play sound. This looks at a page and leaves it unclicked.
 */
export async function lookAt(page: Page) {
  const session = await page.context().newCDPSession(page)
  const evaluate = async <Value>(expression: string): Promise<Value> => {
    const how = { expression, awaitPromise: true, returnByValue: true, userGesture: false }
    const { result, exceptionDetails } = await session.send('Runtime.evaluate', how)
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text)
    return result.value as Value
  }
  return {
    evaluate,
    /** Until the expression is true in the page. */
    until: (expression: string): Promise<void> =>
      evaluate(`new Promise((done, fail) => {
        const since = performance.now()
        const look = () => {
          if (${expression}) return done()
          if (performance.now() - since > 60_000) return fail(new Error(${JSON.stringify(`never: ${expression}`)}))
          setTimeout(look, 50)
        }
        look()
      })`),
    /** A real click, in the middle of the first element. */
    async click(selector: string): Promise<void> {
      const box = `document.querySelector(${JSON.stringify(selector)}).getBoundingClientRect()`
      const { x, y } = await evaluate<{ x: number; y: number }>(
        `(({ x, y, width, height }) => ({ x: x + width / 2, y: y + height / 2 }))(${box})`,
      )
      await page.mouse.click(x, y)
    },
  }
}
