/**
 * What this process knows to be away, and since when: stores that take no writes, and nodes that died [ADM2].
 *
 *   const absences = createAbsences(Date.now)
 *   absences.watched('redis', tryRedis)   → the same check; its failures are kept
 *   absences.died(death)
 *   absences.known()
 */
import { idOf } from '../ports/node-name.ts'
import type { NodeDeath } from '../ports/nodes.ts'
import { forgetOldest } from '../ports/oldest.ts'

export type StoreName = 'database' | 'redis'

/** Instants are in ms since the epoch. */
export interface Absent {
  readonly stores: Readonly<Partial<Record<StoreName, number>>>
  /** By their ids. A node that came back is still here: who reads this knows which nodes serve. */
  readonly nodes: Readonly<Record<string, number>>
}

export interface Absences {
  watched(store: StoreName, check: () => Promise<void>): () => Promise<void>
  died(death: NodeDeath): void
  known(): Absent
}

/** How long a node that died is remembered, in ms: a node that was removed for good is no news after a day. */
const keptMs = 86_400_000
const mostNodes = 100

export function createAbsences(now: () => number): Absences {
  const stores: Partial<Record<StoreName, number>> = {}
  const nodes = new Map<string, number>()
  return {
    watched: (store, check) => async () => {
      try {
        await check()
        delete stores[store]
      } catch (error) {
        stores[store] ??= now()
        throw error
      }
    },
    died({ node, hasLeft, isPast }) {
      const id = idOf(node)
      nodes.delete(id)
      // One that was stopped is missed by nobody, and one that died before this start is no news.
      if (hasLeft || isPast) return
      nodes.set(id, now())
      forgetOldest(nodes, mostNodes)
    },
    known() {
      const recent = [...nodes].filter(([, at]) => now() - at < keptMs)
      return { stores: { ...stores }, nodes: Object.fromEntries(recent) }
    },
  }
}
