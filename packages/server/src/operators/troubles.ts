/** What an operator has to know first, in plain sentences: what is wrong, since when, and what to do [ADM2]. */
import type { StoreName } from '../observability/absences.ts'
import type { ProcessPresent } from '../observability/status.ts'
import { idOf } from '../ports/node-name.ts'
import type { StuckDelivery } from '../ports/webhooks.ts'

export interface Trouble {
  readonly kind: StoreName | 'node' | 'webhook'
  /** ISO 8601. */
  readonly since: string
  /** A sentence. */
  readonly what: string
  /** What to do: a sentence or more. */
  readonly remedy: string
}

const stores: Readonly<Record<StoreName, Omit<Trouble, 'kind' | 'since'>>> = {
  database: {
    what: 'The database is away, or takes no writes.',
    remedy:
      'Bring it back with its data, or make room on its disk. Do not restart nodes. Calls that were answered go on; invites, answers and hanging up are refused meanwhile.',
  },
  redis: {
    what: 'Redis is away, or takes no writes.',
    remedy:
      'Start Redis again, empty if need be, or give it memory. Do not restart nodes. Calls that were answered go on; new calls and new connections are refused meanwhile.',
  },
}

/** Of the stores and the nodes, as the processes of this machine see them. */
export function absenceTroubles(present: readonly ProcessPresent[]): Trouble[] {
  const serving = new Set(present.flatMap(({ node, others }) => [node, ...others.map((other) => other.node)]).map(idOf))
  const lost = earliest(present.map(({ absent }) => Object.entries(absent.stores)))
  const died = earliest(present.map(({ absent }) => Object.entries(absent.nodes)))
  return [
    ...[...lost].map(([name, at]) => ({ kind: name as StoreName, since: iso(at), ...stores[name as StoreName] })),
    ...[...died]
      .filter(([id]) => !serving.has(id))
      .map(([id, at]) => ({
        kind: 'node' as const,
        since: iso(at),
        what: `Node ${id} has died: it was not stopped in order.`,
        remedy:
          'Start it again, or leave it. Its clients went to the other nodes, and their calls go on. Look at the end of its log for the reason.',
      })),
  ]
}

export function webhookTroubles(stuck: readonly StuckDelivery[]): Trouble[] {
  return stuck
    .toSorted((a, b) => a.createdAt - b.createdAt)
    .map(({ product, url, createdAt, attempts, responseStatus }) => ({
      kind: 'webhook',
      since: iso(createdAt),
      what: `The webhook endpoint ${url} of ${product} fails: its oldest delivery was attempted ${times(attempts)}, and the last answer was ${responseStatus ?? 'none'}.`,
      remedy:
        'Tell those who run the endpoint, and mend it. What waits is sent again by itself. Products shows each delivery and the answer to it.',
    }))
}

/** Each process saw it at its own moment. */
function earliest(seen: readonly (readonly (readonly [string, number])[])[]): ReadonlyMap<string, number> {
  const first = new Map<string, number>()
  for (const [name, at] of seen.flat()) first.set(name, Math.min(at, first.get(name) ?? at))
  return first
}

const iso = (at: number) => new Date(at).toISOString()
const times = (count: number) => (count === 1 ? 'once' : `${count} times`)
