import type { Timers } from '../ports/clock.ts'

/** Tries after the first one, while places and sessions move from node to node: 1.3 seconds in all. */
export const maxTries = 8
/** Before the second of them; before each later one it is twice as long. In ms. */
const firstPauseMs = 10

/**
 * The first try comes at once, because mostly only this node was behind. Before a later one the nodes that change the call, or write a
 * session, get a moment.
 */
export async function pauseBefore(tries: number, timers: Pick<Timers, 'sleep'>): Promise<void> {
  if (tries > 1) await timers.sleep(firstPauseMs * 2 ** (tries - 2))
}
