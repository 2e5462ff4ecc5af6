import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { serious } from '@ringwire/testkit/axe'
import type { Service } from '@ringwire/testkit/service'
import type { Browser, Page } from 'playwright-core'
import { adminUrlOf } from '../admin/observed.ts'

export const token = 'a-token-that-only-tests-know'

/** What `RINGWIRE_PICTURES` names keeps a picture of each view, on each screen, dark and light. */
const folder = process.env.RINGWIRE_PICTURES
const screens = [
  { width: 1280, height: 860 },
  { width: 390, height: 780 },
]

export interface Operator {
  readonly page: Page
  /** What the browser refused to do, or what broke on the page. */
  readonly faults: readonly string[]
  /** Leads to a view. */
  go(hash: string): Promise<void>
  /** Looks at the view on each screen, dark and light; gives what axe and a person would find wrong. */
  look(name: string): Promise<string[]>
}

/** Somebody who has signed in on the operator's page. */
export async function signIn(browser: Browser, service: Service, name = 'Olga'): Promise<Operator> {
  const page = await browser.newPage({ viewport: screens[0] ?? null })
  // Shorter than a test may take, so that a failure says what it waited for.
  page.setDefaultTimeout(60_000)
  const faults: string[] = []
  page.on('console', (message) => {
    if (message.type() === 'error') faults.push(message.text())
  })
  page.on('pageerror', (error) => faults.push(String(error)))
  page.on('dialog', (dialog) => {
    faults.push(`a dialog: ${dialog.message()}`)
    void dialog.dismiss()
  })
  const url = await adminUrlOf(service)
  await page.goto(`${url}/admin/`)
  await page.fill('[data-testid=token]', token)
  await page.fill('[data-testid=name]', name)
  await page.click('[data-testid=enter]')
  await page.waitForSelector('[data-testid=leave]')
  return {
    page,
    faults,
    async go(hash) {
      await page.goto(`${url}/admin/#/${hash}`)
    },
    look: (name) => look(page, name),
  }
}

export async function look(page: Page, name: string): Promise<string[]> {
  const found: string[] = []
  for (const screen of screens) {
    await page.setViewportSize(screen)
    found.push(...(await serious(page)).map((fault) => `${name} on a screen of ${screen.width}: ${fault}`))
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)
    if (wide > 0) found.push(`${name} scrolls sideways by ${wide} px on a screen of ${screen.width}`)
    for (const colorScheme of ['light', 'dark'] as const) {
      if (folder === undefined) continue
      await mkdir(folder, { recursive: true })
      await page.emulateMedia({ colorScheme })
      await page.screenshot({ path: join(folder, `${name}-${screen.width}-${colorScheme}.png`), fullPage: true })
    }
  }
  await page.setViewportSize(screens[0] ?? { width: 1280, height: 860 })
  return found
}
