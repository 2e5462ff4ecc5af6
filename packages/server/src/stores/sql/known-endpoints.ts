import type { WebhookEndpoint } from '../../ports/webhooks.ts'
import { type EndpointRow, endpointOf, type Subscribers } from './subscribers.ts'

/** How often endpoints were changed and removed, as the database counts it. */
export interface EndpointCounts {
  readonly changed: number
  readonly removed: number
}

/**
 * The endpoints as this process read them last. An idle look costs one row, however many endpoints there are [HOOK3].
 *
 *   const known = createKnownEndpoints(subscribers)
 *   known.since(counts)          → the revision after which rows are to be read; undefined where nothing changed
 *   known.take(counts, rows)     → all endpoints
 */
export function createKnownEndpoints(subscribers: Subscribers) {
  let seen: EndpointCounts = { changed: -1, removed: -1 }
  let list: readonly WebhookEndpoint[] = []

  return {
    get list() {
      return list
    },
    since(counts: EndpointCounts): number | undefined {
      // A removed row leaves nothing behind that could be read: then all are.
      if (counts.removed !== seen.removed) return -1
      return counts.changed === seen.changed ? undefined : seen.changed
    },
    take(counts: EndpointCounts, rows: readonly EndpointRow[]): readonly WebhookEndpoint[] {
      // An endpoint that changed between two pages was read twice: the later row counts.
      const changed = new Map(rows.map(endpointOf).map((endpoint) => [endpoint.id, endpoint]))
      const others = counts.removed === seen.removed ? list.filter(({ id }) => !changed.has(id)) : []
      seen = counts
      list = [...others, ...changed.values()]
      subscribers.replace(list)
      return list
    },
  }
}
