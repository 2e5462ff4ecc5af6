import type { Call, Outage } from '../call/call.ts'

/** The processes that serve together. */
export interface Nodes {
  /** This run of this node: no other has had the name. */
  readonly self: string
  /** Known for sure not to serve any more. An unknown node is not dead [END3]. */
  isDead(node: string): boolean
  /** The same after another look: a node that stood still may have gone on since the last one. */
  isStillDead(node: string): Promise<boolean>
  /** The nodes that are known to serve, without this one. */
  others(): readonly string[]
  /** How many sockets each of the other nodes has that serve, take clients, and say it [BAL1]. */
  loads(): readonly number[]
  /**
   * Lets the other nodes that have a place in a call know what was just committed to it, before they find out by asking. It
   * may be lost, or come late.
   */
  tell(call: Call): void
  /** Lets them know that this version, and those before it, have reached everybody. The same. */
  told(call: Call): void
}

/** Another node that serves, and its sockets: null where it takes no clients, or does not say. */
export interface PeerNode {
  readonly node: string
  readonly sockets: number | null
}

/** A run of a node is known to be over. */
export interface NodeDeath {
  readonly node: string
  /** It was stopped, and said so. */
  readonly hasLeft: boolean
  /** It was over before this node began to look. */
  readonly isPast: boolean
}

/** If nobody could come back for longer, that was an outage, in ms [END3]. */
export const outageMs = 3_000

/** Whether people can come back: the service is there with its stores [END3]. */
export interface Uptime {
  /** When they could not: those that may still matter, oldest first; the last may go on. */
  outages(): readonly Outage[]
  /** A store failed just now: one statement is not an outage, but worth a look. */
  doubt(): void
}
