/** There is news of the call. No node answers this. */
export const released = Symbol('released')

/** Questions about calls to silent nodes wait no longer than until there is news: a place may pass on long before its node is dead. */
export interface CallNews {
  /** The answer to a question about a call, or `released` once there is news of the call. */
  answerOr(call: string, answer: Promise<unknown>): Promise<unknown>
  /** There is news of a call: no question about it waits any longer. */
  release(call: string): void
}

export function createCallNews(): CallNews {
  const waiting = new Map<string, Set<(answer: typeof released) => void>>()

  return {
    async answerOr(call, answer) {
      const { promise, resolve } = Promise.withResolvers<typeof released>()
      const all = waiting.get(call) ?? new Set()
      waiting.set(call, all.add(resolve))
      try {
        return await Promise.race([answer, promise])
      } finally {
        all.delete(resolve)
        if (all.size === 0 && waiting.get(call) === all) waiting.delete(call)
      }
    },
    release(call) {
      const all = waiting.get(call)
      waiting.delete(call)
      for (const resolve of all ?? []) resolve(released)
    },
  }
}
