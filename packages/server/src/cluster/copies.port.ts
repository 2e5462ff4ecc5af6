import type { RowFields } from './directory.port.ts'

/** What changed of one session. */
export interface SessionWrite {
  readonly sessionId: string
  /** The hash of its participant. */
  readonly hash: string
  readonly fence: number
  /**
   * `all`: begins a row that is not there, or writes one of this owner anew. `over`: the same, and writes over the copy of an
   * earlier owner that this owner was shown. `part`: needs the row as this owner left it. `gone`: the session is over.
   */
  readonly what: 'all' | 'over' | 'part' | 'gone'
  /** Undefined where nothing of the row changed. With `all` and `over` it is complete, else what never changes is left out. */
  readonly row: RowFields | undefined
  /** The copy, for a node that takes the session over; '' where nobody could go on with it. Written with the row. */
  readonly state: string
  /** The node that this one gives the session to; '' for any node that needs it. It may be written so more than once. */
  readonly newOwner: string | undefined
  /** How long it is remembered, in ms; undefined: as before. */
  readonly ttlMs: number | undefined
  readonly log: LogWrite
}

export interface LogWrite {
  /** It is written anew. */
  readonly isWhole: boolean
  /** The number of entries that leave its begin. */
  readonly dropped: number
  /** These come to its end. */
  readonly added: readonly string[]
}

/** One that was not written: which of them, and why. */
export type Refusal = Missed | Overtaken

interface Missed {
  readonly index: number
  /** `moved`: another owner has it with a socket. `other`: without one. `missing`: nobody has it, or an earlier owner wrote it. */
  readonly why: 'moved' | 'other' | 'missing'
}

/**
 * An earlier owner wrote it, because the store had forgotten the later one. That owner can write no more from now on. Its copy
 * stays, and nobody goes on with it, until the later owner writes `over` it. Until then `all` gets this answer again.
 */
interface Overtaken extends EarlierCopy {
  readonly index: number
  readonly why: 'earlier'
}

/** What an earlier owner wrote of a session; both '' where there is nothing to go on with. */
export interface EarlierCopy {
  readonly state: string
  readonly lastEntry: string
}

/** A session as it is looked after. */
export type Remembered = Pick<SessionWrite, 'sessionId' | 'fence'> & { readonly ttlMs: number }

/**
 * The copies of the sessions of one node, with their rows: what another node needs to go on with them. Everything rejects with
 * a `StoreError`; after `unknown` it may have been done.
 */
export interface Copies {
  /** Sessions with the same answer are on one server, and can be in one call. */
  partOf(sessionId: string): string
  /** Writes sessions of one part, all at once; answers those that were refused. */
  save(writes: readonly SessionWrite[]): Promise<readonly Refusal[]>
  /** Remembers them for `ttlMs` from now on; answers those that are not this node's any more. */
  renew(sessions: readonly Remembered[]): Promise<readonly Refusal[]>
  /** Whether everything of these sessions is there. */
  areThere(sessions: readonly { sessionId: string; hash: string; hasLog: boolean }[]): Promise<boolean>
  /** False while nothing can be written. */
  isConnected(): boolean
}
