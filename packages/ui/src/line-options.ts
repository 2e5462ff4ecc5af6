import type { CallMediaOptions } from '@ringwire/client/media'
import type { Transfers } from '@ringwire/client/transfer'

export interface LineOptions {
  /**
   * For each call's media, with the devices that the user chose. No camera is opened for an audio call.
   */
  readonly media?: CallMediaOptions | undefined
  /**
   * The treatment of a call that comes during another: rejected as busy, shown so that the user may answer it (`wait`),
   * or left to ring until this one is over (`hold`).
   */
  readonly busy?: 'reject' | 'wait' | 'hold' | undefined
  /** Of `createTransfers`: a call that is transferred goes on here, and the user may transfer one. */
  readonly transfers?: Transfers | undefined
}
