import type { ActiveCall } from '@ringwire/protocol/events/auth'
import type { CallSeed, LiveCall } from './call.ts'
import type { Listeners } from './listeners.ts'
import type { Request } from './requests.ts'
import type { CallClient } from './types.ts'
import type { Push } from './wire.ts'

/** The parts of a client that other entries of the SDK need. No application has to do with it. */
export const parts: unique symbol = Symbol.for('ringwire.parts')

/** A message of the service, before the client itself looks at it. */
export interface News {
  push: Push
  /** All live calls of the participant: the session begins, or its log was lost. */
  active: readonly ActiveCall[]
}

export interface ClientParts {
  ask(request: Request): Promise<unknown>
  readonly on: Listeners<News>['on']
  /** Calls that are not over, also those that the application does not see. */
  readonly live: ReadonlyMap<string, LiveCall>
  /** Neither live nor remembered as over. */
  isNews(callUuid: string): boolean
  /** One of the calls of the client from now on; the service does not have it yet. */
  add(seed: CallSeed): LiveCall
  /** The service's instant by this device's clock. */
  localTime(iso: string): number
}

export type ClientWithParts = CallClient & { readonly [parts]: ClientParts }
