import { type ErrorBody, errorBody } from '@ringwire/protocol/errors'
import type { Call } from '../call/call.ts'
import type { Actor, Refusal } from '../call/command.ts'

/** A connected client as the calls see it. */
export interface ClientSession extends Actor {
  readonly allowedActions: readonly string[]
  readonly allowedPeerRoles: readonly string[]
  /** Of the token; an invite's own by default [INV1]. */
  readonly contextType: string
  readonly contextId: string
  /** The call of its last relay: relays of one call come by the hundred, and a new text is hashed anew. */
  lastNamed?: NamedCall
}

/** A call as a client named it, in any case [UUID1], and as it is looked up. */
export interface NamedCall {
  readonly named: string
  readonly callUuid: string
  readonly key: string
}

/** A relay that is on its way to another node, under its number. */
export interface UnderWay {
  readonly n: number
  /** Resolves when it and all before it were answered; never rejects. */
  readonly done: Promise<void>
}

/** A request among the others of its socket. */
export interface Waiter {
  /** It waits for somebody in this call: what is about something else need not wait for it [ORD1, PLACE4]. */
  waitsFor(call: Call): void
  /**
   * It waits for somebody outside of the service: what its client asks for meanwhile need not wait for it [HOOK5]. The signal
   * is aborted when the client hangs up the call of this uuid.
   */
  waitsOutside(callUuid: string | undefined): AbortSignal
  /** The last of the relays before it that are still on their way: whatever does not say that it comes after it waits for it. */
  readonly ahead: UnderWay | undefined
  /**
   * A number for a relay that has none, for the receiver to take it once: of a base session, which is over with its socket.
   * Undefined: an extended one numbers its requests itself, or does not have them taken once [EXT4].
   */
  nextNumber(): number | undefined
  /** It is a relay on its way, under this number: what comes next need not wait for its answer. Said before its turn ends. */
  isUnderWayAs(n: number): void
}

/** The outcome: `error` is the error for its client. */
export type Outcome<T> =
  | {
      readonly ok: true
      readonly value: T
      /** If the answer comes before others have heard of the step: when they have. */
      readonly handedOn?: Promise<void>
    }
  | { readonly ok: false; readonly error: ErrorBody }

export function errorOf(refusal: Refusal): ErrorBody {
  return errorBody(refusal.code, refusal.details)
}
