/** News of other nodes: which nodes said lately that they live, by the clock of the server. */
export interface Signs {
  /** Nobody knew this node before. */
  readonly isNew: boolean
  /** The time of the server, in ms. */
  readonly at: number
  /** Each with the time at which it said so last. */
  readonly listed: readonly (readonly [node: string, saidAt: number])[]
}

export interface Reader {
  /** The last batch was read, and is about to be handed over; also called now and then if nothing came. */
  onRead(): Promise<void>
  onBatch(bytes: Buffer): void
}

/** The messages between nodes, as one node sees them: batches in the order in which they were sent, and signs of life. */
export interface Post {
  /** Rejects with a `StoreError`; after `unknown` it may have been sent. */
  send(to: string, batch: string): Promise<void>
  /** Begins to read what is sent to this node. Each batch is handed over once, unless it is read again. */
  listen(reader: Reader): void
  /** The server may have lost what was written: it is read from its begin. */
  readAgain(): void
  /** Says that this node lives, and answers who said so within `ms`. Rejects with a `StoreError`. */
  beat(ms: number): Promise<Signs>
  /** This node stops: nobody waits for it. Reading ends. */
  stop(): Promise<void>
}
