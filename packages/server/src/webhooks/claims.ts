import type { Attempted, Claimed, DeliveryStore, WebhookEndpoint } from '../ports/webhooks.ts'

/** The most requests to one endpoint at once, from one node: a slow endpoint keeps no other one waiting. */
const atOnce = 10

export interface ToSend {
  readonly delivery: Claimed
  readonly endpoint: WebhookEndpoint
}

const nothing = { toSend: [], isMore: false }

export type Claims = ReturnType<typeof createClaims>

/** What this process has claimed, and for which endpoints it claims next. */
export function createClaims(
  store: Pick<DeliveryStore, 'claim' | 'settle'>,
  endpointOf: (id: string) => WebhookEndpoint | undefined,
) {
  const asked = new Set<string>()
  /** Requests under way, and results that are not stored yet, by endpoint. */
  const busy = new Map<string, number>()
  let results: { readonly endpointId: string; readonly attempted: Attempted }[] = []

  const busyWith = (id: string) => busy.get(id) ?? 0
  const ask = (ids: Iterable<string>) => {
    for (const id of ids) asked.add(id)
  }

  function takeWanted(): ReadonlyMap<string, number> {
    const wanted = new Map<string, number>()
    for (const id of asked) {
      const free = atOnce - busyWith(id)
      if (free > 0 && endpointOf(id) !== undefined) wanted.set(id, free)
    }
    asked.clear()
    return wanted
  }

  /** A claim that fails is made again with the next round. */
  async function claim(wanted: ReadonlyMap<string, number>) {
    try {
      return await store.claim(wanted)
    } catch (error) {
      ask(wanted.keys())
      throw error
    }
  }

  return {
    /** Something may be due for these: no other endpoint is looked at. */
    ask,
    /** Claims what there is room for; `isMore`: there may be more of it right now. */
    async take(): Promise<{ readonly toSend: readonly ToSend[]; readonly isMore: boolean }> {
      const wanted = takeWanted()
      if (wanted.size === 0) return nothing
      const { claimed, isMore } = await claim(wanted)
      if (isMore) ask(wanted.keys())
      const toSend = claimed.flatMap((delivery) => {
        const endpoint = endpointOf(delivery.endpointId)
        return endpoint === undefined ? [] : [{ delivery, endpoint }]
      })
      for (const { endpoint } of toSend) busy.set(endpoint.id, busyWith(endpoint.id) + 1)
      return { toSend, isMore }
    },
    /** It is stored with the next `settle`, and keeps its room until then. */
    made(endpointId: string, attempted: Attempted): void {
      results.push({ endpointId, attempted })
      asked.add(endpointId)
    },
    /** Stores the results. */
    async settle(): Promise<void> {
      if (results.length === 0) return
      const batch = results
      results = []
      try {
        await store.settle(batch.map(({ attempted }) => attempted))
      } catch (error) {
        results = [...batch, ...results]
        throw error
      }
      for (const { endpointId } of batch) busy.set(endpointId, busyWith(endpointId) - 1)
    },
  }
}
