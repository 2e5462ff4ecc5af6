import { type Browser, chromium } from 'playwright-core'
import { launchBrowser, sharedBrowserVariable, startSharedBrowser } from '../../../scripts/browser.mjs'

/**
 * The browser of this process: where the run has one for everybody, a connection to it. Its contexts are its own, and
 * `close` only closes them. Its pages do without motion: a machine without a graphics card paints each step of it by itself.
 */
export async function openBrowser(): Promise<Browser> {
  const shared = process.env[sharedBrowserVariable()] ?? ''
  const browser = await (shared === '' ? launchBrowser() : chromium.connect(shared))
  const newContext = browser.newContext.bind(browser)
  browser.newContext = (options) => newContext({ reducedMotion: 'reduce', ...options })
  return browser
}

/** A browser of its own that `kill` kills as a crash would: no page of it says goodbye. */
export async function openDoomedBrowser(): Promise<{ browser: Browser; kill(): Promise<void> }> {
  const { env, kill } = await startSharedBrowser()
  return { browser: await chromium.connect(env[sharedBrowserVariable()] ?? ''), kill }
}
