import type { WebhookEndpoint, WebhookStore } from '../ports/webhooks.ts'
import { createLeftOver, isGone, isListener, isListenerHere } from './listeners.ts'

const dayMs = 86_400_000
/** Old deliveries are removed this often, and this long after they ended. In ms. */
const pruneMs = 10 * 60_000
export const keptDeliveriesMs = { delivered: 3 * dayMs, failed: 30 * dayMs }
/** How often a node looks whether `ringwire webhooks listen` still runs, in ms. */
const listenersMs = 2_000

export interface UpkeepOptions {
  readonly store: Pick<WebhookStore, 'prune' | 'removeEndpoint'>
  readonly now: () => number
  readonly stopping: AbortSignal
  readonly onError: (error: unknown) => void
}

/** Removes deliveries that are old, and endpoints whose command has ended. The answer begins what is due; nobody waits for it. */
export function createUpkeep({ store, now, stopping, onError }: UpkeepOptions) {
  let prunedAt = performance.now()
  let lookedAt = Number.NEGATIVE_INFINITY
  const leftOver = createLeftOver(() => performance.now())

  async function prune(): Promise<void> {
    const { delivered, failed } = keptDeliveriesMs
    try {
      while (!stopping.aborted && (await store.prune(now() - delivered, now() - failed)) > 0) await Bun.sleep(10)
    } catch (error) {
      if (!stopping.aborted) onError(error)
    }
  }

  /** A command that was killed could not remove its endpoint. */
  async function removeGone(listeners: readonly WebhookEndpoint[]): Promise<void> {
    const old = new Set(leftOver(listeners))
    const isOver = async (one: WebhookEndpoint) => old.has(one) || (isListenerHere(one) && (await isGone(one)))
    const over = await Promise.all(listeners.map(isOver))
    for (const [index, { id, product }] of listeners.entries()) {
      if (over[index] && !stopping.aborted) await store.removeEndpoint(product, id)
    }
  }

  return (stored: readonly WebhookEndpoint[]): void => {
    const at = performance.now()
    if (at - prunedAt >= pruneMs) {
      prunedAt = at
      void prune()
    }
    if (at - lookedAt >= listenersMs) {
      lookedAt = at
      removeGone(stored.filter(isListener)).catch(onError)
    }
  }
}
