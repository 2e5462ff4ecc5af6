import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'

const folder = process.env.RINGWIRE_EXAMPLE_PICTURES

/** With RINGWIRE_EXAMPLE_PICTURES=FOLDER: the page as it looks. */
export async function picture(page: Page, name: string): Promise<void> {
  if (!folder) return
  mkdirSync(folder, { recursive: true })
  await page.screenshot({ path: join(folder, `${name}.png`) })
}
