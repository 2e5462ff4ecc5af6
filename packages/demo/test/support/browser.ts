import { type Browser, chromium } from 'playwright-core'
import { systemProgram } from './system.ts'

/** Debian's Chromium with a fake camera and microphone, and addresses that a peer on this machine can reach. */
export function launchBrowser(): Promise<Browser> {
  return chromium.launch({
    executablePath: systemProgram('chromium'),
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      '--use-fake-device-for-media-stream',
      '--use-fake-ui-for-media-stream',
      '--disable-features=WebRtcHideLocalIpsWithMdns',
      '--autoplay-policy=no-user-gesture-required',
    ],
  })
}
