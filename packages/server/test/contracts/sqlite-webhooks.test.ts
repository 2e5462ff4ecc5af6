import { openHarness } from './sqlite-harness.ts'
import { registerWebhooksContract } from './webhooks.ts'

registerWebhooksContract('SQLite', async () => {
  let now = 1_000_000
  const harness = await openHarness({ clock: { now: () => now } })
  return {
    store: harness.store,
    forge: harness.forge,
    webhooks: () => harness.stores().webhooks,
    // No other process claims.
    other: () => harness.stores().webhooks,
    async pass(ms) {
      now += ms
    },
    reopen: harness.reopen,
    child: () => ['sqlite', harness.dataDir],
    close: harness.close,
  }
})
