import type { CallRef } from '../call/call.ts'
import type { CallCommand } from '../call/command.ts'
import { type LiveCallReads, pageSize } from '../ports/call-store.ts'
import type { Nodes } from '../ports/nodes.ts'
import { inBatches } from '../time/in-batches.ts'
import { patienceMs, stepInMs } from './holders.ts'

export interface DueRingsOptions {
  readonly store: Pick<LiveCallReads, 'dueRings'>
  readonly nodes: Pick<Nodes, 'others'>
  readonly run: (ref: CallRef, command: CallCommand) => Promise<unknown>
  /** How long ago a node was last found dead, in ms. */
  readonly sinceDeathMs: () => number
}

/** Rings that were over for longer at the last look are found with the other live calls, in ms. */
const ringWindowMs = 10_000

/**
 * Rings end on time, also those of a node that has just died: they are found by their time. After an outage those that ran
 * out in it are among them [RING1].
 */
export function createDueRings({ store, nodes, run, sinceDeathMs }: DueRingsOptions): (now: number) => Promise<void> {
  /** When rings that are due were looked at last, and all of them were run; a start looks at all that there are. */
  let seenAt = 0

  return async (now) => {
    if (nodes.others().length === 0 && sinceDeathMs() > stepInMs) return
    const from = Math.min(seenAt, now) - ringWindowMs
    seenAt = Math.min(seenAt, now)
    const due = await store.dueRings(from, now - patienceMs, pageSize)
    await inBatches(due, (call) => run(call, { type: 'time' }))
    // A full page leaves more for the next look.
    if (due.length < pageSize) seenAt = now
  }
}
