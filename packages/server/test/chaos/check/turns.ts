import type { EventRow, GroupInTurns, Header } from '../recording.ts'
import { type CallFacts, type Facts, overStatuses } from './facts.ts'
import { clockSlackMs, type Report } from './findings.ts'
import type { Patience } from './patience.ts'

/** A turn of a member of a group. */
export interface Turn {
  readonly member: string
  readonly began: EventRow
  /** What ended it; undefined: nothing yet. */
  readonly end: EventRow | undefined
}

/** The turns of a call to a group that rings at one member after another, in their order; of any other call none. */
export function turnsOf({ events }: CallFacts): Turn[] {
  return events.flatMap((began, index) => {
    const { type, member } = began
    if (type !== 'turn' || member === undefined) return []
    return [{ member, began, end: events.slice(index + 1).find((event) => endsTurn(event, member)) }]
  })
}

function endsTurn({ type, member, by_user: by }: EventRow, of: string): boolean {
  if (type === 'accepted' || type === 'turn' || overStatuses.includes(type)) return true
  return (type === 'passed' && member === of) || (type === 'declined' && by === of)
}

/** Whether somebody had its turn all that time. Instants are in ms since the epoch. */
export function isInTurn(fact: CallFacts, user: string, from: number, until: number): boolean {
  return turnsOf(fact).some(({ member, began, end = { at: Number.POSITIVE_INFINITY } }) => {
    return member === user && began.at < from - clockSlackMs && end.at > until + clockSlackMs
  })
}

interface Seen {
  readonly fact: CallFacts
  readonly group: GroupInTurns
  readonly facts: Facts
  readonly header: Header
  readonly patience: Patience
}

/** A group that rings in turn rings at one member at a time, in its order, and each one for as long as it should [GROUP1]. */
export function checkTurns(facts: Facts, header: Header, patience: Patience, report: Report): void {
  const groups = new Map(header.inTurns?.map((group) => [group.name, group]))
  for (const fact of facts.values()) {
    const group = groups.get(fact.row.group ?? '')
    if (group === undefined) continue
    const seen = { fact, group, facts, header, patience }
    const texts = [...problemsOf(seen), ...problemsOfAnswer(seen), ...disorderOf(seen), ...pausesOf(seen)]
    for (const text of texts) report('group', text, { call: fact.row.call_uuid })
  }
}

function problemsOf({ fact, group }: Seen): string[] {
  const { row, events } = fact
  // The one who transferred it is in the first call until the answer [XFER1].
  const insiders = [row.caller, row.transferred_by]
  return turnsOf(fact).flatMap(({ member, began, end }) => {
    const hasDeclined = events.some(
      ({ type, by_user: by, version }) => type === 'declined' && by === member && version < began.version,
    )
    const least = Math.min(began.at + group.memberRingMs, row.ring_expires_at)
    return [
      ...(group.members.includes(member) ? [] : [`it rang at ${member}, who is no member`]),
      ...(insiders.includes(member) ? [`it rang at ${member}, who is in it`] : []),
      ...(hasDeclined ? [`it rang at ${member}, who had declined`] : []),
      ...(end?.type === 'turn' ? [`it rang at ${member} and at ${end.member} at once`] : []),
      ...(end?.type === 'passed' && end.at < least ? [`${member} had a turn of ${end.at - began.at} ms`] : []),
    ]
  })
}

/** Only the member whose turn it is answers, and all members have to decline. */
function problemsOfAnswer({ fact, group }: Seen): string[] {
  const { row, events } = fact
  const accepted = events.find(({ type }) => type === 'accepted')
  const last = turnsOf(fact).at(-1)
  if (accepted !== undefined && (last?.end !== accepted || last.member !== accepted.by_user))
    return [`${accepted.by_user} answered it, and it was not its turn`]
  if (row.end_reason !== 'all_declined') return []
  const declined = events.filter(({ type }) => type === 'declined' || type === 'rejected').map(({ by_user }) => by_user)
  const left = group.members.filter((user) => user !== row.caller && !declined.includes(user))
  return left.length === 0 ? [] : [`it was over before ${left} declined it`]
}

/** In a round each member has one turn, in the order of the group. */
function disorderOf(seen: Seen): string[] {
  const isBefore = seen.group.strategy === 'in_turn' ? inList(seen) : byIdleness(seen)
  let last: string | undefined
  const problems: string[] = []
  for (const { type, member } of seen.fact.events) {
    if (type === 'round_over') last = undefined
    if (type !== 'turn' || member === undefined) continue
    if (last !== undefined && (last === member || isBefore(member, last)))
      problems.push(`it rang at ${member} after ${last}`)
    last = member
  }
  return problems
}

/** Whether one member certainly comes before another one. */
type IsBefore = (one: string, other: string) => boolean

const inList =
  ({ group: { members } }: Seen): IsBefore =>
  (one, other) =>
    members.indexOf(one) < members.indexOf(other)

/** For so long a call may wait for the backend that decides on it, and without one, in ms. */
const askedMs = { decides: 2_500, alone: 500 } as const
/** Only the last of the calls to a member count. */
const mostCalls = 50

/** The order is the one when the group was read, a little before the call began: where that makes a difference, it is not known. */
function byIdleness({ fact: { row }, group, facts, header, patience }: Seen): IsBefore {
  const { startedAt, decides } = header
  const until = row.started_at + clockSlackMs
  const from = row.started_at - (decides === true ? askedMs.decides : askedMs.alone)
  const isWhole = patience.isCalm(from - startedAt, until - startedAt)
  const idleSince = (user: string): number | undefined => {
    const calls = [...facts.values()].filter((each) => each.row.callee === user && each.row.started_at < until)
    const ends = calls.flatMap((each) => (each.row.accepted_at === null ? [] : (each.row.ended_at ?? [])))
    if (calls.length > mostCalls || ends.some((at) => at > from && at < until)) return undefined
    return Math.max(Number.NEGATIVE_INFINITY, ...ends.filter((at) => at <= from))
  }
  const since = new Map(isWhole ? group.members.map((user) => [user, idleSince(user)]) : [])
  return (one, other) => {
    const [a, b] = [since.get(one), since.get(other)]
    if (a === undefined || b === undefined) return false
    return a === b ? group.members.indexOf(one) < group.members.indexOf(other) : a < b
  }
}

/** A turn begins at once, a round that rang nobody after a second, and each node looks for what is due twice a second. In ms. */
const longestPauseMs = 2_000

/** While it rings, something goes on: a turn, or the next one begins. */
function pausesOf({ fact: { events }, group, header: { startedAt }, patience }: Seen): string[] {
  const answer = events.findIndex(({ type }) => type === 'accepted')
  const whileItRings = answer < 0 ? events : events.slice(0, answer + 1)
  return whileItRings.flatMap(({ type, at }, i) => {
    const next = whileItRings[i + 1]
    const longestMs = longestPauseMs + (type === 'turn' ? group.memberRingMs : 0)
    if (next === undefined || next.at - at <= longestMs) return []
    return patience.isCalm(at - startedAt, next.at - startedAt)
      ? [`nothing happened for ${next.at - at} ms after ${type}`]
      : []
  })
}
