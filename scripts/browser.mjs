// The browser of the tests: Debian's Chromium with a fake camera, microphone and screen picker, and addresses that a peer
// on this machine can reach. Plain Node, or Bun.
import { chromium } from 'playwright-core'
import { findSystemProgram } from './system.mjs'

/**
 * Which Chromium the tests use. `full` is the browser that people have, which most machines have already. Without a value
 * it is the headless shell if there is one: the same engine without windows, which needs less.
 */
export const browserKindVariable = 'RINGWIRE_TEST_CHROMIUM'

/** The two programs, or one where the system has no headless shell. */
export function hasBothBrowsers() {
  return findSystemProgram('chromium') !== findSystemProgram('chromium-tabs')
}

/** The variable that says where the shared browser of this kind is, for the processes of a test run. */
export const sharedBrowserVariable = (kind = process.env[browserKindVariable]) =>
  kind === 'full' ? 'RINGWIRE_TEST_BROWSER_FULL' : 'RINGWIRE_TEST_BROWSER'

const packageOf = (kind = process.env[browserKindVariable]) => (kind === 'full' ? 'chromium-tabs' : 'chromium')

function programOf(name) {
  const path = findSystemProgram(name)
  if (path === undefined) throw new Error(`${name} is missing. Run: node scripts/system.mjs ${name}`)
  return path
}

/** Tests rarely click first. People do, and where they have not, the browser keeps the sound back. */
const autoplays = '--autoplay-policy=no-user-gesture-required'

function launchOptions(kind, ...args) {
  return {
    executablePath: programOf(packageOf(kind)),
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
export const launchBrowser = (...args) => chromium.launch(launchOptions(undefined, autoplays, ...args))

/** The same, with the rules of autoplay that people's browsers have. */
export const launchBrowserWithoutAutoplay = (...args) => chromium.launch(launchOptions(undefined, ...args))

/** One with tabs that slows the timers of those in the background, as people's do; others have that switched off. */
export function launchThrottlingBrowser(...args) {
  const ignoreDefaultArgs = [
    '--disable-background-timer-throttling',
    '--disable-backgrounding-occluded-windows',
    '--disable-renderer-backgrounding',
  ]
  return chromium.launch({ ...launchOptions('full', autoplays, ...args), ignoreDefaultArgs })
}

/** A signal is for who started the browser, and stops more than that. */
const keepsSignals = { handleSIGINT: false, handleSIGTERM: false, handleSIGHUP: false }

/**
 * One browser for a whole run: processes that have `env` in their environment open contexts in it instead of starting
 * one each. The contexts of a process close with its connection.
 */
export async function startSharedBrowser(kind) {
  const server = await chromium.launchServer({ ...launchOptions(kind, autoplays), host: '127.0.0.1', ...keepsSignals })
  return {
    env: { [sharedBrowserVariable(kind)]: server.wsEndpoint() },
    pid: server.process().pid,
    stop: () => server.close(),
    kill: () => server.kill(),
  }
}
