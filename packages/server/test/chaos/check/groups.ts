import { type CallFacts, type Facts, isRung } from './facts.ts'
import { clockSlackMs, type Report } from './findings.ts'
import type { Patience } from './patience.ts'
import type { Reading, SeenPush, Stretch } from './reading.ts'
import { finals } from './streams.ts'

/**
 * A call to a group: one member answers it, and each of the others at whom it rang hears once that it rings no more, or has
 * declined itself [GROUP1].
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
      if (!isRung(fact, reading.user) || fact.row.callee === reading.user) continue
      for (const stretch of reading.stretches) checkStops(reading, stretch, fact, startedAt, patience, report)
    }
  }
}

function problemsOf({ row, events }: CallFacts): string[] {
  const { members = [], callee } = row
  const by = (type: string) => events.filter((event) => event.type === type).map(({ by_user }) => by_user ?? '')
  const [answeredBy] = by('accepted')
  const declined = [...by('declined'), ...(row.end_reason === 'all_declined' ? by('rejected') : [])]
  const isAnswered = answeredBy !== undefined
  const haveAllDeclined = members.length > 0 && declined.length === members.length
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

/** In one part of a session, and after it: a ring that a client heard ends there once. */
function checkStops(
  reading: Reading,
  stretch: Stretch,
  { row, events }: CallFacts,
  startedAt: number,
  patience: Patience,
  report: Report,
): void {
  const { user } = reading
  const call = row.call_uuid
  const about = stretch.pushes.filter(({ frame }) => frame.data?.call_uuid === call)
  const ring = about.find(({ frame }) => frame.event === 'call.ringing')
  if (ring === undefined) return
  const stops = about.filter(({ frame }) => finals.includes(frame.event))
  const where = { user, call, at: ring.at }
  if (stops.length > 1) report('double', `it stopped ringing ${stops.length} times: ${stops.map(nameOf)}`, where)
  const over = events.find(({ type }) => type === 'accepted' || finals.includes(`call.${type}`))
  const hasDeclined = events.some(
    ({ type, by_user }) => (type === 'declined' || type === 'rejected') && by_user === user,
  )
  if (stops.length > 0 || hasDeclined || over === undefined) return
  const overAt = Math.max(over.at - startedAt, ring.at)
  const isExcused = patience.excuses(reading, stretch, overAt) || stretch.until < overAt + clockSlackMs
  if (!isExcused) report('untold', `it rings on for ${user}`, where)
}

const nameOf = ({ frame }: SeenPush) => `${frame.event} (${frame.data?.reason})`
