import { type Call, type CallRef, callKey, participantKey } from '../../call/call.ts'
import type { Step } from '../../call/effects.ts'
import type { Delivery } from '../../ports/webhooks.ts'
import type { Seen } from '../sql/call-steps.ts'
import {
  allColumns,
  type ColumnSet,
  callColumns,
  changedColumns,
  eventColumns,
  pushColumns,
  pushEvent,
  type RowValue,
} from '../sql/rows.ts'
import { deliveryColumns, deliveryValues } from '../sql/subscribers.ts'

/** A transition on its way to the database, and the rows that it locks there. */
export interface Write {
  readonly steps: readonly Step[]
  /** For each step the columns that differ from the previous version. */
  readonly changed: readonly ColumnSet[]
  readonly seen: Seen | undefined
  /** Events about it for endpoints. */
  readonly hooks: readonly Delivery[]
  readonly keys: readonly string[]
}

export function writeOf(
  steps: readonly Step[],
  seen: Seen | undefined,
  known: (ref: CallRef) => Call | undefined,
  hooks: readonly Delivery[] = [],
): Write {
  const keys = steps.map(({ call }) => callKey(call))
  if (seen !== undefined) keys.push(participantKey(seen.caller), participantKey(seen.callee))
  return { steps, changed: steps.map((step) => changedColumns(step, known(step.call))), seen, hooks, keys }
}

export const commitSql = `
  SELECT refused::text, noted::text
  FROM commit_steps($1::text::json, $2::text::json, $3::text::json, $4::text::json)`

/** The same where endpoints are to hear of it. */
export const hookedCommitSql = `
  SELECT refused::text, noted::text
  FROM commit_hooked_steps($1::text::json, $2::text::json, $3::text::json, $4::text::json, $5::text::json)`

const callNames = callColumns.map(memberName)
const hookNames = deliveryColumns.map(memberName)
const eventNames = ['product', 'call_uuid', ...eventColumns].map(memberName)

/** The arguments of `commit_steps`; a transition's number is its place in the batch. */
export function encodeBatch(batch: readonly Write[]): (string | null)[] {
  const creates: string[] = []
  const moves: string[] = []
  const events: string[] = []
  const seen: string[] = []
  for (const [t, write] of batch.entries()) {
    for (const [index, step] of write.steps.entries()) {
      if (step.call.version === 1) creates.push(encodeRow(t, callNames, callValues(step)))
      else moves.push(encodeMove(t, step, write.changed[index] ?? 0))
      const event: RowValue[] = [step.call.product, step.call.callUuid]
      pushEvent(event, step)
      events.push(encodeRow(t, eventNames, event))
    }
    if (write.seen !== undefined) seen.push(encodeSeen(t, write.seen))
  }
  return [arrayOrNull(creates), arrayOrNull(moves), arrayOrNull(events), arrayOrNull(seen)]
}

/** The last argument of `commit_hooked_steps`; null where no endpoint is to hear of anything. */
export function encodeHooks(batch: readonly Write[]): string | null {
  return arrayOrNull(
    batch.flatMap(({ hooks }, t) => hooks.map((delivery) => encodeRow(t, hookNames, deliveryValues(delivery)))),
  )
}

function callValues({ call }: Step): RowValue[] {
  const values: RowValue[] = []
  pushColumns(values, allColumns, call)
  return values
}

/** The name of the call, and what changes, also to null: a member that is left out changes nothing. */
function encodeMove(t: number, { call }: Step, changed: ColumnSet): string {
  const values: RowValue[] = []
  pushColumns(values, changed, call)
  let row = `{"t":${t},"product":${JSON.stringify(call.product)},"call_uuid":${JSON.stringify(call.callUuid)}`
  let next = 0
  for (const [index, name] of callNames.entries()) {
    if ((changed & (1 << index)) !== 0) row += name + JSON.stringify(values[next++])
  }
  return `${row}}`
}

function memberName(column: string): string {
  return `,"${column}":`
}

/** Members that are null are left out: json_to_recordset reads both alike. */
function encodeRow(t: number, names: readonly string[], values: readonly RowValue[]): string {
  let row = `{"t":${t}`
  for (const [index, name] of names.entries()) {
    const value = values[index] ?? null
    if (value !== null) row += name + (typeof value === 'number' ? value : JSON.stringify(value))
  }
  return `${row}}`
}

function encodeSeen(t: number, { caller, callee, live }: Seen): string {
  const versions = live.map((call) => `${call.callUuid}:${call.version}`).sort()
  return JSON.stringify({
    t,
    product: caller.product,
    caller: participantKey(caller),
    caller_user_id: caller.userId,
    caller_role: caller.role,
    callee: participantKey(callee),
    callee_user_id: callee.userId,
    callee_role: callee.role,
    live: versions.join(','),
  })
}

function arrayOrNull(rows: readonly string[]): string | null {
  return rows.length === 0 ? null : `[${rows.join(',')}]`
}

/** The answer: arrays as PostgreSQL writes them, `{}` or `{3,17}`. */
export interface CommitAnswer {
  readonly refused: string
  /** Null where nothing was written. */
  readonly noted: string | null
}

/** Of each transition the rows of its steps in the outbox; undefined where its guard failed. */
export function rowsOf(batch: readonly Write[], answer: CommitAnswer): (readonly number[] | undefined)[] {
  const refused = new Set(numbersOf(answer.refused))
  const noted = numbersOf(answer.noted ?? '{}')
  let from = 0
  return batch.map(({ steps }, t) => {
    if (refused.has(t)) return undefined
    const rows = noted.slice(from, from + steps.length)
    from += steps.length
    return rows
  })
}

function numbersOf(array: string): number[] {
  const inner = array.slice(1, -1)
  return inner === '' ? [] : inner.split(',').map(Number)
}
