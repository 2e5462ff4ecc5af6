import type { EventRow } from '../recording.ts'
import { type CallFacts, type Facts, overStatuses } from './facts.ts'
import { clockSlackMs, type Report } from './findings.ts'
import { isThere, type Patience } from './patience.ts'
import type { Reading } from './reading.ts'

/** Who has to hear of an event, and by which push. */
interface Owed {
  readonly user: string
  readonly pushes: readonly string[]
}

/** Every transition is told to those whom it concerns, unless a loss was declared to them [ORD3, EXT3]. */
export function checkNotices(
  readings: readonly Reading[],
  facts: Facts,
  startedAt: number,
  patience: Patience,
  report: Report,
): void {
  const byUser = new Map(readings.map((reading) => [reading.user, reading]))
  const heard = firstHeard(readings)
  for (const fact of facts.values()) {
    for (const event of fact.events) {
      for (const owed of owedFor(event, fact)) {
        const reading = byUser.get(owed.user)
        if (reading === undefined || isHeard(reading, owed, fact, event, event.at - startedAt, heard, patience))
          continue
        const where = { user: owed.user, call: event.call_uuid, at: event.at - startedAt }
        report('untold', `${owed.user} never got ${owed.pushes} of version ${event.version}`, where)
      }
    }
  }
}

function owedFor({ type, by_user: by }: EventRow, { row, reached }: CallFacts): Owed[] {
  const { caller, callee } = row
  if (type === 'invited') return [{ user: callee, pushes: ['call.ringing'] }]
  if (type === 'accepted') return [{ user: caller, pushes: ['call.accepted'] }]
  if (type === 'connected') return [{ user: by === caller ? callee : caller, pushes: ['call.status'] }]
  if (!overStatuses.includes(type) || type === 'busy') return []
  const others = [caller, callee].filter((user) => user !== by)
  if (type === 'rejected') return others.map((user) => ({ user, pushes: ['call.rejected'] }))
  const wasAnswered = reached.has('accepted')
  // A phone that was away while it rang has nothing to be told of.
  const heard = wasAnswered ? others : others.filter((user) => user === caller)
  return heard.map((user) => ({ user, pushes: [`call.${type}`] }))
}

function isHeard(
  reading: Reading,
  { pushes }: Owed,
  fact: CallFacts,
  event: EventRow,
  at: number,
  heard: ReadonlyMap<string, number>,
  patience: Patience,
): boolean {
  const knownAt = heard.get(event.call_uuid) ?? Number.POSITIVE_INFINITY
  if (event.type === 'invited' && !isRung(reading, at, fact, knownAt, patience)) return true
  const stretch = reading.stretches.findLast(({ from }) => from + clockSlackMs < at)
  if (stretch === undefined || patience.excuses(reading, stretch, at)) return true
  return stretch.pushes.some(({ frame }) => frame.data?.call_uuid === event.call_uuid && pushes.includes(frame.event))
}

/**
 * Whether a phone has to hear a call ring that began at `at`: it was there, and stayed for as long as it may take to tell it, or
 * came back while it rang. One that was away when it began may come back when it is over; so may one that left before it
 * could be told: the row has the time of the decision, and its commit waits for a database that is away.
 */
function isRung(reading: Reading, at: number, fact: CallFacts, knownAt: number, patience: Patience): boolean {
  if (!isThere(reading, at, at + clockSlackMs)) return false
  const { reached, row } = fact
  const over = [...reached].find(([status]) => status !== 'ringing')?.[1] ?? row.ring_expires_at
  const overAt = at + over - row.started_at - clockSlackMs
  const stayed = isThere(reading, at, patience.heardBy(knownAt, reading.user))
  return stayed || reading.online.some(({ from }) => from > at && from < overAt)
}

/** When somebody first heard of each call: it was committed by then. */
function firstHeard(readings: readonly Reading[]): ReadonlyMap<string, number> {
  const heard = new Map<string, number>()
  const seen = readings.flatMap(({ stretches, requests }) => [
    ...stretches.flatMap(({ pushes }) => pushes),
    ...requests.flatMap(({ replies }) => replies),
  ])
  for (const { at, frame } of seen) {
    const call = frame.data?.call_uuid
    if (call !== undefined) heard.set(call, Math.min(at, heard.get(call) ?? at))
  }
  return heard
}
