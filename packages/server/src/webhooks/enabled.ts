import { type HookType, participantHookTypes } from '@ringwire/protocol/backend'
import type { EndpointStore, WebhookEndpoint } from '../ports/webhooks.ts'
import { isListener, isListenerHere } from './listeners.ts'

const none: readonly WebhookEndpoint[] = []

/** The endpoints that this process sends to, as it has read them last. */
export function createEnabledEndpoints(store: Pick<EndpointStore, 'refresh'>) {
  let stored: readonly WebhookEndpoint[] = none
  let byId = new Map<string, WebhookEndpoint>()
  let byProduct = new Map<string, readonly WebhookEndpoint[]>()
  let presence: ReadonlySet<string> = new Set()
  let readAt = Number.NEGATIVE_INFINITY

  return {
    /** Reads what changed; answers which endpoints were not enabled before. */
    async refresh(): Promise<readonly string[]> {
      const all = await store.refresh()
      readAt = performance.now()
      if (all === stored) return []
      stored = all
      const enabled = all.filter((endpoint) => endpoint.enabled && (!isListener(endpoint) || isListenerHere(endpoint)))
      const fresh = enabled.flatMap(({ id }) => (byId.has(id) ? [] : [id]))
      byId = new Map(enabled.map((endpoint) => [endpoint.id, endpoint]))
      byProduct = Map.groupBy(enabled, ({ product }) => product)
      const hearing = new Set(enabled.flatMap((endpoint) => (hearsPresence(endpoint) ? [endpoint.product] : [])))
      if (hearing.symmetricDifference(presence).size > 0) presence = hearing
      return fresh
    },
    /** When they were read last, on the monotonic clock, in ms. */
    readAt: () => readAt,
    /** All that are stored, also those that are not enabled. */
    stored: () => stored,
    isAny: () => byId.size > 0,
    get: (id: string) => byId.get(id),
    of: (product: string) => byProduct.get(product) ?? none,
    hearing: (product: string, type: HookType) =>
      byProduct.get(product)?.filter(({ events }) => events === null || events.includes(type)) ?? none,
    hearingPresence: () => presence,
  }
}

const presenceTypes: readonly HookType[] = participantHookTypes
const hearsPresence = ({ events }: WebhookEndpoint) => events?.some((type) => presenceTypes.includes(type)) === true
