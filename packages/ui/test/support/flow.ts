import type { Page } from 'playwright-core'

declare global {
  interface Window {
    /** All connections of the page since `noteConnections`, those that are closed too. */
    noted: RTCPeerConnection[]
  }
}

/** From now on the page knows its connections, for `receives`. */
export async function noteConnections(page: Page): Promise<void> {
  await page.evaluate(() => {
    const { RTCPeerConnection } = window
    window.noted = []
    window.RTCPeerConnection = class extends RTCPeerConnection {
      constructor(configuration?: RTCConfiguration) {
        super(configuration)
        window.noted.push(this)
      }
    }
  })
}

/** Half a second of media of each kind arrives at the page, by one connection, from now on. */
export async function receives(page: Page, kinds: readonly ('audio' | 'video')[] = ['audio', 'video']): Promise<void> {
  await page.waitForFunction(
    async ({ kinds, first }) => {
      const memory = window as unknown as { arrived?: Record<string, number>; arrivedFirst?: string }
      if (memory.arrivedFirst !== first) Object.assign(memory, { arrived: {}, arrivedFirst: first })
      const arrived = memory.arrived ?? {}
      for (const [index, connection] of window.noted.entries()) {
        if (connection.connectionState === 'closed') continue
        const packets: Record<string, number> = {}
        for (const report of (await connection.getStats()).values())
          if (report.type === 'inbound-rtp') packets[report.kind] = report.packetsReceived
        const grown = kinds.map((kind) => {
          const key = `${index} ${kind}`
          arrived[key] ??= packets[kind] ?? 0
          return (packets[kind] ?? 0) - arrived[key]
        })
        // 50 packets of sound a second.
        if (grown.every((packets) => packets >= 25)) return true
      }
      return false
    },
    { kinds, first: crypto.randomUUID() },
    { polling: 100 },
  )
}
