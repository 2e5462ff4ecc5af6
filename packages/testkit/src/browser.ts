import { type Browser, chromium } from 'playwright-core'
import { launchBrowser, sharedBrowserVariable } from '../../../scripts/browser.mjs'

/**
 * The browser of this process: where the run has one for everybody, a connection to it. Its contexts are its own, and
 * `close` closes them alone.
 */
export function openBrowser(): Promise<Browser> {
  const shared = process.env[sharedBrowserVariable] ?? ''
  return shared === '' ? launchBrowser() : chromium.connect(shared)
}
