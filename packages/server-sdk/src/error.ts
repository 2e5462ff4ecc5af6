/**
 * The service refused a request, or could not be reached. `code` is one of the service's, or `NETWORK` (it was not
 * reached, or did not answer in time), `UNEXPECTED_ANSWER` (what answered is not Ringwire) or `INVALID_ARGUMENT` (an
 * option is missing or wrong; nothing was sent). No message holds the secret.
 */
export class RingwireError extends Error {
  readonly code: string
  /** HTTP status; undefined if there was no answer. */
  readonly status: number | undefined
  /** How long to wait before the next try, in ms, where the service says so. */
  readonly retryAfterMs: number | undefined

  constructor(
    code: string,
    message: string,
    more: { status?: number | undefined; retryAfterMs?: number | undefined; cause?: unknown } = {},
  ) {
    super(message, more.cause === undefined ? undefined : { cause: more.cause })
    this.name = 'RingwireError'
    this.code = code
    this.status = more.status
    this.retryAfterMs = more.retryAfterMs
  }
}
