import type { Browser } from 'playwright-core'

/** The full browser; without a value the headless shell, if there is one. */
export type BrowserKind = 'full' | undefined
export const browserKindVariable: 'RINGWIRE_TEST_CHROMIUM'
export function hasBothBrowsers(): boolean
export function sharedBrowserVariable(kind?: BrowserKind): string
export function launchBrowser(...args: string[]): Promise<Browser>
export function launchBrowserWithoutAutoplay(...args: string[]): Promise<Browser>
export function launchThrottlingBrowser(...args: string[]): Promise<Browser>
export function startSharedBrowser(kind?: BrowserKind): Promise<{
  readonly env: Record<string, string>
  readonly pid: number | undefined
  stop(): Promise<void>
  kill(): Promise<void>
}>
