import { openBrowser } from '@ringwire/testkit/browser'
import type { Browser } from 'playwright-core'
import { servePage } from './pages.ts'
import { openPhones } from './people.ts'
import { MediaService } from './service.ts'

/** A browser, the real service and the page of a phone: what calls between two people need. */
export interface Phones {
  readonly service: MediaService
  readonly browser: Browser
  /** Of the page. */
  readonly url: string
  /** Two people in browser contexts of their own, online; the service is `delayMs` away, each way. */
  open(query?: string, delayMs?: number): ReturnType<typeof openPhones>
  stop(): Promise<void>
}

/** `settings` of the service. */
export async function startPhones(settings: Record<string, string> = {}): Promise<Phones> {
  const [service, browser] = await Promise.all([new MediaService(settings).start(), openBrowser()])
  const { url, stop } = await servePage('phone.ts', (person) => service.tokenFor(person))
  return {
    service,
    browser,
    url,
    open: (query, delayMs) => openPhones(browser, url, query, delayMs),
    async stop() {
      await browser.close()
      await stop()
      await service.dispose()
    },
  }
}
