import { type Call, isLive, type Place } from '../../call/call.ts'
import type { By, CallEvent, Notice, Step } from '../../call/effects.ts'

/*
 * A call and its events as rows: what the SQL adapters share. Their tables have the same columns.
 */

export type RowValue = string | number | null

/** A call as its row holds it. */
export interface CallRow {
  product: string
  call_uuid: string
  caller_role: string
  caller_user_id: string
  caller_name: string | null
  callee_role: string
  callee_user_id: string
  context_type: string
  context_id: string
  call_type: string
  metadata: string | null
  started_at: number
  ring_timeout_ms: number
  version: number
  status: Call['status']
  callee_name: string | null
  ring_expires_at: number
  caller_place: string
  callee_place: string | null
  silenced: string | null
  accepted_at: number | null
  connected_at: number | null
  ended_at: number | null
  end_reason: string | null
}

export interface EventRow {
  type: CallEvent['type']
  at: number
  by_user_id: string | null
  by_role: string | null
  by_session_id: string | null
  notices: string | null
}

/** What names a call [UUID1]. */
export const identityColumns = ['product', 'call_uuid']
/** What hardly ever changes. */
export const headColumns = [
  'caller_role',
  'caller_user_id',
  'caller_name',
  'callee_role',
  'callee_user_id',
  'context_type',
  'context_id',
  'call_type',
  'metadata',
  'started_at',
  'ring_timeout_ms',
]
/** What a transition changes. */
export const movingColumns = [
  'version',
  'status',
  'callee_name',
  'ring_expires_at',
  'caller_place',
  'callee_place',
  'silenced',
  'accepted_at',
  'connected_at',
]
export const endColumns = ['ended_at', 'end_reason']

export const eventColumns = ['version', 'type', 'at', 'by_user_id', 'by_role', 'by_session_id', 'notices']

/** The values of `headColumns`, and so on. */
export function pushHead(out: RowValue[], call: Call): void {
  out.push(
    call.caller.role,
    call.caller.userId,
    call.caller.displayName,
    call.callee.role,
    call.callee.userId,
    call.contextType,
    call.contextId,
    call.callType,
    call.metadata === null ? null : JSON.stringify(call.metadata),
    call.startedAt,
    call.ringTimeoutMs,
  )
}

export function pushMoving(out: RowValue[], call: Call): void {
  const ringing = call.status === 'ringing'
  const calleePlace = ringing ? null : call.calleePlace
  out.push(
    call.version,
    call.status,
    call.callee.displayName,
    call.ringExpiresAt,
    JSON.stringify(call.callerPlace),
    calleePlace === null ? null : JSON.stringify(calleePlace),
    ringing && call.silenced.length > 0 ? JSON.stringify(call.silenced) : null,
    ringing ? null : call.acceptedAt,
    ringing ? null : call.connectedAt,
  )
}

export function pushEnd(out: RowValue[], call: Call): void {
  if (isLive(call)) out.push(null, null)
  else out.push(call.endedAt, call.endReason)
}

/** The values of a step's event in the order of `eventColumns`. */
export function pushEvent(out: RowValue[], { call, event }: Step): void {
  const { by } = event
  out.push(
    call.version,
    event.type,
    event.at,
    by?.userId ?? null,
    by?.role ?? null,
    by?.sessionId ?? null,
    effectsText(event),
  )
}

/** What is to be handed on: the notices, and with them the places that passed on where some did. */
function effectsText({ notices, moved }: CallEvent): string | null {
  if (moved !== undefined) return JSON.stringify({ notices, moved })
  return notices.length === 0 ? null : JSON.stringify(notices)
}

function effectsOf(text: string | null): Pick<CallEvent, 'notices' | 'moved'> {
  const effects: Notice[] | Pick<CallEvent, 'notices' | 'moved'> = text === null ? [] : JSON.parse(text)
  return Array.isArray(effects) ? { notices: effects } : effects
}

/** A row back as the call that it was written from. */
export function callOf(row: CallRow): Call {
  const base = {
    product: row.product,
    callUuid: row.call_uuid,
    version: row.version,
    caller: { userId: row.caller_user_id, role: row.caller_role, displayName: row.caller_name },
    callee: { userId: row.callee_user_id, role: row.callee_role, displayName: row.callee_name },
    contextType: row.context_type,
    contextId: row.context_id,
    callType: row.call_type,
    metadata: row.metadata === null ? null : (JSON.parse(row.metadata) as Record<string, unknown>),
    startedAt: row.started_at,
    ringTimeoutMs: row.ring_timeout_ms,
    ringExpiresAt: row.ring_expires_at,
    callerPlace: placeOf(row.caller_place),
  }
  if (row.status === 'ringing') {
    const silenced = row.silenced === null ? [] : (JSON.parse(row.silenced) as string[])
    return { ...base, status: row.status, silenced }
  }
  const { accepted_at: acceptedAt, connected_at: connectedAt } = row
  const calleePlace = row.callee_place === null ? null : placeOf(row.callee_place)
  if (row.status === 'accepted' || row.status === 'connected') {
    if (calleePlace === null || acceptedAt === null) throw incomplete(row)
    return { ...base, status: row.status, calleePlace, acceptedAt, connectedAt }
  }
  const { ended_at: endedAt, end_reason: endReason } = row
  if (endedAt === null || endReason === null) throw incomplete(row)
  return { ...base, status: row.status, calleePlace, acceptedAt, connectedAt, endedAt, endReason }
}

function placeOf(text: string): Place {
  return JSON.parse(text) as Place
}

function incomplete(row: CallRow): Error {
  return new Error(`The row of call ${row.call_uuid} is ${row.status} without what that status has.`)
}

export function eventOf(row: EventRow): CallEvent {
  return {
    type: row.type,
    at: row.at,
    by: byOf(row),
    ...effectsOf(row.notices),
  }
}

function byOf(row: EventRow): By | null {
  const { by_user_id: userId, by_role: role, by_session_id: sessionId } = row
  return userId === null || role === null || sessionId === null ? null : { userId, role, sessionId }
}
