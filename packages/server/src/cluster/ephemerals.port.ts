/** What a store says at one moment about who lives. */
export interface Look {
  /** Names the run of the server that answered: another name after a restart, and where another server took over. */
  readonly origin: string
  /** The nodes, of the given ones, that have their sign there. */
  readonly held: ReadonlySet<string>
}

export interface Holding {
  /** The sign is there from now on; called again whenever it was taken again. */
  onHeld(): void
  /** The connection that held it is gone: others may see no sign any more. */
  onLost(): void
}

/**
 * Signs that processes hold in a store for as long as they live: each belongs to a connection. The store lets go of it when
 * that connection ends, as when the process dies. A process that stands still keeps its sign, and one from which the network
 * swallows everything keeps it for a while.
 */
export interface Ephemerals {
  /** Takes the sign of a node, and takes it again as soon as it can whenever it is lost. */
  hold(node: string, holding: Holding): void
  /** Which of these nodes have their sign now. Rejects with a `StoreError`. */
  look(nodes: readonly string[]): Promise<Look>
  /** Lets go of the sign; `onLost` is not called for that. */
  close(): Promise<void>
}
