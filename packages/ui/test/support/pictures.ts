import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'

const folder = process.env.RINGWIRE_UI_PICTURES

const sizes = { wide: [1280, 800], tall: [390, 844], low: [844, 390] } as const

/** With RINGWIRE_UI_PICTURES=FOLDER: the page as it looks in three sizes, in light and in dark. */
export async function picture(page: Page, name: string): Promise<void> {
  if (!folder) return
  mkdirSync(folder, { recursive: true })
  const before = page.viewportSize() ?? { width: 1280, height: 800 }
  for (const [size, [width, height]] of Object.entries(sizes)) {
    await page.setViewportSize({ width, height })
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      await page.screenshot({ path: join(folder, `${name}-${size}-${colorScheme}.png`) })
    }
  }
  await page.setViewportSize(before)
}
