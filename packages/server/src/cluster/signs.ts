import type { Timers } from '../ports/clock.ts'
import type { Ephemerals, Look } from './ephemerals.port.ts'

/**
 * A store that restarted, or lost this node's own sign, proves nothing for this time, in ms. The same holds for a store
 * at which this node did not look for this time: the node stood still, and perhaps the others with it. They make broken
 * connections again now.
 */
const steadyMs = 5_000

/** The signs in one store: who was seen there, and since when the store, and this node's own sign in it, are as they are. */
export function createSigns(store: Ephemerals, node: string, timers: Pick<Timers, 'monotonic'>) {
  let origin: string | undefined
  let originSince = 0
  let heldSince: number | undefined
  let lookedAt = Number.NEGATIVE_INFINITY
  let seen = new Set<string>()

  /**
   * A server that restarted, or took over, knows no sign at first. One that does not show this node's own sign is not the
   * one at which the nodes hold theirs.
   */
  function learn(look: Look): void {
    const now = timers.monotonic()
    if (look.origin !== origin || !look.held.has(node) || now - lookedAt > steadyMs) {
      origin = look.origin
      originSince = now
      seen.clear()
    }
    lookedAt = now
    for (const name of look.held) seen.add(name)
  }

  return {
    hold(onLost: () => void, onHeldAgain: () => void): void {
      let wasHeld = false
      store.hold(node, {
        onHeld() {
          heldSince = timers.monotonic()
          if (wasHeld) onHeldAgain()
          wasHeld = true
        },
        onLost() {
          heldSince = undefined
          seen.clear()
          onLost()
        },
      })
    },
    isHeld: () => heldSince !== undefined,
    async look(names: readonly string[]): Promise<Look> {
      const look = await store.look([node, ...names])
      learn(look)
      return look
    },
    isSteady(): boolean {
      const now = timers.monotonic()
      return heldSince !== undefined && now - Math.max(heldSince, originSince) >= steadyMs
    },
    knows: (name: string) => seen.has(name),
    hasLost: (name: string, { held }: Look) => seen.has(name) && !held.has(name),
    forget: (name: string) => void seen.delete(name),
    keep(names: ReadonlySet<string>): void {
      seen = seen.intersection(names)
    },
  }
}
