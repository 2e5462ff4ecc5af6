import type { Browser } from 'playwright-core'

export const sharedBrowserVariable: 'RINGWIRE_TEST_BROWSER'
export function launchBrowser(...args: string[]): Promise<Browser>
export function launchBrowserWithoutAutoplay(...args: string[]): Promise<Browser>
export function launchThrottlingBrowser(...args: string[]): Promise<Browser>
export function startSharedBrowser(): Promise<{
  readonly env: Record<string, string>
  stop(): Promise<void>
  kill(): Promise<void>
}>
