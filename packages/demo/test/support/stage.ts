import { afterAll, beforeAll } from 'bun:test'
import { openBrowser } from '@ringwire/testkit/browser'
import type { Browser } from 'playwright-core'
import { DemoService } from './service.ts'

/** A service and a browser for the tests of one file. */
export function withServiceAndBrowser(settings: Record<string, string> = {}): {
  service: DemoService
  browser: Browser
} {
  const stage = {} as { service: DemoService; browser: Browser }
  beforeAll(async () => {
    const [service, browser] = await Promise.all([new DemoService(settings).start(), openBrowser()])
    Object.assign(stage, { service, browser })
  }, 240_000)
  afterAll(async () => {
    await stage.browser?.close()
    await stage.service?.dispose()
  })
  return stage
}
