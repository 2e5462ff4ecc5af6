import { callKey, refOf } from '../call/call.ts'
import type { Step } from '../call/effects.ts'
import { allDone } from '../ports/maybe.ts'
import type { HandingOnOptions } from './handing-on.ts'
import type { Notices } from './notices.ts'
import type { InTurn } from './turns.ts'

export interface LateRingsOptions extends Pick<HandingOnOptions, 'stepsAfter'> {
  readonly notices: Pick<Notices, 'tellRung'>
  readonly inTurn: InTurn
  readonly now: () => number
}

/**
 * Rings of this process that may reach a session after another node has looked where the call rings, to tell that it rings no
 * more. This process looks again then: nobody else would [RING1].
 */
export interface LateRings {
  /** A step is being handed on; `done`: it was handed on. */
  began(step: Step): void
  done(step: Step): void
  /** Another node has told everybody of a later version. */
  heard(key: string, version: number): void
  /** Forgets rings that were handed on long ago. */
  sweep(now: number): void
}

/** A ring that was handed on for so long reached its sessions before anybody told more of its call, in ms. */
const nearMs = 1_000

export function createLateRings({ notices, inTurn, stepsAfter, now }: LateRingsOptions): LateRings {
  /** When each ring was handed on; infinity: it is on its way. */
  const rings = new Map<string, number>()
  const isRing = ({ event, call }: Step) => event.type === 'invited' && call.status === 'ringing'

  /** Sessions where it does not ring are told nothing. */
  async function tellAgain(key: string): Promise<void> {
    const steps = await stepsAfter(refOf(key), 1)
    for (const step of steps) await allDone(notices.tellRung(key, withoutRings(step)))
  }

  return {
    began(step) {
      if (isRing(step)) rings.set(callKey(step.call), Number.POSITIVE_INFINITY)
    },
    done(step) {
      if (isRing(step)) rings.set(callKey(step.call), now())
    },
    heard(key, version) {
      const at = rings.get(key)
      if (at === undefined || version < 2 || now() - at > nearMs) return
      void inTurn(key, () => tellAgain(key))
    },
    sweep(at) {
      for (const [key, doneAt] of rings) if (at - doneAt > nearMs) rings.delete(key)
    },
  }
}

function withoutRings({ call, event }: Step): Step {
  return { call, event: { ...event, notices: event.notices.filter((notice) => notice.event !== 'call.ringing') } }
}
