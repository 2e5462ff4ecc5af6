import { type Call, isLive, type Place, placeOf } from '../../call/call.ts'
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
  /** JSON of what few calls have: `Extra`. */
  extra: string | null
}

export interface EventRow {
  type: CallEvent['type']
  at: number
  by_user_id: string | null
  by_role: string | null
  by_session_id: string | null
  notices: string | null
}

interface Column {
  readonly name: keyof CallRow
  /** What the column holds of a call. */
  readonly part: (call: Call) => unknown
  /** The part as the column's value; the part itself where nothing is said. */
  readonly write?: (part: unknown) => RowValue
}

const json = (part: unknown): RowValue => (part === null ? null : JSON.stringify(part))

/** Every column of a call, in order; what names the call [UUID1] comes first. */
const columns: readonly Column[] = [
  { name: 'product', part: (call) => call.product },
  { name: 'call_uuid', part: (call) => call.callUuid },
  { name: 'caller_role', part: (call) => call.caller.role },
  { name: 'caller_user_id', part: (call) => call.caller.userId },
  { name: 'caller_name', part: (call) => call.caller.displayName },
  { name: 'callee_role', part: (call) => call.callee.role },
  { name: 'callee_user_id', part: (call) => call.callee.userId },
  { name: 'context_type', part: (call) => call.contextType },
  { name: 'context_id', part: (call) => call.contextId },
  { name: 'call_type', part: (call) => call.callType },
  { name: 'metadata', part: (call) => call.metadata, write: json },
  { name: 'started_at', part: (call) => call.startedAt },
  { name: 'ring_timeout_ms', part: (call) => call.ringTimeoutMs },
  { name: 'version', part: (call) => call.version },
  { name: 'status', part: (call) => call.status },
  { name: 'callee_name', part: (call) => call.callee.displayName },
  { name: 'ring_expires_at', part: (call) => call.ringExpiresAt },
  { name: 'caller_place', part: (call) => call.callerPlace, write: json },
  { name: 'callee_place', part: (call) => placeOf(call, 'callee'), write: json },
  { name: 'silenced', part: silencedOf, write: json },
  { name: 'accepted_at', part: (call) => (call.status === 'ringing' ? null : call.acceptedAt) },
  { name: 'connected_at', part: (call) => (call.status === 'ringing' ? null : call.connectedAt) },
  { name: 'ended_at', part: (call) => (isLive(call) ? null : call.endedAt) },
  { name: 'end_reason', part: (call) => (isLive(call) ? null : call.endReason) },
  { name: 'extra', part: extraOf, write: json },
]
const naming = 2

export const callColumns: readonly string[] = columns.map(({ name }) => name)

function silencedOf(call: Call): readonly string[] | null {
  return call.status === 'ringing' && call.silenced.length > 0 ? call.silenced : null
}

const extras = ['redirectedFrom', 'transferring', 'transferredTo', 'transferred', 'group', 'clock'] as const
type Extra = Pick<Call, (typeof extras)[number]>

function extraOf(call: Call): Extra | null {
  const parts = extras.filter((name) => call[name] !== undefined)
  return parts.length === 0 ? null : Object.fromEntries(parts.map((name) => [name, call[name]]))
}

/** Columns of a call, each the bit of its place in `callColumns`. */
export type ColumnSet = number

export const allColumns: ColumnSet = 2 ** columns.length - 1

/**
 * The columns that a step writes over the version before its own; those that name the call never change. All others where
 * that version is not known. A column that this process does not know is in none of them: what a newer one wrote there stays.
 */
export function changedColumns({ call }: Step, known: Call | undefined): ColumnSet {
  const before = known?.version === call.version - 1 ? known : undefined
  let changed = 0
  for (let index = naming; index < columns.length; index++) {
    const column = columns[index] as Column
    if (before === undefined || !isSame(column, before, call)) changed |= 1 << index
  }
  return changed
}

/** A transition hands parts on: those that did not change are the very same objects. */
function isSame({ part, write }: Column, before: Call, after: Call): boolean {
  const [one, other] = [part(before), part(after)]
  return one === other || (write !== undefined && write(one) === write(other))
}

export function columnNames(set: ColumnSet): string[] {
  return callColumns.filter((_, index) => (set & (1 << index)) !== 0)
}

/** The values of these columns, in order. */
export function pushColumns(out: RowValue[], set: ColumnSet, call: Call): void {
  for (let index = 0; index < columns.length; index++) {
    if ((set & (1 << index)) === 0) continue
    const { part, write } = columns[index] as Column
    const value = part(call)
    out.push(write === undefined ? (value as RowValue) : write(value))
  }
}

export const eventColumns = ['version', 'type', 'at', 'by_user_id', 'by_role', 'by_session_id', 'notices']

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

/** The effects to hand on: the notices, and with them the places that passed on, news for peers and a note, if there is any. */
export function effectsText({ notices, moved, peers, note }: Effects): string | null {
  if (moved !== undefined || peers !== undefined || note !== undefined)
    return JSON.stringify({ notices, moved, peers, note })
  return notices.length === 0 ? null : JSON.stringify(notices)
}

type Effects = Pick<CallEvent, 'notices' | 'moved' | 'peers' | 'note'>

export function effectsOf(text: string | null): Effects {
  const effects: Notice[] | Effects = text === null ? [] : JSON.parse(text)
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
    callerPlace: readPlace(row.caller_place),
    ...(row.extra !== null && (JSON.parse(row.extra) as Extra)),
  }
  if (row.status === 'ringing') {
    const silenced = row.silenced === null ? [] : (JSON.parse(row.silenced) as string[])
    return { ...base, status: row.status, silenced }
  }
  const { accepted_at: acceptedAt, connected_at: connectedAt } = row
  const calleePlace = row.callee_place === null ? null : readPlace(row.callee_place)
  if (row.status === 'accepted' || row.status === 'connected') {
    if (calleePlace === null || acceptedAt === null) throw incomplete(row)
    return { ...base, status: row.status, calleePlace, acceptedAt, connectedAt }
  }
  const { ended_at: endedAt, end_reason: endReason } = row
  if (endedAt === null || endReason === null) throw incomplete(row)
  return { ...base, status: row.status, calleePlace, acceptedAt, connectedAt, endedAt, endReason }
}

function readPlace(text: string): Place {
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
