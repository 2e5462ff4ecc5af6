// Polling instead of sleeping. To wake a process that sleeps on another core is work of the sender: it would be
// charged to the server, and to a slow one more often than to a fast one.

export interface Awake {
  /** Every message that comes in sets this, for the count of idle turns. */
  worked: boolean
  /** Nanoseconds spent in turns of the event loop that had nothing to do. */
  idleNs: number
  stop(): void
}

/** `work` is done once a turn, and says whether there was any. */
export function stayAwake(work: () => boolean = () => false): Awake {
  let last = Bun.nanoseconds()
  let running = true
  const awake: Awake = { worked: false, idleNs: 0, stop: () => (running = false) }
  const turn = () => {
    if (work()) awake.worked = true
    const now = Bun.nanoseconds()
    if (!awake.worked) awake.idleNs += now - last
    awake.worked = false
    last = now
    if (running) setImmediate(turn)
  }
  turn()
  return awake
}
