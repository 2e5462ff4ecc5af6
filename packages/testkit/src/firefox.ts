import puppeteer, { type Browser } from 'puppeteer-core'
import { makeTemporaryDirectory, type RunningProcess, startProcess } from './process.ts'
import { systemProgram } from './system.ts'

export interface Firefox {
  readonly browser: Browser
  close(): Promise<void>
}

/** A fake camera and microphone, no prompts, and addresses that a peer on this machine can reach. */
const preferences = {
  'media.navigator.streams.fake': true,
  'media.navigator.permission.disabled': true,
  // Pictures enough to see that they come, and fewer to compress.
  'media.navigator.video.default_fps': 5,
  'ui.prefersReducedMotion': 1,
  'media.getusermedia.insecure.enabled': true,
  'media.peerconnection.ice.loopback': true,
  'media.peerconnection.ice.obfuscate_host_addresses': false,
}

/** The display that Xvfb chose: it writes the number when it is ready for clients. */
async function startScreen(): Promise<{ display: string; screen: RunningProcess }> {
  const screen = startProcess([
    systemProgram('xvfb'),
    ...['-displayfd', '1', '-screen', '0', '1280x720x24', '-nolisten', 'tcp'],
  ])
  const [, number] = await screen.waitFor(/^(\d+)\s/m)
  return { display: `:${number}`, screen }
}

/** The Firefox that people have, driven over WebDriver BiDi, on a screen of its own that it can share. */
export async function openFirefox(): Promise<Firefox> {
  const [home, { display, screen }] = await Promise.all([makeTemporaryDirectory(), startScreen()])
  const browser = await puppeteer.launch({
    browser: 'firefox',
    executablePath: systemProgram('firefox'),
    headless: false,
    userDataDir: home.path,
    extraPrefsFirefox: preferences,
    env: { ...process.env, HOME: home.path, DISPLAY: display },
    // A signal is for the tests, which close it.
    ...{ handleSIGINT: false, handleSIGTERM: false, handleSIGHUP: false },
  })
  return {
    browser,
    async close() {
      await browser.close()
      await screen.stop()
      await home.remove()
    },
  }
}
