import type { HookType } from '@ringwire/protocol/backend'
import type { CallEvent, Step } from './effects.ts'
import { callView } from './view.ts'

export type { HookType }

/** What a step of a call is called in a webhook [HOOK2]; places and clocks are nobody's business there. */
const typeOf: Readonly<Partial<Record<CallEvent['type'], HookType>>> = {
  invited: 'call.ringing',
  busy: 'call.busy',
  accepted: 'call.accepted',
  connected: 'call.connected',
  rejected: 'call.rejected',
  cancelled: 'call.cancelled',
  ended: 'call.ended',
  missed: 'call.missed',
}

export function hookTypeOf({ event }: Step): HookType | undefined {
  return typeOf[event.type]
}

/** The body of a webhook as it is signed and sent, the same every time [HOOK2]. */
export function hookBody(type: string, at: number, data: object): string {
  return JSON.stringify({ type, timestamp: new Date(at).toISOString(), data })
}

export function callHookBody(type: HookType, { call, event }: Step): string {
  return hookBody(type, event.at, callView(call, event.by))
}
