import type { Call, Unsubscribe } from '../types.ts'
import type { Capture } from './capture.ts'
import type { KeptMutes } from './kept-mutes.ts'
import type { MediaShown } from './media-state.ts'
import type { Negotiation } from './negotiation.ts'
import type { Opening } from './opening.ts'
import type { Playbacks } from './playback.ts'
import type { Reception } from './reception.ts'
import type { Recovery } from './recovery.ts'
import type { Reports } from './reports.ts'
import type { Senders } from './senders.ts'
import type { CallMediaOptions, MediaEnvironment } from './types.ts'

/** A call, or what an application puts in its place. */
type Optional = 'client' | 'claimSignals' | 'held' | 'hold' | 'resume'
export type CallOfMedia = Omit<Call, Optional> & Partial<Pick<Call, Optional>>

/** What each of the parts below needs. */
export interface Base {
  readonly call: CallOfMedia
  readonly options: CallMediaOptions
  readonly client: CallMediaOptions['client']
  readonly environment: MediaEnvironment
  readonly local: MediaStream
  readonly remote: MediaStream
  readonly shown: MediaShown
  failed(error: unknown): void
}

/** What this side sends. */
export interface Sending {
  readonly senders: Senders
  readonly kept: KeptMutes
  /** The page before this one held the call. */
  readonly wasHeld: boolean | undefined
  readonly capture: Capture
  /** Tells the peer what is sent. */
  tell(): void
}

/** How there comes to be a connection to the peer, and the next one. */
export interface Way {
  readonly recovery: Recovery
  readonly negotiation: Negotiation
  readonly opening: Opening
}

/** The media of one call, from inside. */
export interface Part extends Base, Sending, Way {
  readonly playbacks: Playbacks
  readonly reception: Reception
  readonly reports: Reports
  readonly subscriptions: Unsubscribe[]
  started: boolean
  stopWatching(): void
  releaseSignals?: Unsubscribe | undefined
}
