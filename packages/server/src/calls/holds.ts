/**
 * Writes down when a side puts the call on hold and when it goes on, with the call's timeline [HOLD1]. Only changes are
 * written: what a side says with every mute says the same of its hold.
 *
 *   const holds = createHolds({ recorder, now })
 *   holds.said(call, side, session, true)
 */
import { type Call, type CallRef, callKey, placeOf, type Side } from '../call/call.ts'
import type { Recorder } from '../timeline/recorder.ts'
import type { ClientSession } from './request.ts'

export interface HoldsOptions {
  readonly recorder: Pick<Recorder, 'record'>
  /** The clock that calls go by. */
  readonly now: () => number
}

export interface Holds {
  /** `held`: as the side's `call.media` said it; undefined where it said nothing, which means no. */
  said(call: Call, side: Side, session: Pick<ClientSession, 'sessionId' | 'deviceId'>, held: boolean | undefined): void
  /** Whether this process wrote down a hold of the call. */
  hasWritten(ref: CallRef): boolean
}

/** This many changes of one side are written down by one process; a hold that was written is also ended in writing. */
export const mostChanges = 100
const mostSides = 50_000
/** A side that said nothing for this time is forgotten, in ms: what it says next is written again. */
const idleMs = 3_600_000

interface Known {
  isHeld: boolean
  /** The version of the call when it was said: with a later one, another node may have written something since. */
  version: number
  at: number
  written: number
}

/** After these versions, the invite, the accept and the connect, a side may have come from another node. */
const firstVersions = 3

export function createHolds({ recorder, now }: HoldsOptions): Holds {
  const sides = new Map<string, Known>()
  let sweptAt = 0

  function sweep(at: number): void {
    if (at - sweptAt < idleMs) return
    sweptAt = at
    for (const [key, side] of sides) if (at - side.at >= idleMs) sides.delete(key)
  }

  /** A change, or what may be one: what another node has written is not known here. */
  function isToWrite(known: Known | undefined, version: number, held: boolean | undefined): boolean {
    if (known !== undefined && known.written >= mostChanges) return known.isHeld && held !== true
    if (held === true) return !(known?.isHeld && known.version === version)
    if (known === undefined) return held === false || version > firstVersions
    return known.isHeld || (held === false && known.version !== version)
  }

  return {
    said(call, side, { sessionId, deviceId }, held) {
      if (placeOf(call, side) === null) return
      const key = side + callKey(call)
      const known = sides.get(key)
      if (!isToWrite(known, call.version, held)) return
      const at = now()
      sweep(at)
      if (known === undefined && sides.size >= mostSides) return
      sides.set(key, { isHeld: held === true, version: call.version, at, written: (known?.written ?? 0) + 1 })
      const what = held === true ? 'held' : 'resumed'
      recorder.record(call, { what, side, sessionId, deviceId: deviceId ?? undefined, detail: {} })
    },
    hasWritten: (ref) => (['caller', 'callee'] as const).some((side) => sides.has(side + callKey(ref))),
  }
}
