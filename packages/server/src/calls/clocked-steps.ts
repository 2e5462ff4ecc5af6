import type { Call } from '../call/call.ts'
import { byClock } from '../call/clock.ts'
import type { CallSteps, Changes } from '../ports/call-store.ts'
import type { SteadyClock } from '../time/steady-clock.ts'

/** Moves the deadlines of a call to the clock of this moment before a decision reads them [END3]. */
export function createClockedSteps(
  store: Pick<CallSteps, 'transition' | 'invite'>,
  { written }: Pick<SteadyClock, 'written'>,
): Pick<CallSteps, 'transition' | 'invite'> {
  /** A call that a decision creates names this clock, too. */
  function noted<D extends Changes & { readonly call?: Call }>(decision: D): D {
    const clock = written()
    if (clock.jumpedMs === 0) return decision
    const stamped = (call: Call) => (call.clock === undefined ? { ...call, clock } : call)
    const steps = decision.steps.map((step) => ({ ...step, call: stamped(step.call) }))
    return { ...decision, steps, ...(decision.call !== undefined && { call: stamped(decision.call) }) }
  }

  return {
    transition: (ref, decide) =>
      store.transition(ref, (call, linked) =>
        noted(decide(call && byClock(call, written()), linked && byClock(linked, written()))),
      ),
    invite: (caller, callee, callUuid, decide, foreseen) =>
      store.invite(
        ...([caller, callee, callUuid] as const),
        ({ sameUuid, live }) =>
          noted(
            decide({
              sameUuid: sameUuid && byClock(sameUuid, written()),
              live: live.map((call) => byClock(call, written())),
            }),
          ),
        foreseen,
      ),
  }
}
