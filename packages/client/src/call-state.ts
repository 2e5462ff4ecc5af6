import type { CallOver } from '@ringwire/protocol/events/call'
import type { CallStatus } from '@ringwire/protocol/rest'
import {
  type Call,
  type CallState,
  type Direction,
  ownReasons,
  type Participant,
  type RingwireErrorShape,
} from './types.ts'

/** The events that can change the state of a call. */
export type CallInput =
  | { readonly type: 'invited'; readonly delivered: boolean; readonly expiresAt: number }
  | { readonly type: 'alerting' }
  | { readonly type: 'answering'; readonly on: boolean }
  | { readonly type: 'rings until'; readonly expiresAt: number }
  /** After glare: it is the peer's call now, and being answered. */
  | { readonly type: 'taken'; readonly expiresAt: number }
  | { readonly type: 'accepted' }
  | { readonly type: 'connected' }
  /** The service's answer about the call: the notice was lost or is on its way. */
  | { readonly type: 'stands'; readonly status: CallStatus }
  | {
      readonly type: 'over'
      readonly reason: string
      readonly status?: CallStatus
      readonly by?: Participant | null
      readonly error?: RingwireErrorShape | undefined
    }

/**
 * ringing → accepted → connected → over; nothing goes back, and what is over stays over. The same object comes back
 * where nothing changed.
 */
export function nextCallState(state: CallState, input: CallInput): CallState {
  if (state.name === 'over') return state
  if (input.type === 'over') {
    const { status, reason, by = null, error } = input
    return { name: 'over', status, reason, by, error }
  }
  if (input.type === 'stands') {
    const { status } = input
    if (status === 'ringing') return state
    const isAnswered = status === 'accepted' || status === 'connected'
    return nextCallState(state, isAnswered ? { type: status } : { type: 'over', status, reason: ownReasons.lost })
  }
  if (input.type === 'connected') return state.name === 'connected' ? state : { name: 'connected' }
  if (state.name !== 'ringing') return state
  if (input.type === 'accepted') return { name: 'accepted' }
  if (input.type === 'taken') {
    return { name: 'ringing', direction: 'incoming', answering: true, expiresAt: input.expiresAt }
  }
  if (state.direction === 'outgoing') {
    if (input.type === 'alerting') return { ...state, alerting: true }
    if (input.type !== 'invited') return state
    return { ...state, invited: true, delivered: input.delivered, expiresAt: input.expiresAt }
  }
  if (input.type === 'answering') return { ...state, answering: input.on }
  return input.type === 'rings until' ? { ...state, expiresAt: input.expiresAt } : state
}

/** Payload of call.rejected, call.cancelled, call.ended and call.missed [END2]. */
export function overFromWire(data: Pick<CallOver, 'status' | 'reason'> & Partial<Pick<CallOver, 'by'>>): CallInput {
  return { type: 'over', status: data.status, reason: data.reason, by: data.by ? participant(data.by) : null }
}

export function participant(wire: { user_id: string; role: string }): Participant {
  return { userId: wire.user_id, role: wire.role }
}

/** The first state of a call; an outgoing one has an end of its ring once the service has it. */
export function rings(direction: Direction, expiresAt?: number): CallState {
  const more =
    direction === 'incoming'
      ? { answering: false }
      : { invited: expiresAt !== undefined, delivered: undefined, alerting: false }
  return { name: 'ringing', direction, expiresAt, ...more } as CallState
}

export function ringsHere(state: CallState): state is Extract<CallState, { direction: 'incoming' }> {
  return state.name === 'ringing' && state.direction === 'incoming'
}

/** An invite of this client without an answer. */
export function isUnanswered({ state }: Pick<Call, 'state'>): boolean {
  return state.name === 'ringing' && state.direction === 'outgoing' && !state.invited
}

/** Calls that ring here have a place only when they are answered. */
export function hadPlace(call: Pick<Call, 'state'>): boolean {
  return !ringsHere(call.state) && !isUnanswered(call)
}
