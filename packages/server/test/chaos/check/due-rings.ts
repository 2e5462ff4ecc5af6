import type { CallFacts } from './facts.ts'
import { clockSlackMs } from './findings.ts'
import { atOnceMs, isThere, type Patience } from './patience.ts'
import type { Reading } from './reading.ts'
import type { Turn } from './turns.ts'

/** Whether somebody has to hear a call ring that was decided on at `at`. */
export type IsRingDue = (fact: CallFacts, user: string, at: number) => boolean

/** How long after its end a late ring is still worth sending, if nobody answered, in ms [RING1]. */
const lateRingMs = 10_000

/**
 * A ring is due to a phone that was there when the call began, and came back while it rang or stayed for as long as it may
 * take to tell it. The row has the time of the decision; the commit may have to wait for the database. A phone that left
 * before the ring could reach it may come back when the ring is over.
 */
export function createDueRings(readings: ReadonlyMap<string, Reading>, patience: Patience): IsRingDue {
  const heard = firstHeard([...readings.values()])
  return ({ reached, row }, user, at) => {
    const callee = readings.get(user)
    if (callee === undefined || !isThere(callee, at, at + clockSlackMs)) return false
    const [, over = row.ring_expires_at] = [...reached].find(([status]) => status !== 'ringing') ?? []
    const overAt = at + over - row.started_at - clockSlackMs
    if (callee.online.some(({ from }) => from > at && from < overAt)) return true
    const knownAt = heard.get(row.call_uuid)
    if (knownAt === undefined) return false
    const nodes = [callee, readings.get(row.caller)].map((reading) => nodeAt(reading, knownAt))
    const heardBy = patience.heardBy(knownAt, user, nodes)
    // Something was in the way. A ring that could not be told before somebody answered is told to nobody.
    const isLate = heardBy > knownAt + atOnceMs
    const mayRingLateMs = isLate && reached.has('accepted') ? 0 : lateRingMs
    return heardBy <= overAt + mayRingLateMs && isThere(callee, at, heardBy)
  }
}

/** In this time the member of a turn has heard of it for sure, where nothing is broken, in ms. */
const heardMs = 1_200

/** Whether the member whose turn it is has to hear that: it was there all the time, and nothing was in the way. */
export function isTurnDue(reading: Reading, { began, end }: Turn, startedAt: number, patience: Patience): boolean {
  const from = began.at - startedAt
  const until = (end?.at ?? Number.POSITIVE_INFINITY) - startedAt
  return until - from > heardMs && isThere(reading, from, until) && patience.isCalm(from, until)
}

/** When somebody first heard of each call: it was committed by then. */
function firstHeard(readings: readonly Reading[]): ReadonlyMap<string, number> {
  const heard = new Map<string, number>()
  for (const { stretches, requests } of readings) {
    const seen = [...stretches.flatMap(({ pushes }) => pushes), ...requests.flatMap(({ replies }) => replies)]
    for (const { at, frame } of seen) {
      const call = frame.data?.call_uuid
      if (call !== undefined) heard.set(call, Math.min(at, heard.get(call) ?? at))
    }
  }
  return heard
}

/** The node where somebody was in last, or still is. */
export function nodeAt(reading: Reading | undefined, at: number): number | undefined {
  return reading?.states.findLast((state) => state.at <= at)?.node
}
