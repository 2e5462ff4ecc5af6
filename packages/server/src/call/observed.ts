import type { CallRef, Participant, Side } from './call.ts'

/** Sightings of a call that are not transitions, which its events hold [TRACE1]. */
export type Seen =
  /** A text of the ring was handed to a socket; and, the second, its client was proven to have received it. */
  | 'rung'
  | 'proven'
  /** The client of a session where it rings did not answer a ping for 2 s [PING1]. */
  | 'unsure'
  | 'alerting'
  | 'socket_lost'
  | 'socket_found'
  /**
   * Nobody could be woken: no device is registered that this process has a push service for. Where nobody is woken at all, the
   * callee had no session.
   */
  | 'no_device'
  /**
   * A call began to ring at members of a group: how many there were, and how many of them were woken. A second entry says how many
   * had a session [GROUP1].
   */
  | 'members'
  /** The outcome of a push to a device, or of a webhook attempt. */
  | 'push'
  /** The backend was asked about the invite [HOOK5]. */
  | 'invite_hook'
  | 'webhook'
  /** An invite that was refused before there was a call. */
  | 'refused'
  /** What one side sent through one process, counted. */
  | 'relays'
  /** One side put the call on hold, or went on with it [HOLD1]. */
  | 'held'
  | 'resumed'
  /** Media quality as one side reported it to one process, from its least to its greatest [STAT1]. */
  | 'quality'

/** What an entry says of itself: never an address, an SDP or a token. */
export type Detail = Readonly<Record<string, unknown>>

/** One entry of a call's timeline, as it is stored. */
export interface TimelineRow extends CallRef {
  /** Of the call, once: who writes it again replaces it. Later entries of one process have greater ones. */
  readonly id: string
  /** By the clock that calls go by, in ms since the epoch. */
  readonly at: number
  readonly what: Seen
  /** Whose it is; null: of neither. The entry's details go when that participant is erased. */
  readonly side: Side | null
  /** Of an invite that was refused: who asked. There may be no call that would say so. */
  readonly asker?: Pick<Participant, 'role' | 'userId'> | undefined
  readonly sessionId?: string | undefined
  readonly deviceId?: string | undefined
  /**
   * Of the callee's side: the user_id of the participant whose it is. While a call rings at a group this may be somebody who
   * will not answer: the entry is only stored of the one who has [GROUP1].
   */
  readonly member?: string | undefined
  readonly detail: Detail
}

/** So many entries of a call are kept: later ones are not written, but those that are there can be replaced. */
export const mostEntries = 500
