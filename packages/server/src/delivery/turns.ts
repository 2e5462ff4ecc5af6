import type { MaybePromise } from '../ports/maybe.ts'
import { StoreError } from '../ports/store-error.ts'

/** Does the work, after all earlier work for the same call. Answers false if a store was away. Never rejects. */
export type InTurn = (key: string, work: () => MaybePromise<void>) => MaybePromise<boolean>

/** The steps of a call are handed on one after another. A call for which a store was away becomes `undelivered`. */
export function createTurns(undelivered: Set<string>, onError: (error: unknown) => void): InTurn {
  /** For each call the work that is under way. */
  const underWay = new Map<string, Promise<boolean>>()

  function guarded(key: string, work: () => MaybePromise<void>): MaybePromise<boolean> {
    try {
      const done = work()
      if (!(done instanceof Promise)) return true
      return done.then(
        () => true,
        (error) => failed(key, error),
      )
    } catch (error) {
      return failed(key, error)
    }
  }

  /** Answers true for a bug, because it would be one again and again. */
  function failed(key: string, error: unknown): boolean {
    if (error instanceof StoreError) undelivered.add(key)
    else onError(error)
    return !(error instanceof StoreError)
  }

  return (key, work) => {
    const before = underWay.get(key)
    const done = before === undefined ? guarded(key, work) : before.then(() => guarded(key, work))
    if (!(done instanceof Promise)) return done
    underWay.set(key, done)
    return done.finally(() => {
      if (underWay.get(key) === done) underWay.delete(key)
    })
  }
}
