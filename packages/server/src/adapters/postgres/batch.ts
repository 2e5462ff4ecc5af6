import { callKey, type Participant, participantKey } from '../../call/call.ts'
import type { Step } from '../../call/effects.ts'
import type { InviteSituation } from '../../ports.ts'
import {
  endColumns,
  eventColumns,
  headColumns,
  identityColumns,
  movingColumns,
  pushEnd,
  pushEvent,
  pushHead,
  pushMoving,
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
  readonly seen: Seen | undefined
  readonly keys: readonly string[]
}

export function writeOf(steps: readonly Step[], seen: Seen | undefined): Write {
  const keys = steps.map(({ call }) => callKey(call))
  if (seen !== undefined) keys.push(participantKey(seen.caller), participantKey(seen.callee))
  return { steps, seen, keys }
}

export const commitSql =
  'SELECT commit_calls($1::text::json, $2::text::json, $3::text::json, $4::text::json)::text AS refused'

const callNames = [...identityColumns, ...headColumns, ...movingColumns, ...endColumns].map(memberName)
const eventNames = ['product', 'call_uuid', ...eventColumns].map(memberName)

/** The arguments of `commit_calls`; a transition's number is its place in the batch. */
export function encodeBatch(batch: readonly Write[]): (string | null)[] {
  const creates: string[] = []
  const moves: string[] = []
  const events: string[] = []
  const seen: string[] = []
  for (const [t, write] of batch.entries()) {
    for (const step of write.steps) {
      const rows = step.call.version === 1 ? creates : moves
      rows.push(encodeRow(t, callNames, callValues(step)))
      const event: RowValue[] = [step.call.product, step.call.callUuid]
      pushEvent(event, step)
      events.push(encodeRow(t, eventNames, event))
    }
    if (write.seen !== undefined) seen.push(encodeSeen(t, write.seen))
  }
  return [arrayOrNull(creates), arrayOrNull(moves), arrayOrNull(events), arrayOrNull(seen)]
}

function callValues({ call }: Step): RowValue[] {
  const values: RowValue[] = [call.product, call.callUuid]
  pushHead(values, call)
  pushMoving(values, call)
  pushEnd(values, call)
  return values
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
