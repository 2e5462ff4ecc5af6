import { afterAll, beforeAll } from 'bun:test'
import type { Browser } from 'playwright-core'
import { launchBrowser } from './browser.ts'
import { type Service, startService } from './service.ts'

/** A service and a browser for the tests of one file. */
export function withServiceAndBrowser(settings: Record<string, string> = {}): { service: Service; browser: Browser } {
  const stage = {} as { service: Service; browser: Browser }
  beforeAll(async () => {
    const [service, browser] = await Promise.all([startService(settings), launchBrowser()])
    Object.assign(stage, { service, browser })
  }, 60_000)
  afterAll(async () => {
    await stage.browser?.close()
    await stage.service?.stop()
  })
  return stage
}
