export interface RecoveryOptions {
  restartAfterMs: number
  connectTimeoutMs: number
  /** Runs once after `ms`; the answer prevents it. */
  after(ms: number, run: () => void): () => void
  /** Whether a signal would reach the service now. */
  isOnline(): boolean
  /** The polite side waits a little longer: mostly both see the same loss, and one offer is enough. */
  isPolite(): boolean
  /** `fresh`: with a new connection, where new ICE credentials did not help. */
  restart(how: { fresh: boolean }): void
}

const politePauseMs = 1000
const firstRetryMs = 3000
const longestRetryMs = 15_000

/** When the connection is given another try. It ends with the call, not with a number of tries. */
export function createRecovery(options: RecoveryOptions) {
  let cancel: (() => void) | undefined
  let tries = 0
  /** A try that waits for the connection to the service. */
  let due = false
  let state: RTCPeerConnectionState = 'new'
  let begun = false

  function rest(): void {
    cancel?.()
    cancel = undefined
  }

  function after(ms: number): void {
    rest()
    cancel = options.after(ms + (options.isPolite() ? politePauseMs : 0), () => {
      cancel = undefined
      // New credentials on a path that works leave it connected, and nothing tells that they are through.
      if (state === 'connected') tries = 0
      else attempt()
    })
  }

  function attempt(): void {
    rest()
    due = !options.isOnline()
    if (due) return
    options.restart({ fresh: tries > 0 })
    after(Math.min(longestRetryMs, firstRetryMs * 2 ** tries))
    tries++
  }

  return {
    /** The call is answered: from now on there shall be a connection. */
    begin(): void {
      if (begun) return
      begun = true
      if (state !== 'connected') after(options.connectTimeoutMs)
    },
    /** The state of the connection of now. */
    follow(next: RTCPeerConnectionState): void {
      state = next
      if (!begun) return
      if (state === 'connected') {
        rest()
        tries = 0
        due = false
      } else if (state === 'failed') after(0)
      else if (state === 'disconnected') after(options.restartAfterMs)
    },
    /** There is a new connection, ours or in answer to the peer's. */
    opened(): void {
      state = 'new'
      if (begun && cancel === undefined) after(options.connectTimeoutMs)
    },
    /** Signals may be lost. */
    resync(): void {
      if (!begun) return
      tries = 0
      attempt()
    },
    /** The service can be reached again: a path that was lost with it is tried at once. */
    online(): void {
      if (begun && (due || state === 'disconnected' || state === 'failed')) attempt()
    },
    stop(): void {
      rest()
      begun = false
    },
  }
}

export type Recovery = ReturnType<typeof createRecovery>
