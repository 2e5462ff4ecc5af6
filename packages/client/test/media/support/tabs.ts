import type { Browser } from 'playwright-core'

/**
 * Tabs of one window, of which one is in front: Playwright tells each of its own pages that it is. They are only driven
 * by the DevTools protocol, in a context that Playwright does not know.
 */
export interface Tab {
  /** Of an expression, with what its promise resolves to. */
  evaluate<T = unknown>(expression: string): Promise<T>
  bringToFront(): Promise<void>
}

type Reply = {
  id: number
  result?: { result: { value: unknown }; exceptionDetails?: { exception?: { description?: string } } }
}

export async function openWindow(
  browser: Browser,
): Promise<{ open(url: string): Promise<Tab>; close(): Promise<void> }> {
  const session = await browser.newBrowserCDPSession()
  const { browserContextId } = await session.send('Target.createBrowserContext')
  const waiting = new Map<string, (reply: Reply) => void>()
  session.on('Target.receivedMessageFromTarget', ({ sessionId, message }) => {
    const reply = JSON.parse(message) as Reply
    waiting.get(`${sessionId} ${reply.id}`)?.(reply)
  })
  let count = 0

  return {
    async open(url) {
      const { targetId } = await session.send('Target.createTarget', { url, browserContextId })
      const { sessionId } = await session.send('Target.attachToTarget', { targetId, flatten: false })
      return {
        async evaluate<T>(expression: string) {
          const id = ++count
          const replied = new Promise<Reply>((resolve) => waiting.set(`${sessionId} ${id}`, resolve))
          const params = { expression, awaitPromise: true, returnByValue: true }
          const message = JSON.stringify({ id, method: 'Runtime.evaluate', params })
          await session.send('Target.sendMessageToTarget', { sessionId, message })
          const { result } = await replied
          waiting.delete(`${sessionId} ${id}`)
          if (result?.exceptionDetails) throw new Error(result.exceptionDetails.exception?.description ?? expression)
          return result?.result.value as T
        },
        async bringToFront() {
          await session.send('Target.activateTarget', { targetId })
        },
      }
    },
    async close() {
      await session.send('Target.disposeBrowserContext', { browserContextId })
    },
  }
}
