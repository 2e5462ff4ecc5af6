import { againOf, unsavedOf } from '../chaos/check/again.ts'
import { type Facts, factsOf, overStatuses } from '../chaos/check/facts.ts'
import type { Report } from '../chaos/check/findings.ts'
import { isThere } from '../chaos/check/patience.ts'
import { outcomeOf, type Reading, read, type SeenRequest } from '../chaos/check/reading.ts'
import { checkStreams, finals } from '../chaos/check/streams.ts'
import type { Recording, Trace } from '../chaos/recording.ts'

/**
 * What people with several phones saw on extended phones: their streams are whole, only one phone answers a call
 * [PLACE3], and how a call ended is so. A phone that does not hear the end of its call shows by who gets stuck.
 */
export function checkApart(traces: readonly Trace[], recording: Recording, report: Report): void {
  const readings = traces.map(read)
  const facts = factsOf(recording)
  const apart = new Set(recording.header.apart)
  // Most of what they got was sent by people with one phone.
  const senders = [...recording.traces.map(read), ...readings]
  checkStreams(readings, facts, apart, againOf(senders, unsavedOf(recording.header)), report)
  const accepts = readings.flatMap((reading) =>
    reading.requests
      .filter(isAnswer)
      .map((request) => ({ reading, request, call: request.frame.data?.call_uuid ?? '' })),
  )
  for (const [call, all] of Map.groupBy(accepts, ({ call, reading }) => `${call} ${reading.user}`))
    checkAnswers(call.split(' ')[0] ?? '', all, report)
  for (const reading of readings) checkEnds(reading, facts, report)
}

interface Answered {
  readonly reading: Reading
  readonly request: SeenRequest
}

const isAnswer = (request: SeenRequest) => request.frame.event === 'call.accept' && outcomeOf(request) === 'done'
const repliedAt = ({ request }: Answered) => request.replies[0]?.at ?? 0

/** Another phone may only take a place that is vacant [PLACE2], or ask for it before it answers [TAKE1]. */
function checkAnswers(call: string, answers: readonly Answered[], report: Report): void {
  const own = answers.filter((answer) => !hasTaken(answer, call))
  const [first, ...later] = own.toSorted((one, other) => repliedAt(one) - repliedAt(other))
  for (const other of later) {
    if (first === undefined || other.reading === first.reading) continue
    if (!isThere(first.reading, repliedAt(first), repliedAt(other))) continue
    report('effect', `two phones of ${other.reading.user} answered it`, { call, at: repliedAt(other) })
  }
}

/**
 * Whose phone has the place by then: its answer changes nothing. The service may forget that the answer was handled. The answer
 * that is sent again then follows a take that was sent after it the first time [EXT4].
 */
function hasTaken({ reading, request }: Answered, call: string): boolean {
  return reading.requests.some(
    (each) =>
      each.frame.event === 'call.take' &&
      each.frame.data?.call_uuid === call &&
      each.firstAt <= request.lastAt &&
      mayBeDone(each),
  )
}

/** A request that went out twice, and was then refused, may have been done the first time. */
const mayBeDone = (request: SeenRequest) => outcomeOf(request) !== 'refused' || request.sent > 1

function checkEnds({ user, stretches }: Reading, facts: Facts, report: Report): void {
  for (const { frame, at } of stretches.flatMap(({ pushes }) => pushes)) {
    const { call_uuid: call = '', status = '' } = frame.data ?? {}
    if (!finals.includes(frame.event) || !overStatuses.includes(status)) continue
    const is = facts.get(call)?.row.status
    if (is !== status) report('disagrees', `${frame.event} says ${status}; it is ${is}`, { user, call, at })
  }
}
