import type { AtOnce } from '../ports/maybe.ts'
import type { SessionIdentity, SessionPlaces } from '../ports/sessions.ts'
import { callOf, finish } from './calls.ts'
import { freshFence } from './fence.ts'
import type { Moves } from './moves.ts'
import { closeGate, hold, keep, openGate, takeKept } from './places.ts'
import type { Pushes } from './pushes.ts'
import type { Registry } from './registry.ts'
import type { Sending } from './sending.ts'
import { newestVersion } from './session.ts'

/** What a step of a call means for one session, and what waits for the step that accepts a call. */
export type Steps = Pick<AtOnce<SessionPlaces>, 'apply' | 'keep'>

export interface StepsOptions {
  readonly registry: Registry
  readonly sending: Sending
  readonly pushes: Pick<Pushes, 'appendTo'>
  readonly moves: Pick<Moves, 'leave'>
}

export function createSteps({ registry, sending, pushes, moves }: StepsOptions): Steps {
  function openDetached(identity: SessionIdentity, at: number): void {
    registry.now = Math.max(registry.now, at)
    if (registry.get(identity.sessionId) !== undefined) return
    // Its owner may live, and write it again.
    registry.create(identity, undefined, at).saving.fence = freshFence(registry.now)
  }

  return {
    keep(sessionId, push) {
      const session = registry.get(sessionId)
      if (session === undefined) return 'gone'
      const countKept = () => session.calls?.get(push.call)?.kept?.pushes.length
      const before = countKept()
      const result = keep(session, push)
      // A refused message, or one that is there already, costs no save.
      if (countKept() !== before) registry.changes.changed(session)
      return result
    },
    apply(sessionId, { call, version = newestVersion, orOpen, ...step }) {
      if (orOpen !== undefined) openDetached(orOpen.identity, orOpen.at)
      const session = registry.changing(sessionId)
      if (session === undefined) return undefined
      if (step.isRinging) callOf(session, call).isRinging = true
      const holds = step.place !== undefined && hold(session, call, step.place === 'settled', version)
      if (holds && (step.gate || step.isAnswered)) closeGate(session, call, version)
      const early = step.isAnswered ? takeKept(session, call) : []
      for (const push of step.pushes ?? []) pushes.appendTo(session, push)
      if (step.early !== undefined) openGate(session, call, step.early, sending.append)
      if (step.isOver) {
        finish(session, call)
        moves.leave(session, call)
      }
      return early
    },
  }
}
