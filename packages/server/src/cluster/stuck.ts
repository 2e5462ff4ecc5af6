/** There is news of the call. No node answers this: a silent one that answers late says for itself what it has. */
export const released = Symbol('released')

/** Questions about calls to nodes that are silent. The place of a session may pass on long before its node is dead. */
export interface Stuck {
  /** The answer to a question about a call, or `released` once there is news of the call. */
  answerOr(call: string, answer: Promise<unknown>): Promise<unknown>
  /** There is news of a call: nobody waits any longer. */
  release(call: string): void
}

export function createStuck(): Stuck {
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
