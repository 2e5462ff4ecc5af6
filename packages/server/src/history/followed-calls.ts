/**
 * What happens to the calls of a product from now on, read from the store again and again: for who watches beside the
 * service. Each change of each call comes once; those of one call in order.
 *
 *   const followed = await followCalls({ calls, product, since: Date.now() })
 *   await followed.next()      → what happened since the last time
 */
import type { TimelineEntry } from '@ringwire/protocol/backend'
import type { Call } from '../call/call.ts'
import { isLive } from '../call/call.ts'
import { timelineOf } from '../call/timeline.ts'
import type { CallStore, ListQuery } from '../ports/call-store.ts'

export type FollowedEntry = TimelineEntry & { readonly call_uuid: string }

export interface FollowedCalls {
  next(): Promise<readonly FollowedEntry[]>
}

export interface FollowOptions {
  readonly calls: Pick<CallStore, 'list' | 'seen' | 'stepsAfter'>
  readonly product: string
  /** Calls that begin then or later, in ms since the epoch, and those that are live at the first look. */
  readonly since: number
}

/** A call that is committed late began earlier, and clocks differ: how far back each look for new calls goes, in ms. */
const overlapMs = 10_000
/** The most live calls that are followed at once; of more, the newest are. */
const mostFollowed = 1_000
const pageSize = 100

export async function followCalls({ calls, product, since }: FollowOptions): Promise<FollowedCalls> {
  const known = new Map<string, { readonly version: number; readonly startedAt: number; readonly isLive: boolean }>()
  let newest = since

  function learn(call: Call): void {
    const { callUuid, version, startedAt } = call
    known.set(callUuid, { version, startedAt, isLive: isLive(call) })
    newest = Math.max(newest, startedAt)
  }

  async function listed(query: Pick<ListQuery, 'statuses' | 'since'>): Promise<Call[]> {
    const found: Call[] = []
    for (let after: ListQuery['after'], isLast = false; !isLast && found.length < mostFollowed; ) {
      const page = await calls.list({ product, participant: undefined, limit: pageSize, after, ...query })
      found.push(...page.calls.map(({ call }) => call))
      after = page.next
      isLast = after === undefined
    }
    return found
  }

  /** Those that began lately, and those that were live when they were looked at last. */
  async function look(): Promise<Call[]> {
    const recent = await listed({ statuses: undefined, since: newest - overlapMs })
    const seen = new Set(recent.map(({ callUuid }) => callUuid))
    const others: Call[] = []
    for (const [callUuid, { isLive }] of known) {
      if (!isLive || seen.has(callUuid)) continue
      const call = (await calls.seen({ product, callUuid }))?.call
      if (call === undefined) known.delete(callUuid)
      else others.push(call)
    }
    return [...others, ...recent]
  }

  async function changesOf(call: Call): Promise<FollowedEntry[]> {
    const before = known.get(call.callUuid)
    // It began and was over before anybody followed.
    const isOld = before === undefined && call.startedAt < since && !isLive(call)
    if (isOld || (before?.version ?? 0) >= call.version) return []
    learn(call)
    const steps = (await calls.stepsAfter(call, before?.version ?? 0)).filter(
      ({ call: { version } }) => version <= call.version,
    )
    return timelineOf(call, steps, []).map((entry) => ({ call_uuid: call.callUuid, ...entry }))
  }

  for (const call of await listed({ statuses: ['ringing', 'accepted', 'connected'], since: 0 })) learn(call)
  newest = since
  return {
    async next() {
      const changes: FollowedEntry[][] = []
      for (const call of await look()) changes.push(await changesOf(call))
      for (const [callUuid, { isLive, startedAt }] of known)
        if (!isLive && startedAt < newest - overlapMs) known.delete(callUuid)
      const firstAt = ([first]: readonly FollowedEntry[]) => Date.parse(first?.at ?? '') || 0
      return changes.sort((a, b) => firstAt(a) - firstAt(b)).flat()
    },
  }
}
