import { StoreError } from '../ports/store-error.ts'
import { pause } from '../time/pause.ts'

/** Reads a store, and reads it again every second while it is away: until a time (ms since the epoch), or until `signal`. */
export type AtLast = <T>(read: () => Promise<T>, until: number, signal: AbortSignal) => Promise<T>

/** Devices that could not be read are read again after this many ms. */
const againMs = 1_000

export function createAtLast(now: () => number): AtLast {
  return async (read, until, signal) => {
    for (;;) {
      try {
        return await read()
      } catch (error) {
        if (!(error instanceof StoreError)) throw error
        await pause(againMs, signal)
        if (signal.aborted || now() >= until) throw error
      }
    }
  }
}
