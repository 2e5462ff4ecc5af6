import type { Config } from '../config/config.ts'
import { createAddressGuard } from '../outgoing/addresses.ts'
import { createWebhookEndpoints, type WebhookEndpoints } from '../webhooks/endpoints.ts'
import { recordChange } from './audited-store.ts'
import type { OpenStore, Surroundings } from './command.ts'

/** The endpoints, as commands change them. The service that runs beside finds what was changed within a second. */
export function webhooksOf(surroundings: Surroundings, store: OpenStore, config: Config): WebhookEndpoints {
  const webhooks = createWebhookEndpoints({
    store: store.webhooks,
    guard: createAddressGuard(config.webhookAllow),
    now: surroundings.now,
    onChanged: async () => {},
  })
  return {
    ...webhooks,
    // The store writes down changes of endpoints, but does not know the product of a delivery [ADM3].
    async test(product, id) {
      const queued = await webhooks.test(product, id)
      if (queued !== undefined)
        await recordChange(store, surroundings, { action: 'webhook.test', product, subject: id })
      return queued
    },
    async retry(product, id, delivery) {
      const isQueued = await webhooks.retry(product, id, delivery)
      if (isQueued)
        await recordChange(store, surroundings, { action: 'webhook.retry', product, subject: id, detail: { delivery } })
      return isQueued
    },
  }
}
