import type { Browser } from 'playwright-core'

export const sharedBrowserVariable: 'RINGWIRE_TEST_BROWSER'
export function launchBrowser(): Promise<Browser>
export function startSharedBrowser(): Promise<{
  readonly env: Record<string, string>
  stop(): Promise<void>
  kill(): Promise<void>
}>
