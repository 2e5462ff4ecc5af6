/**
 * The part of a session that every node can read. Only its owner writes it, together with the copy
 * (`cluster/copies.port.ts`).
 */
export interface Row extends RowFields {
  readonly sessionId: string
  /** The run of a node that has the session in memory; '' if a node that stopped has left it for others. */
  readonly owner: string
  /** How often the owner has changed. */
  readonly fence: string
}

/** The part of a row that its owner says. */
export interface RowFields extends RowOrigin {
  readonly hasSocket: boolean
  /** Which of the sockets that came back has it: of several at once the newest [RES1]. */
  readonly turn: number
  /** In ms since the epoch; infinite where the token has no end. */
  readonly expiresAt: number
  /** '' where the client has not said it. */
  readonly appVersion: string
  /** It has yet to hear how a call ended. */
  readonly hasLast: boolean
  /** A call rings there, and its client does not answer pings [PING1]. */
  readonly isUnsure: boolean
  /** Milliseconds within which the service expects its client back, if it closed the last socket with 1012 [PEER1]. */
  readonly awaitedMs: number | undefined
  /** Capabilities of its client, joined by commas [EXT6]. */
  readonly can: string
}

/** The part of a session that never changes. */
export interface RowOrigin {
  /** As `deviceField` in `cluster/rows.ts` writes it. */
  readonly device: string
  /** Of one whose device is not known any more: which one it was not; '' where nothing is known. */
  readonly isNotOf: string
  readonly extended: boolean
  readonly openedAt: number
  /** Whose it is: the hash of the participant. */
  readonly hash: string
}

/** A copy of a session, for the node that takes it over. */
export interface Copy {
  readonly fence: number
  readonly state: string
  /** False: a server that took over, or began again, may have lost the end of it. */
  readonly isWhole: boolean
  readonly entries: readonly string[]
}

/**
 * What a node goes by that takes a session over because of its row: the owner did not give it the session. A row that the server
 * has from another one, or from a file, may be older than the last owner.
 */
export interface Claiming {
  /** Such a row counts only on the server of this origin: there all nodes have written what they own. Undefined: nowhere. */
  readonly origin: string | undefined
  /** If such a row counts, the new fence is no lower than this. */
  readonly freshFence: number
}

/** One server of several that take writes. */
export interface Master {
  readonly name: string
  /** Names what it has, and whose that was: another name where it was promoted, or began again. */
  readonly origin: string
  /** The name under which nodes say there what they have written; each master has one. */
  readonly marker: string
}

/** How a node says its word. */
export interface Saying {
  readonly isForced?: boolean
  readonly serves?: boolean
  readonly dead?: readonly string[]
}

/**
 * Which sessions there are, and who owns them, as one node asks for it. Everything rejects with a `StoreError`. The servers may
 * be emptied or replaced by replicas that lack the end: whether a missing row can be believed, `cluster/completeness.ts` says.
 */
export interface Directory {
  /** Undefined if there is no such session. */
  row(sessionId: string): Promise<Row | undefined>
  /** The rows of a participant's sessions, in the order in which they were written first: those that are there. */
  rowsOf(hash: string): Promise<readonly Row[]>
  /**
   * Makes this node the owner of a session, if its fence is still that; the earlier owner can write nothing more of it.
   * `gone`: there is nothing to go on with. `unsure`: the row does not count, so nothing was done. Undefined where another node
   * was faster, or where the row was written again since all nodes were known to have written.
   */
  claim(sessionId: string, fence: string, by?: Claiming): Promise<Copy | 'gone' | 'unsure' | undefined>
  /** Nobody can go on with it: it is as if it had never been. */
  forget(sessionId: string, fence: number): Promise<void>
  /** The servers that take writes. */
  masters(): Promise<readonly Master[]>
  /** The name of the master that has the sessions under a tag. */
  masterOf(tag: string): string
  /**
   * The words of all nodes at a marker. This node says `word` there first: if it had said something else before and was
   * not told to be gone meanwhile, or where `isForced`; '' says nothing. Those in `dead` are said to be gone. Where this node
   * `serves`, nobody has to make up sessions any more.
   */
  say(marker: string, word: string, how?: Saying): Promise<ReadonlyMap<string, string>>
  /**
   * The word of this node there; null if the server does not know it, or if it is older than a takeover or restart of the
   * server.
   */
  said(marker: string): Promise<string | null>
  /**
   * Which node makes up the sessions of a master that was emptied; undefined if nobody has to. This node begins to where no
   * node has said anything at the marker, or where that was still for `dead` to do.
   */
  maker(marker: string, dead?: string): Promise<string | undefined>
  /** Nobody has to any more. */
  made(marker: string): Promise<void>
}
