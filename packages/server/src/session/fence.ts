/**
 * A fence above all that a session has by changing owners. An earlier owner may only have stood still: it cannot write the
 * session over what came since. `now`: in ms since the epoch.
 */
export function freshFence(now: number): number {
  return Math.max(1, Math.floor(now))
}
