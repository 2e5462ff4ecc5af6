import type { Received } from './client.ts'

/** An envelope of an extended session as it came, nothing taken away. */
export interface ExtendedMessage extends Received {
  readonly seq?: number
  readonly version?: number
}

/** The position that a client gives [RES1]; anything goes, tests lie here. */
export interface ResumePoint {
  readonly session_id: string
  readonly epoch: string
  readonly seq: number | string
  readonly n: number | string
}

/**
 * What happened on the wire, in order. A request is `asked` once; what goes over how many sockets for it shows only in
 * what comes back.
 */
export type TraceEntry =
  | { readonly kind: 'opened'; readonly socket: number; readonly resume: ResumePoint | undefined }
  /** `read`: which read of that socket brought it. */
  | { readonly kind: 'in'; readonly socket: number; readonly read: number; readonly message: ExtendedMessage }
  | {
      readonly kind: 'asked'
      readonly n: number
      readonly requestId: string | undefined
      readonly event: string
      readonly data: object
    }
  | { readonly kind: 'again'; readonly socket: number; readonly requests: number }
  | { readonly kind: 'closed'; readonly socket: number; readonly code: number; readonly reason: string }

/** Everything that one client saw and asked for. */
export interface Trace {
  readonly userId: string
  readonly entries: readonly TraceEntry[]
}
