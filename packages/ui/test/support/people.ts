import { someone } from '@ringwire/testkit/flows'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import type { Site } from './site.ts'

export const at = (testId: string) => `[data-testid=${testId}]`

export interface Two {
  ann: Page
  ben: Page
  close(): Promise<void>
}

export interface OpenOptions extends BrowserContextOptions {
  /** More of the page's query. */
  readonly query?: Record<string, string>
  /** The address at which Ben finds the page, and more of its query there. */
  readonly ben?: { readonly url: string; readonly query: Record<string, string> }
  readonly ids?: { ann: string; ben: string }
}

/** Ann and Ben, each in a browser context of their own, signed in and online. */
export async function openTwo(browser: Browser, site: Site, options: OpenOptions = {}): Promise<Two> {
  const { query = {}, ben: his, ids = { ann: someone('ann'), ben: someone('ben') }, ...context } = options
  const failures: string[] = []
  const open = async (me: 'ann' | 'ben', name: string): Promise<Page> => {
    const page = await (await browser.newContext({ viewport: { width: 1280, height: 800 }, ...context })).newPage()
    page.setDefaultTimeout(60_000)
    page.on('pageerror', ({ message }) => failures.push(message))
    const [role, peer, calls] = me === 'ann' ? ['customer', 'agent', ids.ben] : ['agent', 'customer', ids.ann]
    const own = me === 'ben' ? his : undefined
    await goOnline(page, own ?? site, { ...query, ...own?.query, user: ids[me], role, peer, calls, name })
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

/** Somebody more, in a browser context of their own. An error in the page fails what waits for it. */
export async function openPerson(
  browser: Browser,
  site: Site,
  query: Record<'user' | 'role' | 'peer' | 'name', string> & Record<string, string>,
): Promise<Page> {
  const page = await (await browser.newContext({ viewport: { width: 1280, height: 800 } })).newPage()
  page.setDefaultTimeout(60_000)
  page.on('pageerror', ({ message }) => {
    throw new Error(`Error in the page of ${query.name}: ${message}`)
  })
  await goOnline(page, site, { calls: 'nobody', ...query })
  return page
}

export async function goOnline(page: Page, site: Pick<Site, 'url'>, query: Record<string, string>): Promise<void> {
  const isOnline = page.waitForEvent('websocket').then((socket) => socket.waitForEvent('framereceived'))
  await page.goto(`${site.url}?${new URLSearchParams({ device: crypto.randomUUID(), ...query })}`)
  await isOnline
}

export async function phase(page: Page, name: string): Promise<void> {
  await page.waitForSelector(`${at('stage')}[data-phase=${name}]`)
}

/** What a screen reader is told last. */
export async function announces(page: Page, text: string): Promise<void> {
  await page.waitForSelector(`${at('announcement')}:text-is("${text}")`, { state: 'attached' })
}

/** With whom the call on the stage is. */
export async function talksTo(page: Page, name: string): Promise<void> {
  await page.waitForSelector(`${at('call-name')}:text-is("${name}")`)
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
