import { readFileSync } from 'node:fs'
import type { AxeResults } from 'axe-core'
import type { Page } from 'playwright-core'

const source = readFileSync(new URL(import.meta.resolve('axe-core/axe.min.js')), 'utf8')

/** What depends on colors. In dark nothing else can differ, and all rules take seconds. */
const rulesOfColors = ['color-contrast', 'link-in-text-block']

/** What axe finds serious or critical on the page as it stands, in light and in dark; empty where all is well. */
export async function serious(page: Page): Promise<string[]> {
  if (await page.evaluate(() => !('axe' in window))) await page.evaluate(source)
  const found: string[] = []
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
    const options = JSON.stringify({
      resultTypes: ['violations'],
      ...(colorScheme === 'dark' && { runOnly: rulesOfColors }),
    })
    const { violations }: AxeResults = await page.evaluate(`axe.run(document, ${options})`)
    for (const { id, impact, nodes } of violations) {
      if (impact !== 'serious' && impact !== 'critical') continue
      found.push(...nodes.map(({ html, failureSummary }) => `${colorScheme} ${id}: ${html} ${failureSummary}`))
    }
  }
  return found
}
