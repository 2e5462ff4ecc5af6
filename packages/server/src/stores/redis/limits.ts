import { createHash } from 'node:crypto'
import type { Budget, Counter, Counters } from '../../limits/counters.port.ts'
import { StoreError } from '../../ports/store-error.ts'
import type { Store } from './connection.ts'
import type { Reply } from './scripts.ts'

export interface RedisCountersOptions {
  readonly store: Pick<Store, 'run'>
  /** Counts for only this node while Redis is away. */
  readonly fallback: Counters
  /** This node counts for itself from now on, and why; and not any more. One follows the other. */
  readonly onAway: (error: unknown) => void
  readonly onBack: () => void
  /** How long an answer may take, in ms; tests give a busy machine more. */
  readonly answerMs?: number
}

export interface RedisCounters extends Counters {
  close(): void
}

/** A request passes two counters at the most, and is not to wait for more than 250 ms for both. */
const longestAnswerMs = 100
/** How long Redis is left alone once it was away. Longer, each time, where it does not stay for `stayMs`. */
const shortestPauseMs = 1_000
const longestPauseMs = 30_000
const stayMs = 60_000

/** Counts over all nodes together, in Redis; for only this node while Redis does not answer in time. */
export function createRedisCounters(options: RedisCountersOptions): RedisCounters {
  const { store, fallback, onAway, onBack, answerMs = longestAnswerMs } = options
  let isAway = false
  let backAt = Number.NEGATIVE_INFINITY
  let pauseMs = 0
  let timer: Timer | undefined
  let isClosed = false

  function leave(error: unknown): void {
    if (isAway || isClosed) return
    isAway = true
    pauseMs = performance.now() - backAt < stayMs ? Math.min(pauseMs * 2, longestPauseMs) : shortestPauseMs
    onAway(error)
    lookAgain()
  }

  /** Nobody's request waits for a Redis that was just away: this asks first, for what a request would. */
  function lookAgain(): void {
    if (isClosed) return
    timer = setTimeout(() => {
      inTime(store.run('consume', [keyOf('', '')], [1, 1])).then(comeBack, lookAgain)
    }, pauseMs)
    timer.unref()
  }

  function comeBack(): void {
    if (isClosed) return
    isAway = false
    backAt = performance.now()
    onBack()
  }

  function inTime(reply: Promise<Reply>): Promise<Reply> {
    const { promise, resolve, reject } = Promise.withResolvers<Reply>()
    const late = () => reject(new StoreError('unknown', 'Redis did not answer in time'))
    // An answer that is there, and waited for this process to be free, is in time.
    let timer = setTimeout(() => {
      timer = setTimeout(late, 5)
    }, answerMs)
    reply.then(resolve, reject)
    return promise.finally(() => clearTimeout(timer))
  }

  function counter(name: string, budget: Budget): Counter {
    const own = fallback.counter(name, budget)
    return {
      async consume(subject) {
        if (isAway) return own.consume(subject)
        try {
          const args = [budget.count, budget.seconds * 1_000]
          const [waitMs] = await inTime(store.run('consume', [keyOf(name, subject)], args))
          return Number(waitMs)
        } catch (error) {
          leave(error)
          return own.consume(subject)
        }
      },
      async refund(subject) {
        // Taken here and given back there, or the other way round: one request is worth no bookkeeping.
        if (isAway) return own.refund(subject)
        await inTime(store.run('refund', [keyOf(name, subject)], [])).catch(leave)
      },
    }
  }

  return {
    counter,
    close() {
      isClosed = true
      clearTimeout(timer)
    },
  }
}

/** The names of the subjects do not show in Redis. */
function keyOf(name: string, subject: string): string {
  return `rw:c:${createHash('sha256').update(`${name}\0${subject}`).digest('base64url').slice(0, 22)}`
}
