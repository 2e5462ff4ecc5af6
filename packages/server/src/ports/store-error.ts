/**
 * What the store could not do. `unavailable`: nothing was written. `unknown`: it may or may not have been written
 * (the time limit passed, the connection was lost); a retry is harmless, because every write names the version it
 * builds on.
 */
export class StoreError extends Error {
  readonly kind: 'unavailable' | 'unknown'
  constructor(kind: 'unavailable' | 'unknown', message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'StoreError'
    this.kind = kind
  }
}

/** A session is not where it was a moment ago: the next try finds it, or hears that it is lost. */
export class SessionMovedError extends StoreError {
  constructor(message: string) {
    super('unknown', message)
  }
}
