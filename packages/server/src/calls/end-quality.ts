import { type Call, type CallRef, callKey } from '../call/call.ts'
import type { Decision } from '../call/command.ts'
import type { Step } from '../call/effects.ts'
import type { InviteDecision } from '../call/invite.ts'
import type { SeenMedia } from './quality.ts'

export interface EndQualityOptions {
  /** Whether anybody hears how calls of a product end. */
  readonly hearsEnds: (product: string) => boolean
  /** How the media of an answered call was, if that is known in time for its end. */
  readonly mediaAtEnd: (ref: CallRef) => Promise<SeenMedia | null>
}

/** Decides and commits; shows every decision to `seen`, and takes what that answers. */
type Commit<D> = (seen: (decision: D) => D) => Promise<D>

/** A hold that nobody took back lasts until the end that is committed now [HOLD1]. */
function mediaOf({ call, event: { at } }: Step, seen: SeenMedia | null | undefined) {
  const acceptedAt = call.status === 'ringing' ? null : call.acceptedAt
  return { quality: seen?.quality ?? null, held: seen?.heldOf({ acceptedAt, until: at }) ?? null }
}

export type WithQuality = <D extends Decision | InviteDecision>(commit: Commit<D>) => Promise<D>

/**
 * Each end of an answered call is decided twice if an endpoint gets the end: the report of its media is read in between,
 * and nothing is written before [STAT1, HOLD1].
 */
export function createEndQuality({ hearsEnds, mediaAtEnd }: EndQualityOptions): WithQuality {
  function isHeardEnd({ call, event }: Step): boolean {
    return event.type === 'ended' && hearsEnds(call.product)
  }

  return async function withQuality(commit) {
    let ends: readonly Call[] = []
    const decision = await commit((decided) => {
      ends = decided.steps.filter(isHeardEnd).map(({ call }) => call)
      return ends.length === 0 ? decided : { ...decided, steps: [] }
    })
    if (ends.length === 0) return decision
    const read = ends.map(async (call) => [callKey(call), await mediaAtEnd(call)] as const)
    const known = new Map(await Promise.all(read))
    const told = (step: Step): Step =>
      isHeardEnd(step) ? { ...step, event: { ...step.event, ...mediaOf(step, known.get(callKey(step.call))) } } : step
    return commit((decided) => ({ ...decided, steps: decided.steps.map(told) }))
  }
}
