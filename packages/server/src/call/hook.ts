import type { CallHookType, HookType, ParticipantHookType } from '@ringwire/protocol/backend'
import { type Call, isLive, type Participant, type RingingCall, rungBy, wasJoined } from './call.ts'
import { type CallEvent, ringsUntil, rungTo, type Step } from './effects.ts'
import { callView } from './view.ts'

export type { HookType }

/** The webhook type for a step of a call [HOOK2]; webhooks do not tell of places and clocks. */
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

/** An event for an endpoint. */
export interface HookEvent {
  readonly type: CallHookType
  /** Of a call to a group: the member to wake, or not any more. */
  readonly member?: Participant
}

const none: readonly HookEvent[] = []

/** The events of a step: by what happened, and for those who wake phones by whether it rings now [PUSH2]. */
export function hookEventsOf(step: Step): readonly HookEvent[] {
  const type = typeOf[step.event.type]
  if (step.call.group !== undefined) return groupEventsOf(step, type)
  if (type === undefined) return none
  if (ringsSince(step).length > 0) return [{ type }, { type: 'call.wake' }]
  return stopsRinging(step) ? [{ type }, { type: 'call.wake_cancelled' }] : [{ type }]
}

/** Members of a group are woken each for itself, and so they hear that it is over [GROUP1]. */
function groupEventsOf(step: Step, type: CallHookType | undefined): readonly HookEvent[] {
  return [
    ...(type === undefined ? none : [{ type }]),
    ...ringsSince(step).map((member) => ({ type: 'call.wake', member }) as const),
    ...quietSince(step).map((member) => ({ type: 'call.wake_cancelled', member }) as const),
  ]
}

/** At whom the call rings since this step. */
export function ringsSince({ call, event }: Step): readonly Participant[] {
  const begins = event.type === 'invited' || event.type === 'turn'
  return begins && call.status === 'ringing' ? rungBy(call) : []
}

/** At whom the call rang until this step: one of them answered, the call is over, or it goes on to ring at others. */
export function quietSince(step: Step): readonly Participant[] {
  const { call, event } = step
  if (call.group === undefined) return stopsRinging(step) ? rungBy(call) : []
  if (event.type === 'accepted') return rungBy(call)
  if (call.version === 1 || (isLive(call) && call.status !== 'ringing')) return []
  const stops = event.notices.filter(({ to, event }) => to.place === 'rung' && event !== 'call.ringing')
  return stops.flatMap(({ to }) => rungTo(call, to))
}

/** It was answered, or is over before it was. */
function stopsRinging({ call, event }: Step): boolean {
  if (event.type === 'accepted') return !wasJoined(call)
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

/** The body of `call.wake` has no ticket yet: a secret that opens something is not stored. */
export function callHookBody({ type, member }: HookEvent, { call, event }: Step): string {
  const media = type === 'call.ended' ? { quality: event.quality ?? null, held: event.held ?? null } : {}
  const view = { ...callView(call, event.by), ...media, ...memberView(member) }
  const data = type === 'call.wake' ? { ...view, expires_at: new Date(ringsUntil(call)).toISOString() } : view
  return hookBody(type, event.at, data)
}

/** Devices that fell asleep while a call rings. */
export interface WokenAgain {
  /** Whose they are. */
  readonly participant: Participant
  readonly devices: readonly object[]
}

/** The body of a repeated `call.wake`, which names the devices that fell asleep since the first one. */
export function wakeAgainBody(call: RingingCall, at: number, { participant, devices }: WokenAgain): string {
  const expires_at = new Date(ringsUntil(call)).toISOString()
  const member = call.group === undefined ? undefined : participant
  return hookBody('call.wake', at, { ...callView(call, call.caller), ...memberView(member), expires_at, devices })
}

function memberView(member: Participant | undefined): { readonly member?: object } {
  return member === undefined ? {} : { member: { user_id: member.userId, role: member.role } }
}

export function presenceHookBody(type: ParticipantHookType, at: number, { role, userId }: Participant): string {
  return hookBody(type, at, { user_id: userId, role })
}
