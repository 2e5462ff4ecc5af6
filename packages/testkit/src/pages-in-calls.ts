/** Pages that are in a call, whatever they are made of. */
import type { Page } from 'playwright-core'

/** In a page, before its own scripts: keeps its connections, to count what arrives, and what its policy refused. */
export function keepConnections(): void {
  const kept: RTCPeerConnection[] = []
  const Native = RTCPeerConnection
  const refused: string[] = []
  addEventListener('securitypolicyviolation', (event) => {
    refused.push((event as SecurityPolicyViolationEvent).blockedURI)
  })
  Object.assign(window, {
    kept,
    refused,
    RTCPeerConnection: class extends Native {
      constructor(configuration?: RTCConfiguration) {
        super(configuration)
        kept.push(this)
      }
    },
  })
}

/** Packets of both kinds have come, and a picture is shown. `waitForFunction` would take the promise itself for true. */
export async function seesAndHears(page: Page): Promise<void> {
  await page.evaluate(async () => {
    const { kept } = window as unknown as { kept: RTCPeerConnection[] }
    const isThere = async () => {
      const packets = { audio: 0, video: 0 }
      for (const connection of kept) {
        for (const report of (await connection.getStats()).values()) {
          if (report.type === 'inbound-rtp') packets[report.kind as 'audio' | 'video'] += report.packetsReceived
        }
      }
      const video = document.querySelector<HTMLVideoElement>('#remote, [data-testid=remote-video]')
      return packets.audio > 0 && packets.video > 0 && (video?.getVideoPlaybackQuality().totalVideoFrames ?? 0) > 2
    }
    while (!(await isThere())) await new Promise((resolve) => setTimeout(resolve, 50))
  })
}

/** What the policy of the page refused since it was opened. */
export const refused = (page: Page): Promise<string[]> =>
  page.evaluate(() => (window as unknown as { refused: string[] }).refused)
