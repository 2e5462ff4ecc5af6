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
/** Of two looks the second one at least began after the network changed. */
const looksInDoubt = 2
/** After five looks at which a connected path brought nothing, although the peer sends, the next one opens a new connection. */
const deafLooks = 5
const mostDeaf = 2
const firstRetryMs = 3000
const longestRetryMs = 15_000

/** Whether a connected path is alive, by what arrives on it. */
function createHearing(attempt: () => void, fail: () => void) {
  /** Looks at what arrives that decide it. */
  let doubts = 0
  let deaf = 0
  let deafTries = 0

  return {
    doubt(looks: number): void {
      doubts = looks
    },
    looked(arrived: boolean, isDue?: boolean): void {
      if (arrived) deafTries = 0
      deaf = isDue && !arrived ? deaf + 1 : 0
      if (deaf > deafLooks && deafTries++ < mostDeaf) {
        deaf = 0
        fail()
        attempt()
      }
      if (!doubts) return
      doubts = arrived ? doubts - 1 : 0
      if (!arrived) attempt()
    },
  }
}

/** When the connection is given another try. It ends with the call, not with a number of tries. */
export function createRecovery(options: RecoveryOptions) {
  let cancel: (() => void) | undefined
  let tries = 0
  /** A try that waits for the connection to the service. */
  let due = false
  let state: RTCPeerConnectionState = 'new'
  let begun = false
  const hearing = createHearing(attempt, () => tries++)

  function rest(): void {
    cancel = void cancel?.()
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
    after(Math.min(longestRetryMs, firstRetryMs * 2 ** tries++))
  }

  return {
    /** The call is answered: from now on there shall be a connection. */
    begin(): void {
      if (!begun && state !== 'connected') after(options.connectTimeoutMs)
      begun = true
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
    /**
     * The service can be reached again: a path that was lost with it is tried at once. If the network changed, the
     * browser takes some seconds more to see it than the packets do.
     */
    online(): void {
      if (!begun) return
      if (due || state === 'disconnected' || state === 'failed') attempt()
      else hearing.doubt(looksInDoubt)
    },
    /**
     * Whether packets arrived since the last look, and whether the peer says that it sends. After a restart of ICE, Firefox and
     * Chromium may hold different pairs for the right one: both are connected, and one hears nothing.
     */
    looked: (arrived: boolean, isDue?: boolean) => state === 'connected' && hearing.looked(arrived, isDue),
    stop(): void {
      rest()
      hearing.doubt(0)
      begun = false
    },
  }
}

export type Recovery = ReturnType<typeof createRecovery>
