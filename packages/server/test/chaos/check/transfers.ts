import type { EventRow } from '../recording.ts'
import type { CallFacts, Facts } from './facts.ts'
import { clockSlackMs, type Report } from './findings.ts'
import { outcomeOf, type Reading } from './reading.ts'

/**
 * A transfer is one new call. What becomes of it is decided for both calls at once: it is answered, and the first one ends
 * for that; it is not, and the first one goes on; or the first one ends before, and the new one with it [XFER1].
 */
export function checkTransfers(readings: readonly Reading[], facts: Facts, startedAt: number, report: Report): void {
  const newCalls = [...facts.values()].filter(({ row }) => row.transferred_from !== undefined)
  const byFirst = Map.groupBy(newCalls, ({ row }) => row.transferred_from ?? '')
  for (const [call, first] of facts)
    for (const text of problemsOf(first, byFirst.get(call) ?? [])) report('transfer', text, { call })
  for (const call of byFirst.keys())
    if (!facts.has(call)) report('transfer', 'a call was transferred from it, and it is not stored', { call })
  for (const reading of readings) {
    checkOrder(reading, newCalls, startedAt, report)
    checkStarted(reading, facts, report)
  }
}

/** What the rows of a first call and of those that began as its transfers say of each other. */
function problemsOf({ row, events }: CallFacts, newCalls: readonly CallFacts[]): string[] {
  const began = events.filter(({ type }) => type === 'transferring')
  const failed = events.filter(({ type }) => type === 'transfer_failed')
  const problems: string[] = []
  if (began.length !== newCalls.length) problems.push(`${began.length} transfers began, and ${newCalls.length} calls`)
  const rings = events.filter(({ type }) => type === 'transferring' || type === 'transfer_failed')
  if (rings.some(({ type }, i) => (type === 'transferring') !== (i % 2 === 0)))
    problems.push(`transfers overlap: ${rings.map(({ type, version }) => `${type} (${version})`)}`)
  const answered = newCalls.filter(({ reached }) => reached.has('accepted'))
  const isHandedOver = row.end_reason === 'transferred'
  if (answered.length !== (isHandedOver ? 1 : 0))
    problems.push(`it ended with ${row.end_reason}, and ${answered.length} new calls were answered`)
  const [next] = answered
  if (isHandedOver && next !== undefined && !isSameCommit(next, row.ended_at, row.transferred_to))
    problems.push(`it was transferred to ${row.transferred_to} at ${row.ended_at}, not with the answer`)
  for (const next of newCalls.filter(({ isOver }) => isOver)) {
    const text = problemOfUnanswered(next, row.ended_at, failed)
    if (text !== undefined) problems.push(text)
  }
  return problems
}

const isSameCommit = ({ row, reached }: CallFacts, endedAt: number | null, to: string | undefined) =>
  reached.get('accepted') === endedAt && to === row.call_uuid

function problemOfUnanswered(
  { row, reached }: CallFacts,
  firstEndedAt: number | null,
  failed: readonly EventRow[],
): string | undefined {
  if (reached.has('accepted')) return undefined
  const isWithFirst = row.end_reason === 'transfer_cancelled'
  if (isWithFirst) return row.ended_at === firstEndedAt ? undefined : `${row.call_uuid} did not end with it`
  return failed.some(({ at }) => at === row.ended_at) ? undefined : `it did not hear that ${row.call_uuid} ended`
}

/** A participant who is handed over hears that the new call was answered before it hears that the first one is over. */
function checkOrder(reading: Reading, newCalls: readonly CallFacts[], startedAt: number, report: Report): void {
  const { user, stretches, requests, states } = reading
  for (const { row, reached } of newCalls) {
    const acceptedAt = reached.get('accepted')
    if (row.caller !== user || acceptedAt === undefined) continue
    const isOfNew = (call: string | undefined, status: string | undefined) =>
      call === row.call_uuid && status !== undefined && status !== 'ringing'
    const known = [...stretches.flatMap(({ pushes }) => pushes), ...requests.flatMap(({ replies }) => replies)].filter(
      ({ frame: { data, event } }) => event === 'call.accepted' && isOfNew(data?.call_uuid, data?.status),
    )
    const listed = states.filter(({ frame }) =>
      frame.data?.active_calls?.some(({ call_uuid, status }) => isOfNew(call_uuid, status)),
    )
    const first = Math.min(...[...known, ...listed].map(({ index }) => index))
    for (const { from, pushes } of stretches) {
      const end = pushes.find(
        ({ frame }) => frame.data?.call_uuid === row.transferred_from && frame.event === 'call.ended',
      )
      if (end === undefined || end.index > first) continue
      // It may be over as well by the time that a new session begins, of which no snapshot says anything.
      if (startedAt + from + clockSlackMs > acceptedAt) continue
      report('order', 'the first call ended before the answer of the new one', {
        user,
        call: row.call_uuid,
        at: end.at,
      })
    }
  }
}

/** A transfer that was acknowledged is a call. */
function checkStarted({ user, requests }: Reading, facts: Facts, report: Report): void {
  for (const request of requests) {
    if (request.frame.event !== 'call.transfer' || outcomeOf(request) !== 'done') continue
    const [reply] = request.replies
    const call = reply?.frame.data?.new_call_uuid
    const from = facts.get(call ?? '')?.row.transferred_from
    if (from !== request.frame.data?.call_uuid)
      report('acknowledged', `call.transfer began ${call}; that is of ${from}`, { user, ...(call && { call }) })
  }
}
