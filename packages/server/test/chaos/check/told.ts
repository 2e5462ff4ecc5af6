import type { Frame } from '../recording.ts'
import { type CallFacts, type Facts, isRung, overStatuses, sideOf, statusAt } from './facts.ts'
import type { Report } from './findings.ts'
import { isVolatile, type Reading, type SeenPush, type SeenState } from './reading.ts'

/** Something that the service said about calls to one person, in the order in which it came. */
type Statement =
  | { readonly kind: 'push' | 'reply'; readonly seen: SeenPush; readonly session: string; readonly asked?: string }
  | { readonly kind: 'state'; readonly seen: SeenState }

/** What somebody knows of a call. */
interface Knowledge {
  /**
   * `gone`: a snapshot did not list it, but what was under way before that may still come. `passed`: the turn of a member of a
   * group is over, and the next one may come [GROUP1].
   */
  state: 'live' | 'over' | 'gone' | 'passed'
  readonly since: SeenPush
}

/** A session that hears something of a call hears the truth, and in the end how it ended. */
export function checkTold(readings: readonly Reading[], facts: Facts, report: Report): void {
  for (const reading of readings) {
    const { user } = reading
    const known = new Map<string, Knowledge>()
    for (const statement of statementsOf(reading)) {
      if (statement.kind === 'state') hearState(statement.seen, known, facts, user, report)
      else hear(statement, known, facts, user, report)
    }
    for (const [call, { state, since }] of known) {
      const fact = facts.get(call)
      // A member who has declined a call to a group may have lost the reply, and hears nothing more of it.
      if (state !== 'live' || (fact !== undefined && isRung(fact, user) && hasDeclined(fact, user))) continue
      const text = `the last that ${user} heard is ${since.frame.event}; it is ${fact?.row.status}`
      report('untold', text, { user, call, at: since.at })
    }
  }
}

function statementsOf({ stretches, states, requests }: Reading): Statement[] {
  const pushes = stretches.flatMap(({ session: { id }, pushes }) =>
    pushes.map((seen) => ({ kind: 'push', seen, session: id }) as const),
  )
  const replies = requests.flatMap(({ session: { id }, frame, replies }) =>
    replies.map((seen) => ({ kind: 'reply', seen, asked: frame.event, session: id }) as const),
  )
  const all = [...pushes, ...replies, ...states.map((seen) => ({ kind: 'state', seen }) as const)]
  return all.sort((a, b) => a.seen.index - b.seen.index)
}

const livePushes: Readonly<Record<string, string>> = {
  'call.ringing': 'ringing',
  'call.accepted': 'accepted',
  'call.status': 'connected',
}

function hear(
  statement: Exclude<Statement, { kind: 'state' }>,
  known: Map<string, Knowledge>,
  facts: Facts,
  user: string,
  report: Report,
): void {
  const { kind, seen, asked } = statement
  const { frame, at } = seen
  const call = frame.data?.call_uuid
  if (call === undefined || isVolatile(frame)) return
  const where = { user, call, at }
  const status = kind === 'push' ? (livePushes[frame.event] ?? endIn(frame)) : frame.data?.status
  if (status === undefined) return
  const before = known.get(call)
  const fact = facts.get(call)
  const isQuiet = fact !== undefined && isRung(fact, user) && isOverHere(statement, fact, user)
  const isLate = before?.state === 'over' && !overStatuses.includes(status) && !isQuiet
  // Replies and pushes overtake each other: a resume gives the replies first [RES1].
  if (isLate && kind === 'push' && before.since.frame.request_id === undefined) {
    report('order', `${frame.event} says ${status}, after its end was told`, where)
  }
  if (kind === 'push') {
    for (const text of untruths(statement, status, fact, user)) report('disagrees', `${frame.event}: ${text}`, where)
  } else if (overStatuses.includes(status) && fact?.row.status !== status) {
    report('disagrees', `${asked} was answered with ${status}; it is ${fact?.row.status}`, where)
  }
  const isPassed = before?.state === 'passed' && kind === 'reply'
  if (overStatuses.includes(status) || isQuiet)
    known.set(call, { state: frame.data?.reason === 'next_member' ? 'passed' : 'over', since: seen })
  else if (!isLate && !isPassed && asked?.startsWith('webrtc.') !== true)
    known.set(call, { state: 'live', since: seen })
}

function hasDeclined({ events }: CallFacts, user: string): boolean {
  return events.some(({ type, by_user: by }) => (type === 'declined' || type === 'rejected') && by === user)
}

/** A member of a group for whom a call is over that goes on: another one answered it, or is next, or it declined [GROUP1]. */
function isOverHere(
  { kind, seen: { frame }, asked = '' }: Exclude<Statement, { kind: 'state' }>,
  { row }: CallFacts,
  user: string,
): boolean {
  if (kind === 'reply') return (asked === 'call.reject' || asked === 'call.end') && row.callee !== user
  return frame.event === 'call.cancelled' && frame.data?.ended_at === null
}

/** How a call ended, where a push says so. */
function endIn({ event, data }: Frame): string | undefined {
  return event === 'call.ended' || event === 'call.rejected' || event === 'call.cancelled' || event === 'call.missed'
    ? data?.status
    : undefined
}

/** What a push says that is not so. */
function untruths(
  { seen: { frame }, session }: Exclude<Statement, { kind: 'state' }>,
  status: string,
  fact: CallFacts | undefined,
  user: string,
): string[] {
  const { event, version, data } = frame
  if (fact === undefined) return ['there is no such call']
  if (sideOf(fact, user) === undefined && !isRung(fact, user)) return [`${user} is not in it`]
  if (version === undefined) return ['it has no version']
  const { row } = fact
  const then = statusAt(fact, version)
  // A caller whose peer goes on elsewhere hears of the answer again, also where the media was connected [TAKE1].
  const isSo = then === status || (event === 'call.accepted' && then === 'connected')
  if (version > row.version || !isSo) return [`${status} in version ${version}, where it is ${then}`]
  if (!overStatuses.includes(status)) {
    // Nobody here has a second phone: only another member of a group answers elsewhere, and somebody declines elsewhere only
    // in another session of the same phone.
    const isElsewhere = endIn(frame) !== undefined
    const isOther = isRung(fact, user) && row.callee !== user && data?.reason === 'answered_elsewhere'
    const isPassed = data?.reason === 'next_member' && wasPassed(fact, user, version)
    const isDeclined = data?.reason === 'rejected_elsewhere' && wasDeclined(fact, user, version, session)
    return isElsewhere && !isOther && !isPassed && !isDeclined ? [`${status} elsewhere`] : []
  }
  const endedAt = data?.ended_at
  // To the callee's sessions, however many there are, a rejected call was rejected elsewhere.
  const reason = event === 'call.cancelled' && row.status === 'rejected' ? 'rejected_elsewhere' : row.end_reason
  return [
    ...(status === row.status ? [] : [`${status}; it is ${row.status}`]),
    ...(data?.reason === reason ? [] : [`its reason is ${data?.reason}; it is ${reason}`]),
    ...(endedAt != null && Date.parse(endedAt) === row.ended_at ? [] : [`ended at ${endedAt}; it is ${row.ended_at}`]),
  ]
}

/** Whether this version says that somebody's turn was over. */
function wasPassed({ events }: CallFacts, user: string, version: number): boolean {
  return events.some((event) => event.type === 'passed' && event.member === user && event.version === version)
}

/**
 * Whether somebody declined by this version, in another session: the call rang at this one, too, or at one from which this
 * one got the notice [GROUP1, WS4].
 */
function wasDeclined({ events }: CallFacts, user: string, version: number, session: string): boolean {
  return events.some(
    (event) =>
      event.type === 'declined' && event.by_user === user && event.version === version && event.by_session !== session,
  )
}

/** A snapshot lists live calls; where it begins a new session or a new log, a call that is not in it is over. */
function hearState(seen: SeenState, known: Map<string, Knowledge>, facts: Facts, user: string, report: Report): void {
  const active = seen.frame.data?.active_calls ?? []
  for (const { call_uuid: call, status, version, holds_place: holds, direction } of active) {
    const where = { user, call, at: seen.at }
    const fact = facts.get(call)
    const then = fact === undefined ? undefined : statusAt(fact, version)
    if (then !== status)
      report('disagrees', `the snapshot says ${status} in version ${version}, where it is ${then}`, where)
    if (known.get(call)?.state === 'over') {
      report('order', `the snapshot says ${status}, after its end was told`, where)
      continue
    }
    // A session that comes back has its own calls; a call that rings has no place at the callee [PLACE1, RES2].
    const isOwed = holds || seen.attempted || (direction === 'incoming' && status === 'ringing')
    if (!isOwed) report('disagrees', `the snapshot of a ${seen.kind} session does not have its place`, where)
    known.set(call, { state: 'live', since: seen })
  }
  if (seen.kind === 'recovered') return
  const listed = new Set(active.map(({ call_uuid }) => call_uuid))
  for (const [call, { state, since }] of known)
    if (!listed.has(call) && state === 'live') known.set(call, { state: 'gone', since })
}
