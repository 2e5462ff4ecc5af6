/** The signals that ask a process to stop: the first is an order, a second one means at once. */

export type StopSignal = 'SIGINT' | 'SIGTERM'

export interface StopSignalSource {
  /** Calls the listener for each signal that asks to stop; gives what ends that. */
  onSignal(listener: (signal: StopSignal) => void): () => void
  readonly monotonic: () => number
}

/** A terminal's Ctrl-C reaches this process and the one that started it, which passes it on: that is one signal. */
const sameSignalMs = 300
const signalNumbers = { SIGINT: 2, SIGTERM: 15 } as const

/** `first` resolves with the first signal; `again` is called with an exit code for each that follows. */
export function listenForStop(
  source: StopSignalSource,
  again: (exitCode: number) => void,
): { readonly first: Promise<StopSignal>; forget(): void } {
  const { promise, resolve } = Promise.withResolvers<StopSignal>()
  let at: number | undefined
  const forget = source.onSignal((signal) => {
    const now = source.monotonic()
    if (at === undefined) {
      at = now
      resolve(signal)
    } else if (now - at > sameSignalMs) again(128 + signalNumbers[signal])
  })
  return { first: promise, forget }
}
