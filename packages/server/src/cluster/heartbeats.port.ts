import type { Outage } from '../call/call.ts'

/** A node counts once in this time, in ms. */
export const beatMs = 1_000
/** A beat that takes longer has failed. */
export const beatLimitMs = 2_000

/** What a node says of itself. */
export interface Beat {
  /** This run of this node. */
  readonly node: string
  /** It serves, with both stores. */
  readonly ready: boolean
  /** It did not a moment ago: where nobody did, that was an outage [END3]. */
  readonly wasAway: boolean
  /** Outages that began then or later are of interest, in ms since the epoch by the database's clock. */
  readonly outagesFrom: number
  /** Outages that were over before this time ago are of no interest any more. In ms. */
  readonly keptMs: number
  /** How many sockets it has; null while it takes no clients [BAL1]. */
  readonly sockets: number | null
}

/** What a node reads of another one. */
export interface OtherNode {
  readonly name: string
  /** How often it has said that it lives. */
  readonly beats: number
  /** It was stopped, and said so. */
  readonly hasLeft: boolean
  /** How long ago it said something, by the database's clock, in ms. */
  readonly ageMs: number
  /** False of nodes of an older version, which have no sessions in their memory. */
  readonly ownsSessions: boolean
  /** Null where it takes no clients now, or does not say. */
  readonly sockets: number | null
}

/** What the database answers. */
export interface Beaten {
  /** Its time, in ms since the epoch. */
  readonly now: number
  /** How long ago some node was last ready; undefined where none ever was. In ms. */
  readonly readyAgeMs: number | undefined
  /** What its clock has jumped in all, as the nodes have agreed, in ms. */
  readonly jumpedMs: number
  /** By their begin. */
  readonly outages: readonly Outage[]
  /** All but the one that asks. */
  readonly others: readonly OtherNode[]
}

/** Where nodes say that they live. Everything rejects with a `StoreError` after `limitMs`. */
export interface Heartbeats {
  /** Counts on, and reads everybody's count, at once. */
  beat(beat: Beat, limitMs: number): Promise<Beaten>
  /** The time of the database, in ms since the epoch. */
  now(limitMs: number): Promise<number>
  /**
   * Its clock jumped: the sum is `jumpedMs` now, if it still was `known`, and outages move along. Answers what it is, or was a
   * moment ago.
   */
  jump(jumpedMs: number, known: number, limitMs: number): Promise<number>
  /** Says that this run has left. */
  leave(node: string, limitMs: number): Promise<void>
  close(): Promise<void>
}
