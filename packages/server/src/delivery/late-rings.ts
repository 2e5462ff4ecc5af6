import { type Call, callKey, participantOf, refOf, ringsAt } from '../call/call.ts'
import type { Notice, Step } from '../call/effects.ts'
import { allDone, type MaybePromise } from '../ports/maybe.ts'
import { StoreError } from '../ports/store-error.ts'
import type { HandingOnOptions } from './handing-on.ts'
import type { Notices } from './notices.ts'
import type { PlacesOptions } from './places.ts'

export interface LateRingsOptions extends Pick<HandingOnOptions, 'stepsAfter'>, Pick<PlacesOptions, 'isHeldElsewhere'> {
  readonly notices: Pick<Notices, 'tellRung'>
  readonly onError: (error: unknown) => void
}

/**
 * Rings of this process that may reach a session after another node has looked where the call rings, to tell that it rings no
 * more. This process looks again then: nobody else would [RING1].
 *
 * The other node says that it has committed something before it looks. So this process has heard of that by the time that its
 * ring has arrived, and a ring that was answered only after it had arrived costs nothing.
 */
export interface LateRings {
  /** A step is being handed on, perhaps a ring; `before`: the call as it was known when the step was committed. */
  watchStep<T>(step: Step, before: Call | undefined, handedOn: MaybePromise<T>): MaybePromise<T>
  /** A call begins to ring by a step after this version. */
  watch<T>(key: string, version: number, handedOn: MaybePromise<T>): MaybePromise<T>
  /** Somebody else has committed this version, or told of it. */
  heard(key: string, version: number): void
  /** Looks again where the store was away. */
  retry(): void
}

/** Rings on their way: `count` rings, the first of them by a step after `version`. */
interface OnTheWay {
  readonly version: number
  count: number
  isOld: boolean
}

export function createLateRings({ notices, stepsAfter, isHeldElsewhere, onError }: LateRingsOptions): LateRings {
  const rings = new Map<string, OnTheWay>()
  /** The calls of which nobody could look, each with the version of its ring. */
  const missed = new Map<string, number>()

  /** Nobody waits for it: sessions where it does not ring get nothing, and no session gets anything twice. */
  async function tellAgain(key: string, version: number): Promise<void> {
    try {
      const steps = await stepsAfter(refOf(key), version)
      for (const step of steps) await allDone(notices.tellRung(key, onlyStops(step, steps.at(-1) ?? step)))
    } catch (error) {
      if (error instanceof StoreError) missed.set(key, version)
      else onError(error)
    }
  }

  function arrived(key: string): void {
    const ring = rings.get(key)
    if (ring === undefined || --ring.count > 0) return
    rings.delete(key)
    if (ring.isOld) void tellAgain(key, ring.version)
  }

  function watch<T>(key: string, version: number, handedOn: MaybePromise<T>): MaybePromise<T> {
    if (!(handedOn instanceof Promise)) return handedOn
    const ring = rings.get(key) ?? { version, count: 0, isOld: false }
    rings.set(key, ring)
    ring.count++
    return handedOn.finally(() => arrived(key))
  }

  function heard(key: string, version: number): void {
    const ring = rings.get(key)
    if (ring !== undefined && version > ring.version) ring.isOld = true
  }

  return {
    watchStep(step, before, handedOn) {
      const { call } = step
      if (!isRing(step)) return handedOn
      const watched = watch(callKey(call), call.version, handedOn)
      // Only the nodes that have a place in a call hear what others commit to it.
      const mayBeOld = isHeldElsewhere(call.callerPlace)
      heard(callKey(call), mayBeOld ? Number.POSITIVE_INFINITY : (before?.version ?? 0))
      return watched
    },
    watch,
    heard,
    retry() {
      const again = [...missed]
      missed.clear()
      for (const [key, version] of again) void tellAgain(key, version)
    },
  }
}

const isRing = ({ event }: Step) => event.notices.some((notice) => notice.event === 'call.ringing')

/** Nobody is rung again, and nobody stops who has its next turn by now [GROUP1]. */
function onlyStops({ call, event }: Step, { call: latest }: Step): Step {
  return { call, event: { ...event, notices: event.notices.filter((notice) => isStop(notice, latest)) } }
}

function isStop({ event, to }: Notice, latest: Call): boolean {
  if (event === 'call.ringing') return false
  if (to.place !== 'rung' || to.member === undefined) return true
  return !ringsAt(latest, { ...participantOf(latest, 'callee'), userId: to.member })
}
