/**
 * How much waits to be sent on all sockets of this process [WS7]. Each socket has a limit of its own; this one bounds many that
 * read slowly together.
 *
 *   const unsent = createUnsent({ limit, sockets, close, later })
 *   unsent.add(bytes)     after each write, by how much more or less waits than before
 */
export interface Unsent {
  /** Only adds. Over the limit the sockets that owe the most are closed, later. */
  add(bytes: number): void
}

export interface UnsentOptions<S> {
  /** In bytes. */
  readonly limit: number
  /** All of them, each with what waits there now. */
  readonly sockets: () => Iterable<readonly [socket: S, bytes: number]>
  /** Closes one, and adds what it takes off. */
  readonly close: (socket: S) => void
  readonly later: (work: () => void) => void
}

/** After the sockets are closed this share of the limit is left. So the next look at all of them is not due at once. */
const share = 0.9

export function createUnsent<S>({ limit, sockets, close, later }: UnsentOptions<S>): Unsent {
  let total = 0
  let isDue = false

  function shed(): void {
    isDue = false
    const owing = [...sockets()].filter(([, bytes]) => bytes > 0).sort(([, a], [, b]) => b - a)
    let left = owing.reduce((sum, [, bytes]) => sum + bytes, 0)
    // Some of the counted bytes may have been sent by now.
    if (left <= limit) return
    for (const [socket, bytes] of owing) {
      if (left <= limit * share) return
      close(socket)
      left -= bytes
    }
  }

  return {
    add(bytes) {
      total += bytes
      if (total <= limit || isDue) return
      isDue = true
      later(shed)
    },
  }
}
