import type { TimelineView } from '@ringwire/protocol/backend'
import { uuidPattern } from '@ringwire/protocol/text'
import { summaryOf } from '../call/summary.ts'
import { timelineOf } from '../call/timeline.ts'
import { callView } from '../call/view.ts'
import type { CallStore } from '../ports/call-store.ts'
import type { TimelineStore } from '../ports/timeline.ts'

export interface Timelines {
  /** Of a call, or of an invite that was refused under this uuid; undefined where nothing is known of either [TRACE1]. */
  of(product: string, callUuid: string): Promise<TimelineView | undefined>
}

export interface TimelinesOptions {
  readonly calls: Pick<CallStore, 'seen' | 'stepsAfter'>
  readonly timeline: Pick<TimelineStore, 'of'>
  /** Writes what this process still holds. The entries of others come a second later. */
  readonly flush?: () => Promise<void>
}

const uuid = new RegExp(uuidPattern)

export function createTimelines({ calls, timeline, flush }: TimelinesOptions): Timelines {
  return {
    async of(product, name) {
      if (!uuid.test(name)) return undefined
      const ref = { product, callUuid: name.toLowerCase() }
      await flush?.()
      const [seen, steps, rows] = [await calls.seen(ref), await calls.stepsAfter(ref, 0), await timeline.of(ref)]
      if (seen === undefined && rows.length === 0) return undefined
      const entries = timelineOf(seen?.call, steps, rows)
      const call = seen === undefined ? null : callView(seen.call, seen.by)
      return { call, entries, summary: summaryOf(call, entries) }
    },
  }
}
