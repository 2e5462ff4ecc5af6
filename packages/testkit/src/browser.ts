import { type Browser, chromium } from 'playwright-core'
import { launchBrowser, sharedBrowserVariable, startSharedBrowser } from '../../../scripts/browser.mjs'

/**
 * The browser of this process: where the run has one for everybody, a connection to it. Its contexts are its own, and
 * `close` only closes them.
 */
export function openBrowser(): Promise<Browser> {
  const shared = process.env[sharedBrowserVariable()] ?? ''
  return shared === '' ? launchBrowser() : chromium.connect(shared)
}

/** A browser of its own that `kill` kills as a crash would: no page of it says goodbye. */
export async function openDoomedBrowser(): Promise<{ browser: Browser; kill(): Promise<void> }> {
  const { env, kill } = await startSharedBrowser()
  return { browser: await chromium.connect(env[sharedBrowserVariable()] ?? ''), kill }
}
