import { soon } from '@ringwire/testkit/patience'
import type { CDPSession, Worker } from 'playwright-core'

/** How many pushes a service worker has heard, and how many it is done with. */
interface PushLog {
  heard: number
  done: number
}

/**
 * Hands pushes to a service worker, as the push service of a real browser does; resolves when the worker is done with one.
 * The browser drops what it is handed as long as it has not stored the registration, without a word: it is handed over
 * again. Nobody may look at the notifications before: one that the browser has noted down and not shown yet is forgotten by
 * that.
 */
export async function pushTo(
  worker: Worker,
  cdp: CDPSession,
  where: { readonly origin: string; readonly registrationId: string },
): Promise<(payload: object) => Promise<void>> {
  await worker.evaluate(() => {
    type Waiting = Event & { waitUntil(work: Promise<unknown>): void }
    const scope = globalThis as unknown as { pushLog: PushLog; ExtendableEvent: { prototype: Waiting } } & EventTarget
    scope.pushLog = { heard: 0, done: 0 }
    scope.addEventListener('push', () => scope.pushLog.heard++)
    const { prototype } = scope.ExtendableEvent
    const { waitUntil } = prototype
    prototype.waitUntil = function (work) {
      waitUntil.call(this, work)
      if (this.type === 'push') void work.finally(() => scope.pushLog.done++)
    }
  })
  const log = () => worker.evaluate(() => (globalThis as unknown as { pushLog: PushLog }).pushLog)
  return async (payload) => {
    const before = await log()
    const end = performance.now() + soon(60_000)
    for (let looks = 0; ; looks++) {
      if (looks % 40 === 0) {
        await cdp.send('ServiceWorker.deliverPushMessage', { ...where, data: JSON.stringify(payload) })
      }
      const { heard, done } = await log()
      if (done > before.done && done === heard) return
      if (performance.now() > end) throw new Error(`of ${heard} pushes the service worker is done with ${done}`)
      await Bun.sleep(50)
    }
  }
}
