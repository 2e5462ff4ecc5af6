import { type CallFacts, overStatuses } from './facts.ts'
import { outcomeOf, type Reading, type SeenRequest } from './reading.ts'

/**
 * Whether the place in an answered call was another session's, of which its phone never heard, and the phone had not taken it
 * before the call was over [PLACE2, PLACE4]. `at`: in ms since the recording's start, which was at `startedAt`.
 */
export function isWithAnother(
  { states, requests, user }: Reading,
  { row, events }: CallFacts,
  at: number,
  startedAt: number,
): boolean {
  const call = row.call_uuid
  const state = states.findLast((each) => each.at <= at)
  const listed = state?.frame.data?.active_calls?.find(({ call_uuid }) => call_uuid === call)
  if (state === undefined || listed === undefined || listed.holds_place || listed.status === 'ringing') return false
  // A request may wait for the probe of the other session until somebody else has ended the call: then it takes nothing.
  const end = events.find(({ type }) => overStatuses.includes(type))
  const until = end === undefined || end.by_user === user ? Number.POSITIVE_INFINITY : end.at - startedAt
  const takes = ({ frame, firstAt, replies: [reply] }: SeenRequest) =>
    frame.data?.call_uuid === call && firstAt >= state.at && reply !== undefined && reply.at < until
  return !requests.some((request) => takes(request) && outcomeOf(request) === 'done')
}
