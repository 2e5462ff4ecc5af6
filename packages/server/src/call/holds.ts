/** How long each side had a call on hold, from what was seen of it [HOLD1]. Pure. */
import type { CallHeld } from '@ringwire/protocol/backend'
import type { Side } from './call.ts'
import type { TimelineRow } from './observed.ts'

/** An entry of a timeline, as far as a hold needs it. */
export type HoldRow = Pick<TimelineRow, 'at' | 'what' | 'side'>

/** From when until when a call can be on hold: instants in ms, or null if nobody answered. */
export interface AnsweredSpan {
  readonly acceptedAt: number | null
  readonly until: number
}

/**
 * The sums of both sides. A hold that nobody took back lasts until the end of the span; one that began while the call rang
 * counts from the accept. `rows` are in their order; several nodes may have written the same change.
 */
export function holdsOf(rows: readonly HoldRow[], { acceptedAt, until }: AnsweredSpan): CallHeld {
  if (acceptedAt === null) return { caller_ms: 0, callee_ms: 0 }
  const changes = holdChanges(rows)
  const sumOf = (of: Side) => {
    const instants = changes
      .filter(({ side }) => side === of)
      .map(({ at }) => Math.min(Math.max(at, acceptedAt), until))
    // They take turns, and the first one begins a hold: what a hold adds until the end, the next change takes away again.
    return instants.reduce((sum, at, index) => sum + (until - at) * (index % 2 === 0 ? 1 : -1), 0)
  }
  return { caller_ms: sumOf('caller'), callee_ms: sumOf('callee') }
}

const isHold = ({ what }: HoldRow) => what === 'held' || what === 'resumed'

/** The holds without those that repeat what is so: a node does not know what the node before it has written. */
export function holdChanges<R extends HoldRow>(rows: readonly R[]): R[] {
  const held = new Map<Side | null, boolean>()
  return rows.filter(isHold).filter(({ what, side }) => {
    const isChange = (held.get(side) ?? false) !== (what === 'held')
    held.set(side, what === 'held')
    return isChange
  })
}

/** Everything else, and of the holds only what changed. */
export function withoutRepeats<R extends HoldRow>(rows: readonly R[]): R[] {
  const changes = new Set(holdChanges(rows))
  return rows.filter((row) => !isHold(row) || changes.has(row))
}
