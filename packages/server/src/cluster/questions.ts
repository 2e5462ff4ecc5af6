import type { Cancel, Timers } from '../ports/clock.ts'
import { StoreError } from '../ports/store-error.ts'
import type { Answer } from './batch.ts'

export interface QuestionsOptions {
  readonly node: string
  /** A node leaves a question unanswered; called again and again until it answers. */
  readonly onWaiting: (node: string) => void
  readonly timers: Timers
}

/** After this time without an answer, in ms, the node that asks looks whether the other one lives. */
const unansweredMs = 50

interface Pending {
  readonly to: string
  readonly since: number
  readonly resolve: (value: unknown) => void
  readonly reject: (error: StoreError) => void
  readonly cancel: Cancel
}

export type Questions = ReturnType<typeof createQuestions>

/** The questions of this node that have no answer yet. */
export function createQuestions({ node, onWaiting, timers }: QuestionsOptions) {
  const pending = new Map<number, Pending>()
  let lastId = 0
  let isWatching = false
  let isStopped = false

  function take(id: number): Pending | undefined {
    const known = pending.get(id)
    known?.cancel()
    pending.delete(id)
    return known
  }

  const fail = (id: number, error: StoreError) => take(id)?.reject(error)

  /** One timer for all questions: most are answered long before. */
  function watch(): void {
    if (isWatching || isStopped) return
    isWatching = true
    timers.after(unansweredMs, () => {
      isWatching = false
      const before = timers.monotonic() - unansweredMs
      const late = new Set<string>()
      for (const { to, since } of pending.values()) if (since <= before) late.add(to)
      for (const each of late) if (each !== node) onWaiting(each)
      if (pending.size > 0) watch()
    })
  }

  return {
    /** `answer` rejects with a `StoreError` if no answer comes within `ms`. */
    open(to: string, ms: number) {
      lastId++
      const id = lastId
      const { promise, resolve, reject } = Promise.withResolvers<unknown>()
      const expire = () => fail(id, new StoreError('unknown', 'the node of the session did not answer in time'))
      const since = timers.monotonic()
      pending.set(id, { to, since, resolve, reject, cancel: timers.after(ms, expire) })
      watch()
      return { id, answer: promise }
    },
    answered(ids: readonly number[], answer: Answer): void {
      for (const id of ids) {
        if ('failed' in answer) fail(id, new StoreError(answer.failed, answer.why))
        else take(id)?.resolve(answer.ok)
      }
    },
    fail,
    /** Fails all, or those to one node. */
    failAll(error: StoreError, to?: string): void {
      for (const [id, asked] of [...pending]) if (to === undefined || asked.to === to) fail(id, error)
    },
    stop(): void {
      isStopped = true
    },
  }
}
