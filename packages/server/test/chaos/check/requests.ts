import type { CallRow, EventRow } from '../recording.ts'
import { type CallFacts, type Facts, isJoined, isRung, overStatuses, sideOf } from './facts.ts'
import { clockSlackMs, type Report } from './findings.ts'
import { outcomeOf, type Reading, type SeenRequest } from './reading.ts'

const hangUps: readonly string[] = ['call.reject', 'call.cancel', 'call.end']

/** Which requests can have caused an event of `call_events`. */
function causesOf({ type }: EventRow, row: CallRow): readonly string[] {
  switch (type) {
    case 'transferring':
      return ['call.transfer']
    case 'declined':
      return ['call.reject', 'call.end']
    case 'invited':
    case 'busy':
      return ['call.invite']
    case 'accepted':
      return ['call.accept']
    case 'connected':
      return ['call.connected']
    case 'rejected':
      return ['call.reject', 'call.end']
    case 'cancelled':
    case 'ended':
      return row.end_reason === 'transferred' ? ['call.transfer'] : hangUps
    default:
      return []
  }
}

/** The requests and the contents of PostgreSQL: nothing more, and nothing less than was acknowledged [EXT3]. */
export function checkRequests(
  readings: readonly Reading[],
  facts: Facts,
  startedAt: number,
  apart: ReadonlySet<string>,
  report: Report,
): void {
  const all = readings.flatMap(({ requests }) => requests)
  const asked = Map.groupBy(
    // A consultation is about two calls.
    all.flatMap((request) => callsOf(request).map((call) => ({ call, request }))),
    ({ call }) => call,
  )
  for (const [call, fact] of facts) {
    for (const event of fact.events)
      if (!apart.has(event.by_user ?? '')) {
        const requests = asked.get(call)?.map(({ request }) => request)
        checkCause(event, fact, requests ?? [], startedAt, report)
      }
  }
  for (const request of all) checkAcknowledged(request, facts, startedAt, report)
}

function callsOf({ frame: { data } }: SeenRequest): string[] {
  return [data?.call_uuid, data?.to_call_uuid].filter((call) => call !== undefined)
}

/** Somebody asked for it, and was not told that it was not done. What the service does by itself has no author. */
function checkCause(
  event: EventRow,
  fact: CallFacts,
  asked: readonly SeenRequest[],
  startedAt: number,
  report: Report,
): void {
  const { row, events } = fact
  const { by_user: user, type } = event
  const causes = causesOf(event, row)
  if (user === null) {
    // What a backend refused never rang [HOOK5].
    const isRefusedCall = type === 'rejected' && events.length === 1
    const isAnswer = type === 'accepted' && !isJoined(fact)
    if (isAnswer || type === 'connected' || (type === 'rejected' && !isRefusedCall))
      report('effect', `${type} by nobody`, { call: row.call_uuid })
    return
  }
  // Another invite between the two ended it [INV7]: which one is not written.
  if (causes.length === 0 || row.end_reason === 'superseded') return
  const own = asked.filter(({ session, frame }) => session.user === user && causes.includes(frame.event))
  const before = own.filter(({ firstAt }) => startedAt + firstAt <= event.at + clockSlackMs)
  const where = { user, call: row.call_uuid }
  if (before.length === 0) report('effect', `${type}, and ${user} did not ask for it`, where)
  else if (before.every(isRefused)) report('effect', `${type}, and it was refused`, where)
}

/** One that went out again may have been done the first time, and refused the second: nobody knew the outcome. */
function isRefused(request: SeenRequest): boolean {
  return outcomeOf(request) === 'refused' && request.sent === 1
}

/** A reply names a status: the call came to it, and not later than the reply. */
function checkAcknowledged(request: SeenRequest, facts: Facts, startedAt: number, report: Report): void {
  const [reply] = request.replies
  const { status, call_uuid: call } = reply?.frame.data ?? {}
  if (reply === undefined || call === undefined || status === undefined) return
  const { event } = request.frame
  const { user } = request.session
  const where = { user, call, at: reply.at }
  const fact = facts.get(call)
  if (fact === undefined) {
    report('acknowledged', `${event} was answered with ${status}, and there is no such call`, where)
    return
  }
  const reachedAt = fact.reached.get(status)
  if (reachedAt === undefined || reachedAt > startedAt + reply.at + clockSlackMs) {
    report('acknowledged', `${event} was answered with ${status}; the call was ${history(fact, startedAt)}`, where)
  } else if (!doesWhatItSays(event, status, fact, user)) {
    report('acknowledged', `${event} was answered with ${status}, and was not done: ${history(fact, startedAt)}`, where)
  }
}

function doesWhatItSays(event: string, status: string, fact: CallFacts, user: string): boolean {
  const isBy = (type: string) => fact.events.some((row) => row.type === type && row.by_user === user)
  // It may have been withdrawn or refused before it rang, and may name a call that was transferred [HOOK5, INV7].
  const isNamed = isBy('invited') || isBy('busy') || fact.events.length === 1 || fact.row.transferred_from !== undefined
  if (event === 'call.invite') return sideOf(fact, user) === 'caller' && isNamed
  if (event === 'call.accept') return isBy('accepted')
  if (event === 'call.connected') return status !== 'ringing' && status !== 'accepted'
  // For a member of a group that is its own decline [GROUP1].
  return hangUps.includes(event) ? overStatuses.includes(status) || isRung(fact, user) : true
}

function history({ reached }: CallFacts, startedAt: number): string {
  return [...reached].map(([status, at]) => `${status} at ${((at - startedAt) / 1000).toFixed(3)} s`).join(', ')
}
