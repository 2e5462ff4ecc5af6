import { type ErrorBody, errorBody } from '@ringwire/protocol/errors'
import type { Call } from '../call/call.ts'
import type { Actor, Refusal } from '../call/decide.ts'

/** A connected client as the calls see it. */
export interface ClientSession extends Actor {
  readonly allowedActions: readonly string[]
  readonly allowedPeerRoles: readonly string[]
  /** Of the token; an invite's own by default [INV1]. */
  readonly contextType: string
  readonly contextId: string
}

/** A request that may have to wait for a holder's sign of life [PLACE4]. */
export interface Waiter {
  /** It waits for somebody in this call: what is about something else need not wait for it [ORD1]. */
  waitsFor(call: Call): void
}

/** What it came to: `error` is what its client is told. */
export type Outcome<T> =
  | {
      readonly ok: true
      readonly value: T
      /** Where the answer comes before others have heard of what it is about: when they have. */
      readonly handedOn?: Promise<void>
    }
  | { readonly ok: false; readonly error: ErrorBody }

export function errorOf(refusal: Refusal): ErrorBody {
  return errorBody(refusal.code, refusal.details)
}
