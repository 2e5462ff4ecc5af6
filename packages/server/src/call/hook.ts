import type { CallHookType, HookType, ParticipantHookType } from '@ringwire/protocol/backend'
import { type Call, isLive, type Participant, type RingingCall } from './call.ts'
import type { CallEvent, Step } from './effects.ts'
import { callView } from './view.ts'

export type { HookType }

/** What a step of a call is called in a webhook [HOOK2]; places and clocks are nobody's business there. */
const typeOf: Readonly<Partial<Record<CallEvent['type'], CallHookType>>> = {
  invited: 'call.ringing',
  busy: 'call.busy',
  accepted: 'call.accepted',
  connected: 'call.connected',
  rejected: 'call.rejected',
  cancelled: 'call.cancelled',
  ended: 'call.ended',
  missed: 'call.missed',
}

const none: readonly CallHookType[] = []

/** What a step is told as: by what happened, and to those who wake phones by whether it rings now [PUSH2]. */
export function hookTypesOf(step: Step): readonly CallHookType[] {
  const type = typeOf[step.event.type]
  if (type === undefined) return none
  // Members of a group are not woken.
  if (step.call.group !== undefined) return [type]
  if (beginsToRing(step)) return [type, 'call.wake']
  return stopsRinging(step) ? [type, 'call.wake_cancelled'] : [type]
}

export function beginsToRing({ call, event }: Step): boolean {
  return event.type === 'invited' && call.status === 'ringing'
}

/** It was answered, or is over before it was. */
export function stopsRinging({ call, event }: Step): boolean {
  if (event.type === 'accepted') return true
  return hasOnlyRung(call) && typeOf[event.type] !== undefined
}

/** A call that is over from its first version on never rang: its invite was refused. */
function hasOnlyRung(call: Call): boolean {
  return !isLive(call) && call.acceptedAt === null && call.version > 1
}

/** The body of a webhook as it is signed and sent, the same every time [HOOK2]. */
export function hookBody(type: string, at: number, data: object): string {
  return JSON.stringify({ type, timestamp: new Date(at).toISOString(), data })
}

/** That of `call.wake` has no ticket yet: what opens something is not stored. */
export function callHookBody(type: CallHookType, { call, event }: Step): string {
  const media = type === 'call.ended' ? { quality: event.quality ?? null, held: event.held ?? null } : {}
  const view = { ...callView(call, event.by), ...media }
  const data = type === 'call.wake' ? { ...view, expires_at: new Date(call.ringExpiresAt).toISOString() } : view
  return hookBody(type, event.at, data)
}

/** The body of a repeated `call.wake`, which names the devices that fell asleep since the first one. */
export function wakeAgainBody(call: RingingCall, at: number, devices: readonly object[]): string {
  const expires_at = new Date(call.ringExpiresAt).toISOString()
  return hookBody('call.wake', at, { ...callView(call, call.caller), expires_at, devices })
}

export function presenceHookBody(type: ParticipantHookType, at: number, { role, userId }: Participant): string {
  return hookBody(type, at, { user_id: userId, role })
}
