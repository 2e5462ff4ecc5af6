import { type Call, type CallRef, callKey } from '../call/call.ts'
import type { MaybePromise } from '../ports/maybe.ts'
import type { LeftRow } from '../ports/outbox.ts'
import { SessionMovedError, StoreError } from '../ports/store-error.ts'
import { inBatches } from '../time/in-batches.ts'
import type { createHandingOn } from './handing-on.ts'
import type { KnownCalls } from './known-calls.ts'
import type { LateRings } from './late-rings.ts'
import type { createTurns } from './turns.ts'

/** `later`: a session is not where it was, and may be found in a moment; `away`: nobody knows when the sessions' store is back. */
export type CaughtUp = 'done' | 'later' | 'away'

export interface CatchingUpParts {
  readonly known: KnownCalls
  readonly lateRings: Pick<LateRings, 'watch' | 'heard' | 'retry'>
  readonly inTurn: ReturnType<typeof createTurns>
  readonly handOnLeft: ReturnType<typeof createHandingOn>['handOnLeft']
  /** The rows of a call that may not have reached everybody; oldest version first. */
  readonly leftOf: (ref: CallRef) => MaybePromise<readonly LeftRow[]>
  readonly load: (ref: CallRef) => MaybePromise<Call | undefined>
}

/** Hands on what was committed and not handed on by anybody: of one call, and of all that could not be handed on. */
export function createCatchingUp({ known, lateRings, inTurn, handOnLeft, leftOf, load }: CatchingUpParts) {
  const { undelivered, learn, toldOf } = known

  async function catchUp(call: Call): Promise<CaughtUp> {
    const key = callKey(call)
    learn(call)
    lateRings.heard(key, call.version)
    const upTo = toldOf(key)
    const caughtUp = tellRest(key, call)
    // The remaining steps may begin with a ring.
    return call.status === 'ringing' && upTo < call.version ? lateRings.watch(key, upTo, caughtUp) : caughtUp
  }

  async function tellRest(key: string, call: Call): Promise<CaughtUp> {
    let failure: 'later' | 'away' | undefined
    const isDone = await inTurn(key, async () => {
      if (toldOf(key) < call.version) {
        // Nothing is known to be missing: where the store does not say what is left, relays go on.
        const left = await whereThere(leftOf(call))
        if (left === undefined) {
          failure = 'away'
          return
        }
        await handOnLeft(key, call, left).catch((error) => {
          if (error instanceof SessionMovedError) failure = 'later'
          throw error
        })
      }
      undelivered.delete(key)
    })
    return isDone ? (failure ?? 'done') : (failure ?? 'away')
  }

  async function retry(): Promise<void> {
    lateRings.retry()
    let isAway = false
    await inBatches([...undelivered], async (key) => {
      const call = known.calls.get(key)
      if (call === undefined) undelivered.delete(key)
      else if (!isAway) isAway = (await catchUp(call)) === 'away'
    })
  }

  /** Delivers the call that a transfer made to everybody; rejects if that is not possible now. */
  async function catchUpFirst(next: CallRef): Promise<void> {
    const call = await load(next)
    const caught = call === undefined ? 'done' : await catchUp(call)
    if (caught === 'later') throw new SessionMovedError('a session of the call that a transfer made has moved')
    if (caught === 'away') throw new StoreError('unavailable', 'the call that a transfer made cannot be told now')
  }

  return { catchUp, catchUpFirst, retry }
}

async function whereThere<T>(read: MaybePromise<T>): Promise<T | undefined> {
  try {
    return await read
  } catch (error) {
    if (error instanceof StoreError) return undefined
    throw error
  }
}
