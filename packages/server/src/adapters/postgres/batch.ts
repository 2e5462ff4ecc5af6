import { type Call, type CallRef, callKey, type Participant, participantKey } from '../../call/call.ts'
import type { Step } from '../../call/effects.ts'
import type { InviteSituation } from '../../ports/call-store.ts'
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

/** What an invite's decision was made on; it is written only if this is still so. */
export interface Seen {
  readonly caller: Participant
  readonly callee: Participant
  readonly live: InviteSituation['live']
}

/** A transition on its way to the database, and the rows that it locks there. */
export interface Write {
  readonly steps: readonly Step[]
  /** Of each step, what it writes over the version before. */
  readonly changed: readonly ColumnSet[]
  readonly seen: Seen | undefined
  readonly keys: readonly string[]
}

export function writeOf(
  steps: readonly Step[],
  seen: Seen | undefined,
  known: (ref: CallRef) => Call | undefined,
): Write {
  const keys = steps.map(({ call }) => callKey(call))
  if (seen !== undefined) keys.push(participantKey(seen.caller), participantKey(seen.callee))
  return { steps, changed: steps.map((step) => changedColumns(step, known(step.call))), seen, keys }
}

export const commitSql =
  'SELECT commit_changes($1::text::json, $2::text::json, $3::text::json, $4::text::json)::text AS refused'

const callNames = callColumns.map(memberName)
const eventNames = ['product', 'call_uuid', ...eventColumns].map(memberName)

/** The arguments of `commit_changes`; a transition's number is its place in the batch. */
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

/** Of the answer, `{}` or `{3,17}`: the numbers of the transitions whose guard failed. */
export function refusedOf(answer: string): Set<number> {
  const inner = answer.slice(1, -1)
  return new Set(inner === '' ? [] : inner.split(',').map(Number))
}
