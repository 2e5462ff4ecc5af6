import type {
  AnsweredCall,
  Call,
  CallClock,
  CallGroup,
  OverCall,
  Party,
  Place,
  RingingCall,
  Transferred,
  Transferring,
  Turns,
} from './call.ts'

/*
 * A call as another process sent it. That process may have another version: every field is checked, unknown fields are
 * left out, and without a needed field there is no call. A field that were taken for null would be written as null with
 * the next step.
 */

/** In front of a call of this shape. A version that changes the shape changes the mark: nodes with another one pass it over. */
export const callMark = 'C4'

type Check = (value: unknown) => boolean
type Fields<T> = { readonly [Field in keyof T]-?: Check }

const text: Check = (value) => typeof value === 'string'
const integer: Check = (value) => Number.isSafeInteger(value)
const flag: Check = (value) => typeof value === 'boolean'
const texts: Check = (value) => Array.isArray(value) && value.every(text)
const record: Check = (value) => typeof value === 'object' && value !== null && !Array.isArray(value)
const oneOf =
  (...values: readonly string[]): Check =>
  (value) =>
    typeof value === 'string' && values.includes(value)
const nullable =
  (check: Check): Check =>
  (value) =>
    value === null || check(value)
const optional =
  (check: Check): Check =>
  (value) =>
    value === undefined || check(value)
const object =
  <T>(fields: Fields<T>): Check =>
  (value) =>
    record(value) && fits(value as object, fields)

const party = object<Party>({ userId: text, role: text, displayName: nullable(text) })
/** Absent, or true. */
const closed: Check = (value) => value === undefined || value === true
/** A time in ms, or absent. */
const awaitedMs: Check = (value) => value === undefined || integer(value)
const placeBase = { sessionId: text, deviceId: nullable(text), node: text, settled: flag, can: optional(texts) }
const held = object<Place & { state: 'held' }>({ ...placeBase, state: oneOf('held') })
const vacant = object<Place & { state: 'vacant' }>({
  ...placeBase,
  ...{ state: oneOf('vacant'), since: integer, closed, awaitedMs },
})
const place: Check = (value) => held(value) || vacant(value)

const transferring = object<Transferring>({ to: text, by: oneOf('caller', 'callee') })
const transferred = object<Transferred>({
  ...{ from: text, by: party, firstStartedAt: integer },
  secondStartedAt: optional(integer),
})
const turns = object<Turns>({
  ...{ member: nullable(text), until: integer, memberRingMs: integer },
  ...{ next: integer, count: integer, hasRung: flag, rang: texts },
})
const group = object<CallGroup>({
  name: text,
  members: texts,
  declined: texts,
  left: optional(texts),
  turns: optional(turns),
})
const clock = object<CallClock>({ of: text, jumpedMs: integer })

const base = {
  product: text,
  callUuid: text,
  version: integer,
  caller: party,
  callee: party,
  contextType: text,
  contextId: text,
  callType: text,
  metadata: nullable(record),
  redirectedFrom: optional(text),
  transferring: optional(transferring),
  transferredTo: optional(text),
  transferred: optional(transferred),
  group: optional(group),
  clock: optional(clock),
  startedAt: integer,
  ringTimeoutMs: integer,
  ringExpiresAt: integer,
  callerPlace: place,
}
const ringing: Fields<RingingCall> = { ...base, status: oneOf('ringing'), silenced: texts }
const answered: Fields<AnsweredCall> = {
  ...base,
  status: oneOf('accepted', 'connected'),
  calleePlace: place,
  acceptedAt: integer,
  connectedAt: nullable(integer),
}
const over: Fields<OverCall> = {
  ...base,
  status: oneOf('ended', 'rejected', 'cancelled', 'missed', 'busy'),
  calleePlace: nullable(place),
  acceptedAt: nullable(integer),
  connectedAt: nullable(integer),
  endedAt: integer,
  endReason: text,
}

/** Undefined for what is no call of this version. */
export function readCall(value: unknown): Call | undefined {
  if (!record(value)) return undefined
  for (const fields of [ringing, answered, over]) {
    if (fits(value as object, fields)) return pick(value as object, fields) as unknown as Call
  }
  return undefined
}

function fits(value: object, fields: Readonly<Record<string, Check>>): boolean {
  return Object.entries(fields).every(([name, check]) => check((value as Record<string, unknown>)[name]))
}

function pick(value: object, fields: Readonly<Record<string, Check>>): object {
  const parts = Object.keys(fields).map((name) => [name, (value as Record<string, unknown>)[name]])
  return Object.fromEntries(parts.filter(([, part]) => part !== undefined))
}
