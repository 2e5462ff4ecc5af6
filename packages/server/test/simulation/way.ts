import { StoreError } from '../../src/ports/store-error.ts'
import type { Random } from '../fuzz/random.ts'
import type { Host, Scheduler } from './scheduler.ts'

/** How things are between a node and a store. */
export interface Link {
  isUp: boolean
  /** Of so many commands in a thousand the answer is lost; half of those are done. */
  lossPerMille: number
  /** The longest that one way takes, in ms. */
  latencyMs: number
}

/** A connection of a node to a store: in order, at its own pace, and at times nowhere. */
export interface Way {
  readonly link: Link
  /** `work` is what the store does, at once. Rejects with a `StoreError`: after `unknown` it may have been done. */
  send<T>(work: () => T): Promise<T>
  /** Whether commands can be sent. */
  isUp(): boolean
  /** The connection breaks: what is under way has no answer, and was done or not. */
  cut(): void
}

/** Nobody waits longer for a store, in ms. */
const deadlineMs = 4_000
/** The shortest that one way takes, in ms. */
const shortestMs = 0.05

export function createWay(
  scheduler: Scheduler,
  host: Host,
  random: Random,
  link: Link,
  store: { readonly isUp: boolean },
): Way {
  let lastThere = 0
  let lastBack = 0
  const pending = new Set<() => void>()
  const draw = () => shortestMs + (random.int(1_000) / 1_000) * link.latencyMs

  const isUp = () => link.isUp && store.isUp
  return {
    link,
    isUp,
    send<T>(work: () => T): Promise<T> {
      if (!isUp()) return Promise.reject(new StoreError('unavailable', 'the store is not connected'))
      const { promise, resolve, reject } = Promise.withResolvers<T>()
      const give = (finish: () => void) => {
        cancel()
        pending.delete(lose)
        finish()
      }
      const lose = () => give(() => reject(new StoreError('unknown', 'the connection to the store was lost')))
      const cancel = host.after(deadlineMs, () =>
        give(() => reject(new StoreError('unknown', 'the store did not answer in time'))),
      )
      pending.add(lose)
      const isLost = random.int(1_000) < link.lossPerMille
      const isDone = !isLost || random.chance(0.5)
      lastThere = Math.max(lastThere, scheduler.now + draw()) + 1e-6
      // Also where the node is dead by then.
      scheduler.after(lastThere - scheduler.now, () => {
        if (!isDone) return
        let finish: () => void
        try {
          const result = work()
          finish = () => resolve(result)
        } catch (error) {
          finish = () => reject(error)
        }
        if (isLost) return
        lastBack = Math.max(lastBack, scheduler.now + draw()) + 1e-6
        host.after(lastBack - scheduler.now, () => pending.has(lose) && give(finish))
      })
      return promise
    },
    cut() {
      for (const lose of [...pending]) lose()
    },
  }
}
