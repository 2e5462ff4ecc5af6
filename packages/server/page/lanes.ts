import type { CallView, TimelineEntry } from '@ringwire/protocol/backend'

export interface Lane {
  readonly key: string
  readonly name: string
  readonly kind: 'caller' | 'service' | 'callee' | 'push' | 'webhook'
}

export interface LanedEntry {
  readonly entry: TimelineEntry
  /** Number of its lane. */
  readonly lane: number
  /** Seconds since the first entry, and since the previous one. */
  readonly after: number
  readonly gap: number
}

const order = ['caller', 'service', 'callee', 'push', 'webhook'] as const

/** Which entry belongs to which lane: each device of both sides has one, then the service, pushes and webhooks. */
export function lanesOf(
  call: CallView | null,
  entries: readonly TimelineEntry[],
): { readonly lanes: readonly Lane[]; readonly entries: readonly LanedEntry[] } {
  const found = entries.map((entry) => laneOf(call, entry))
  const lanes = [...new Map(found.map((lane) => [lane.key, lane])).values()].sort(
    (a, b) => order.indexOf(a.kind) - order.indexOf(b.kind),
  )
  const start = Date.parse(entries[0]?.at ?? '')
  return {
    lanes,
    entries: entries.map((entry, i) => {
      const at = Date.parse(entry.at)
      const before = Date.parse(entries[i - 1]?.at ?? entry.at)
      const lane = lanes.findIndex(({ key }) => key === found[i]?.key)
      return { entry, lane, after: (at - start) / 1_000, gap: (at - before) / 1_000 }
    }),
  }
}

function laneOf(call: CallView | null, entry: TimelineEntry): Lane {
  const { what, who, device_id: device, session_id: session } = entry
  if (what === 'push') return { key: 'push', name: 'Pushes', kind: 'push' }
  if (what === 'webhook' || what === 'invite_hook') return { key: 'webhook', name: 'Webhooks', kind: 'webhook' }
  if (who === undefined) return { key: 'service', name: 'Service', kind: 'service' }
  const isCaller = call === null || (who.user_id === call.caller.user_id && who.role === call.caller.role)
  const kind = isCaller ? 'caller' : 'callee'
  const place = device ?? session?.slice(0, 8)
  const name = `${who.role}/${who.user_id}${place === undefined ? '' : ` · ${place}`}`
  return { key: `${kind} ${name}`, name, kind }
}

/** Results that are bad news. */
export function isBad({ what, detail }: TimelineEntry): boolean {
  if (['missed', 'refused', 'socket_lost', 'place_lost', 'no_device', 'unsure', 'transfer_failed'].includes(what))
    return true
  if (what === 'push') return detail.result !== 'accepted'
  if (what === 'webhook') return detail.result !== 'delivered'
  return what === 'invite_hook' && (detail.result === 'failed' || detail.result === 'refuse')
}
