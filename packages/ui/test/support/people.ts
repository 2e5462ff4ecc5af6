import { someone } from '@ringwire/testkit/flows'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import type { Site } from './site.ts'

export const at = (testId: string) => `[data-testid=${testId}]`

export interface Two {
  ann: Page
  ben: Page
  close(): Promise<void>
}

/** Ann and Ben, each in a browser context of their own, signed in and online. */
export async function openTwo(browser: Browser, site: Site, options: BrowserContextOptions = {}): Promise<Two> {
  const ids = { ann: someone('ann'), ben: someone('ben') }
  const failures: string[] = []
  const open = async (me: 'ann' | 'ben', name: string): Promise<Page> => {
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options })
    context.setDefaultTimeout(60_000)
    const page = await context.newPage()
    page.on('pageerror', ({ message }) => failures.push(message))
    const [role, peer, calls] = me === 'ann' ? ['customer', 'agent', ids.ben] : ['agent', 'customer', ids.ann]
    const query = new URLSearchParams({ user: ids[me], role, peer, calls, name, device: crypto.randomUUID() })
    const isOnline = page.waitForEvent('websocket').then((socket) => socket.waitForEvent('framereceived'))
    await page.goto(`${site.url}?${query}`)
    await isOnline
    return page
  }
  const [ann, ben] = await Promise.all([open('ann', 'Ann Lee'), open('ben', 'Ben Ortiz')])
  return {
    ...{ ann, ben },
    async close() {
      await Promise.all([ann.context().close(), ben.context().close()])
      if (failures.length > 0) throw new Error(`Errors in the page: ${failures.join('; ')}`)
    },
  }
}

export async function phase(page: Page, name: string): Promise<void> {
  await page.waitForSelector(`${at('stage')}[data-phase=${name}]`)
}

/** The peer's picture is decoded and shown. */
export async function seesPeer(page: Page): Promise<void> {
  await page.waitForFunction(() => {
    const video = document.querySelector<HTMLVideoElement>('[data-testid=remote-video]')
    return (video?.getVideoPlaybackQuality().totalVideoFrames ?? 0) > 5 && video?.closest('[data-seen]') !== null
  })
}

export async function inCall({ ann, ben }: Two): Promise<void> {
  await ann.click(at('call-video'))
  await ben.click(at('accept'))
  await Promise.all([seesPeer(ann), seesPeer(ben)])
}
