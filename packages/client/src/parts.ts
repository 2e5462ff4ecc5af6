import type { ActiveCall } from '@ringwire/protocol/events/auth'
import type { Request } from './requests.ts'
import type { Call, CallClient } from './types.ts'

/** Where a client keeps what other entries of the SDK need of it. No application has to do with it. */
export const parts: unique symbol = Symbol.for('ringwire.parts')

export interface ClientParts {
  ask(request: Request): Promise<unknown>
  /** Goes on here with a call that is at another session of this participant [TAKE1]. */
  take(active: ActiveCall): Call
}

export type ClientWithParts = CallClient & { readonly [parts]: ClientParts }
