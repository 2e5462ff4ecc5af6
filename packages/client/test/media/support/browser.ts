import { type Browser, chromium } from 'playwright-core'
import { systemProgram } from '../../../../demo/test/support/system.ts'

/**
 * Debian's Chromium with a fake camera, microphone and screen picker, and addresses that a peer on this machine can
 * reach.
 */
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
      '--auto-select-desktop-capture-source=Entire screen',
      '--disable-features=WebRtcHideLocalIpsWithMdns',
      '--autoplay-policy=no-user-gesture-required',
    ],
  })
}
