import type { EventRow } from '../recording.ts'
import { type CallFacts, type Facts, isRung } from './facts.ts'
import { clockSlackMs, type Report } from './findings.ts'
import type { Patience } from './patience.ts'
import type { Reading, SeenPush, Stretch } from './reading.ts'
import { finals } from './streams.ts'
import { turnsOf } from './turns.ts'

/**
 * A call to a group: one member answers it, and each of the others at whom it rang hears once that it rings no more, or has
 * declined itself. If it rings in turn, that holds for each turn [GROUP1].
 */
export function checkGroups(
  readings: readonly Reading[],
  facts: Facts,
  startedAt: number,
  patience: Patience,
  report: Report,
): void {
  const groupCalls = [...facts.values()].filter(({ row }) => row.members !== undefined)
  for (const fact of groupCalls)
    for (const text of problemsOf(fact)) report('group', text, { call: fact.row.call_uuid })
  for (const reading of readings) {
    for (const fact of groupCalls) {
      if (!isRung(fact, reading.user)) continue
      for (const stretch of reading.stretches) checkStops(reading, stretch, fact, startedAt, patience, report)
    }
  }
}

function problemsOf(fact: CallFacts): string[] {
  const { row, events } = fact
  const isInTurns = turnsOf(fact).length > 0
  const { members = [], callee } = row
  const by = (type: string) => events.filter((event) => event.type === type).map(({ by_user }) => by_user ?? '')
  const [answeredBy] = by('accepted')
  const declined = [...by('declined'), ...(row.end_reason === 'all_declined' ? by('rejected') : [])]
  const isAnswered = answeredBy !== undefined
  // In turn, it is over for those at whom it has not rung yet, too: see turns.ts.
  const haveAllDeclined = isInTurns
    ? row.end_reason === 'all_declined'
    : members.length > 0 && declined.length === members.length
  return [
    ...(isAnswered && !members.includes(answeredBy) ? [`${answeredBy} answered it, and it did not ring there`] : []),
    ...(isAnswered && callee !== answeredBy ? [`${answeredBy} answered it; its callee is ${callee}`] : []),
    ...(isAnswered && declined.includes(answeredBy) ? [`${answeredBy} declined and answered it`] : []),
    ...(new Set(declined).size < declined.length ? [`declined by ${declined}`] : []),
    ...declined.filter((user) => !members.includes(user)).map((user) => `${user} declined it, and is no member`),
    ...((row.end_reason === 'all_declined') !== haveAllDeclined
      ? [`${declined} of ${members} declined; it ended with ${row.end_reason}`]
      : []),
  ]
}

/** In one part of a session, and after it: a ring that a client heard ends there once, and each turn begins with a ring. */
function checkStops(
  reading: Reading,
  stretch: Stretch,
  fact: CallFacts,
  startedAt: number,
  patience: Patience,
  report: Report,
): void {
  const about = stretch.pushes.filter(({ frame }) => frame.data?.call_uuid === fact.row.call_uuid)
  const isRing = ({ frame }: SeenPush) => frame.event === 'call.ringing'
  const rings = about.filter(isRing)
  for (const [i, ring] of rings.entries()) {
    const next = rings[i + 1]
    const meanwhile = about.filter(
      ({ index }) => index > ring.index && index < (next?.index ?? Number.POSITIVE_INFINITY),
    )
    checkStop({ reading, stretch, fact, ring, meanwhile, isLast: next === undefined }, startedAt, patience, report)
  }
}

/** A ring at a member of a group, and what the member heard of the call until it rang again. */
interface Ring {
  readonly reading: Reading
  readonly stretch: Stretch
  readonly fact: CallFacts
  readonly ring: SeenPush
  readonly meanwhile: readonly SeenPush[]
  readonly isLast: boolean
}

/**
 * A member whose turn is over, and who names the call when it has ended, hears how, before the reply [END4]. A client that
 * comes back after that gets the reply first [RES1].
 */
function isToldToAsker({ states }: Reading, { session }: Stretch, { frame, at, index }: SeenPush): boolean {
  if (frame.data?.reason === 'next_member') return false
  const cameBack = states.findLast((state) => state.index < index)
  const { handled = 0 } = cameBack?.kind === 'recovered' ? (cameBack.frame.data ?? {}) : {}
  const wasReplyFirst = (n: number, reply: SeenPush) => n <= handled && reply.index > (cameBack?.index ?? 0)
  return [...session.requests.values()].some(({ n, frame: asked, firstAt, replies: [reply] }) => {
    if (asked.data?.call_uuid !== frame.data?.call_uuid || firstAt >= at) return false
    return reply === undefined || reply.index > index || wasReplyFirst(n, reply)
  })
}

function checkStop(of: Ring, startedAt: number, patience: Patience, report: Report): void {
  const { reading, stretch, fact, ring, meanwhile, isLast } = of
  const { user } = reading
  const { row, events } = fact
  // The last ring at the one who answered did not stop: it is over with the call.
  if (row.callee === user && isLast) return
  const stops = meanwhile.filter(({ frame }) => finals.includes(frame.event))
  const where = { user, call: row.call_uuid, at: ring.at }
  const heard = stops.filter((stop, i) => i === 0 || !isToldToAsker(reading, stretch, stop))
  if (heard.length > 1) report('double', `it stopped ringing ${heard.length} times: ${heard.map(nameOf)}`, where)
  const isLater = ({ version }: EventRow) => version > (ring.frame.version ?? 0)
  const over = events.filter(isLater).find(({ type, member }) => {
    return type === 'accepted' || (type === 'passed' && member === user) || finals.includes(`call.${type}`)
  })
  const hasDeclined = events.some(
    ({ type, by_user }) => (type === 'declined' || type === 'rejected') && by_user === user,
  )
  // The ring of the next turn says that the one before is over.
  if (stops.length > 0 || hasDeclined || over === undefined || !isLast) return
  const overAt = Math.max(over.at - startedAt, ring.at)
  const isExcused = patience.excuses(reading, stretch, overAt) || stretch.until < overAt + clockSlackMs
  const wentAway = patience.timedOut(reading, stretch, overAt) && !isOwedLater(of, over, overAt)
  if (!isExcused && !wentAway) report('untold', `it rings on for ${user}`, where)
}

/** For how long a notice of how a call ended waits for the next session, in ms [WS4]. */
const endWaitsMs = 120_000

/** Whether a client whose session is over has yet to hear of this in its new session. Only the end of a call waits for that. */
function isOwedLater({ reading, stretch, fact }: Ring, over: EventRow, overAt: number): boolean {
  const isEnd = finals.includes(`call.${over.type}`)
  if (!isEnd || stretch.until > overAt + endWaitsMs - clockSlackMs) return false
  const later = reading.stretches.slice(reading.stretches.indexOf(stretch) + 1).flatMap(({ pushes }) => pushes)
  return !later.some(({ frame }) => frame.data?.call_uuid === fact.row.call_uuid && finals.includes(frame.event))
}

const nameOf = ({ frame }: SeenPush) => `${frame.event} (${frame.data?.reason})`
