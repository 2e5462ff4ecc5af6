import type { EventRow } from '../recording.ts'
import { type CallFacts, type Facts, overStatuses } from './facts.ts'
import { clockSlackMs, type Report } from './findings.ts'
import type { Patience } from './patience.ts'
import { outcomeOf, type Reading, type SeenPush, type SeenSession } from './reading.ts'
import { finals } from './streams.ts'

export interface TakesOptions {
  /** Of everybody with an extended client. */
  readonly readings: readonly Reading[]
  readonly facts: Facts
  readonly startedAt: number
  /** Which of their clients has a place is not known. */
  readonly apart: ReadonlySet<string>
  readonly patience: Patience
  readonly report: Report
}

/** A place that one session took from another one. */
interface Taken {
  readonly call: string
  readonly version: number
  /** In ms since the recording's start. */
  readonly at: number
  readonly from: string
  readonly user: string
  /** When the former session came to have it again, if it did. */
  readonly againAt: number
}

/**
 * If a session takes a place, the former one hears so, and speaks for the call no more; a caller whose peer goes on
 * elsewhere hears that the call was accepted again [TAKE1, PLACE5].
 */
export function checkTakes(options: TakesOptions): void {
  const { readings, facts, startedAt, report } = options
  const sessions = new Map(
    readings.flatMap((reading) => reading.sessions.map((session) => [session.id, { reading, session }] as const)),
  )
  for (const fact of facts.values()) {
    for (const taken of takesOf(fact, sessions, startedAt)) {
      const former = sessions.get(taken.from)
      if (former !== undefined) {
        const told = checkTold(taken, former.reading, former.session, options)
        if (told !== undefined) checkSilent(taken, former.session, told, report)
      }
      if (fact.row.callee === taken.user) checkOffered(taken, fact, options)
    }
  }
}

type Sessions = ReadonlyMap<string, { readonly reading: Reading; readonly session: SeenSession }>

/** What brings a session into a place. */
const seats: readonly string[] = ['invited', 'accepted', 'place_taken', 'place_settled', 'connected']

function takesOf({ row, events }: CallFacts, sessions: Sessions, startedAt: number): Taken[] {
  return events.flatMap((event, index) => {
    const { type, version, at, by_user: user, by_session: session } = event
    if (type !== 'place_taken' || user === null || session == null) return []
    const isAsked = [...(sessions.get(session)?.session.requests.values() ?? [])].some(
      (request) =>
        request.frame.event === 'call.take' &&
        request.frame.data?.call_uuid === row.call_uuid &&
        outcomeOf(request) !== 'refused' &&
        startedAt + request.firstAt <= at + clockSlackMs,
    )
    const seat = (each: EventRow) => each.by_user === user && seats.includes(each.type) && each.by_session != null
    const from = events.slice(0, index).findLast(seat)?.by_session
    if (!isAsked || from == null || from === session) return []
    const again = events.slice(index + 1).find((each) => seat(each) && each.by_session === from)
    const againAt = again === undefined ? Number.POSITIVE_INFINITY : again.at - startedAt
    return [{ call: row.call_uuid, version, at: at - startedAt, from, user, againAt }]
  })
}

/** Answers what said it to the former session. */
function checkTold(
  { call, version, at }: Taken,
  reading: Reading,
  session: SeenSession,
  { patience, report }: TakesOptions,
): SeenPush | undefined {
  const pushes = session.stretches.flatMap((stretch) => stretch.pushes)
  // If the call was over before that, it only hears that it is over.
  const told = pushes.find(
    ({ frame }) => frame.data?.call_uuid === call && (frame.version ?? 0) >= version && finals.includes(frame.event),
  )
  const stretch = session.stretches.findLast(({ from }) => from <= at)
  const isElsewhere = told?.frame.data?.reason === 'taken_elsewhere' && told.frame.data.ended_at === null
  const where = { user: reading.user, call, at }
  if (told !== undefined) {
    if (!isElsewhere && !overStatuses.includes(told.frame.data?.status ?? ''))
      report('taken', `the former session heard ${told.frame.event} (${told.frame.data?.reason})`, where)
    return told
  }
  const isLost = reading.states.some((state) => state.kind !== 'recovered' && state.at >= at)
  if (stretch !== undefined && !isLost && !patience.excuses(reading, stretch, at))
    report('taken', 'the former session was never told', where)
  return undefined
}

/** What no session needs a place for. The answer to a repeated invite only says how the call is [INV3]. */
const forAnybody: readonly string[] = ['call.take', 'call.alerting', 'call.invite']

/** Until it takes the place again, nothing that it asks for after that is done. */
function checkSilent({ call, user, againAt }: Taken, session: SeenSession, told: SeenPush, report: Report): void {
  for (const request of session.requests.values()) {
    const { frame, firstAt, replies } = request
    const isAbout = frame.data?.call_uuid === call && !forAnybody.includes(frame.event)
    const [reply] = replies
    if (!isAbout || firstAt <= told.at || reply === undefined || reply.at >= againAt - clockSlackMs) continue
    const status = reply.frame.data?.status ?? ''
    if (outcomeOf(request) !== 'done' || overStatuses.includes(status)) continue
    report('taken', `${frame.event} was done (${status}) for a session that has the place no more`, {
      ...{ user, call, at: reply.at },
    })
  }
}

/** The caller offers again. */
function checkOffered({ call, version, at }: Taken, { row }: CallFacts, options: TakesOptions): void {
  const { readings, apart, patience, report } = options
  const caller = readings.find(({ user }) => user === row.caller)
  if (caller === undefined || apart.has(row.caller)) return
  const stretch = caller.stretches.findLast(({ from }) => from + clockSlackMs < at)
  if (stretch === undefined || patience.excuses(caller, stretch, at)) return
  const isHeard = stretch.pushes.some(
    ({ frame, at: heardAt }) =>
      frame.event === 'call.accepted' &&
      frame.data?.call_uuid === call &&
      // A session that has yet to hear that it was accepted hears it once.
      ((frame.version ?? 0) >= version || heardAt > at),
  )
  if (!isHeard) report('taken', `${row.caller} was not told to offer again`, { user: row.caller, call, at })
}
