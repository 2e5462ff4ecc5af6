import type { EventRow } from '../recording.ts'
import { type CallFacts, type Facts, isJoined, peerOf, secondCalls } from './facts.ts'
import { clockSlackMs, type Report } from './findings.ts'
import { outcomeOf, type Reading } from './reading.ts'

/**
 * A transfer is one new call. What becomes of it is decided for both calls at once: it is answered, and the first one ends
 * for that; it is not, and the first one goes on; or the first one ends before, and the new one with it [XFER1].
 */
export function checkTransfers(readings: readonly Reading[], facts: Facts, startedAt: number, report: Report): void {
  const newCalls = [...facts.values()].filter(({ row }) => row.transferred_from !== undefined)
  const seconds = secondCalls(facts)
  const byFirst = Map.groupBy(newCalls, ({ row }) => row.transferred_from ?? '')
  const bySecond = new Map([...seconds].map(([call, second]) => [second.row.call_uuid, facts.get(call)]))
  for (const [call, first] of facts) {
    const joined = bySecond.get(call)
    const problems = problemsOf(first, [...(byFirst.get(call) ?? []), ...(joined === undefined ? [] : [joined])])
    for (const text of problems) report('transfer', text, { call })
  }
  for (const fact of newCalls.filter(isJoined)) {
    const { call_uuid: call, transferred_from: first = '' } = fact.row
    for (const text of problemsOfJoined(fact, facts.get(first), seconds.get(call))) report('transfer', text, { call })
  }
  for (const call of byFirst.keys())
    if (!facts.has(call)) report('transfer', 'a call was transferred from it, and it is not stored', { call })
  for (const reading of readings) {
    for (const fact of newCalls) {
      const { caller, callee, transferred_from: first, call_uuid: call } = fact.row
      if (caller === reading.user) checkOrder(reading, fact, first, startedAt, report)
      if (callee === reading.user && isJoined(fact))
        checkOrder(reading, fact, seconds.get(call)?.row.call_uuid, startedAt, report)
    }
    checkStarted(reading, facts, report)
  }
}

/** What the rows of a first call and of those that began as its transfers say of each other. */
function problemsOf({ row, events }: CallFacts, newCalls: readonly CallFacts[]): string[] {
  const began = events.filter(({ type }) => type === 'transferring')
  const failed = events.filter(({ type }) => type === 'transfer_failed')
  const problems: string[] = []
  const rung = newCalls.filter((each) => !isJoined(each))
  if (began.length !== rung.length) problems.push(`${began.length} transfers began, and ${rung.length} calls`)
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

/** A consultation leaves the other sides of the two calls of one person, in one commit. */
function problemsOfJoined(
  { row, events }: CallFacts,
  first: CallFacts | undefined,
  second: CallFacts | undefined,
): string[] {
  if (first === undefined || second === undefined) return ['it became of two calls, and there is only one of them']
  const by = row.transferred_by ?? ''
  const [began] = events
  const sides = [peerOf(first, by), peerOf(second, by)]
  return [
    ...([row.caller, row.callee].join() === sides.join()
      ? []
      : [`${row.caller} calls ${row.callee}; ${by} left ${sides}`]),
    ...[first, second].flatMap((former) => {
      const { call_uuid: call, ended_at: at, end_reason: reason } = former.row
      const isSo = at === began?.at && reason === 'transferred' && former.events.at(-1)?.by_user === by
      return isSo ? [] : [`${call} did not end with it, but at ${at}: ${reason}`]
    }),
  ]
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

/**
 * A participant who goes on in another call hears that this one was answered before it hears that the former one is over. Where
 * two calls became one, it hears so of the call that it is handed over to.
 */
function checkOrder(
  { user, stretches, requests, states }: Reading,
  { row, reached }: CallFacts,
  former: string | undefined,
  startedAt: number,
  report: Report,
): void {
  const acceptedAt = reached.get('accepted')
  if (acceptedAt === undefined) return
  const isOfNew = (call: string | undefined, status: string | undefined) =>
    call === row.call_uuid && status !== undefined && status !== 'ringing'
  const known = [...stretches.flatMap(({ pushes }) => pushes), ...requests.flatMap(({ replies }) => replies)].filter(
    ({ frame: { data, event } }) =>
      (event === 'call.accepted' && isOfNew(data?.call_uuid, data?.status)) ||
      (event === 'call.transferring' && isOfNew(data?.new_call_uuid, data?.status)),
  )
  const listed = states.filter(({ frame }) =>
    frame.data?.active_calls?.some(({ call_uuid, status }) => isOfNew(call_uuid, status)),
  )
  const first = Math.min(...[...known, ...listed].map(({ index }) => index))
  for (const { from, pushes } of stretches) {
    const end = pushes.find(({ frame }) => frame.data?.call_uuid === former && frame.event === 'call.ended')
    if (end === undefined || end.index > first) continue
    // It may be over as well by the time that a new session begins, of which no snapshot says anything.
    if (startedAt + from + clockSlackMs > acceptedAt) continue
    report('order', 'the first call ended before the answer of the new one', { user, call: row.call_uuid, at: end.at })
  }
}

/** A transfer that was acknowledged is a call. */
function checkStarted({ user, requests }: Reading, facts: Facts, report: Report): void {
  for (const request of requests) {
    if (request.frame.event !== 'call.transfer' || outcomeOf(request) !== 'done') continue
    const [reply] = request.replies
    const call = reply?.frame.data?.new_call_uuid
    const from = facts.get(call ?? '')?.row.transferred_from
    const { call_uuid: first, to_call_uuid: second } = request.frame.data ?? {}
    const where = { user, ...(call && { call }) }
    if (from !== first) report('acknowledged', `call.transfer began ${call}; that is of ${from}`, where)
    const to = second === undefined ? call : facts.get(second)?.row.transferred_to
    if (to !== call) report('acknowledged', `call.transfer made ${call} of two calls; ${second} became ${to}`, where)
  }
}
