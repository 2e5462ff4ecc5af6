// The browser of the tests: Debian's Chromium with a fake camera, microphone and screen picker, and addresses that a peer
// on this machine can reach. Plain Node, or Bun.
import { chromium } from 'playwright-core'
import { findSystemProgram } from './system.mjs'

/** Where a shared browser is, for the processes of a test run. */
export const sharedBrowserVariable = 'RINGWIRE_TEST_BROWSER'

function programOf(name) {
  const path = findSystemProgram(name)
  if (path === undefined) throw new Error(`${name} is missing. Run: node scripts/system.mjs ${name}`)
  return path
}

/** Tests rarely click first. People do, and where they have not, the browser keeps the sound back. */
const autoplays = '--autoplay-policy=no-user-gesture-required'

function launchOptions(...args) {
  return {
    executablePath: programOf('chromium'),
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      // Pictures enough to see that they come, and fewer to compress.
      '--use-fake-device-for-media-stream=fps=5',
      '--use-fake-ui-for-media-stream',
      '--auto-select-desktop-capture-source=Entire screen',
      '--disable-features=WebRtcHideLocalIpsWithMdns',
      ...args,
    ],
  }
}

/** A browser of its own, with further switches. */
export const launchBrowser = (...args) => chromium.launch(launchOptions(autoplays, ...args))

/** The same, with the rules of autoplay that people's browsers have. */
export const launchBrowserWithoutAutoplay = (...args) => chromium.launch(launchOptions(...args))

/** One with tabs that slows the timers of those in the background, as people's do; others have that switched off. */
export function launchThrottlingBrowser(...args) {
  const ignoreDefaultArgs = [
    '--disable-background-timer-throttling',
    '--disable-backgrounding-occluded-windows',
    '--disable-renderer-backgrounding',
  ]
  return chromium.launch({
    ...launchOptions(autoplays, ...args),
    executablePath: programOf('chromium-tabs'),
    ignoreDefaultArgs,
  })
}

/** A signal is for who started the browser, and stops more than that. */
const keepsSignals = { handleSIGINT: false, handleSIGTERM: false, handleSIGHUP: false }

/**
 * One browser for a whole run: processes that have `env` in their environment open contexts in it instead of starting
 * one each. What a process opened is closed when its connection is.
 */
export async function startSharedBrowser() {
  const server = await chromium.launchServer({ ...launchOptions(autoplays), host: '127.0.0.1', ...keepsSignals })
  return {
    env: { [sharedBrowserVariable]: server.wsEndpoint() },
    stop: () => server.close(),
    kill: () => server.kill(),
  }
}
