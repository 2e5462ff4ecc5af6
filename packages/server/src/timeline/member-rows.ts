import { type CallRef, callKey } from '../call/call.ts'
import type { TimelineRow } from '../call/observed.ts'

/** The most entries that are kept at once. If there are more, those of the call that began first go. */
const mostKept = 10_000
/** Longer than any call rings, in ms. */
const keptMs = 11 * 60_000

/**
 * What is seen of members while a call to a group rings at them. It is not known yet which of them has a part in the call, so the
 * store does not take it then [GROUP1].
 */
export interface MemberRows {
  keep(row: TimelineRow): void
  /** What was kept of a call: it is answered or over by now, and nothing is kept any more. */
  take(call: CallRef): readonly TimelineRow[]
  /** Forgets calls of which this process never heard how they went on. */
  sweep(now: number): void
}

export function createMemberRows(): MemberRows {
  /** In the order of the first entry of each. */
  const kept = new Map<string, TimelineRow[]>()
  let count = 0

  function forget(key: string): readonly TimelineRow[] {
    const rows = kept.get(key) ?? []
    kept.delete(key)
    count -= rows.length
    return rows
  }

  return {
    keep(row) {
      const key = callKey(row)
      const rows = kept.get(key)
      if (rows === undefined) kept.set(key, [row])
      else rows.push(row)
      count++
      for (const oldest of kept.keys()) {
        if (count <= mostKept) break
        forget(oldest)
      }
    },
    take: (call) => forget(callKey(call)),
    sweep(now) {
      for (const [key, [first]] of kept) {
        if (first !== undefined && now - first.at < keptMs) break
        forget(key)
      }
    },
  }
}
