import type { EventRow } from '../recording.ts'
import { createDueRings, isTurnDue } from './due-rings.ts'
import { type CallFacts, type Facts, isJoined, overStatuses, secondCalls } from './facts.ts'
import { clockSlackMs, type Report } from './findings.ts'
import type { Patience } from './patience.ts'
import { isWithAnother } from './places.ts'
import type { Reading, SeenState } from './reading.ts'
import { turnsOf } from './turns.ts'

/** The user who has to hear of an event, and by which push. */
interface Owed {
  readonly user: string
  readonly pushes: readonly string[]
  /** The call that the push names, where it is another one. */
  readonly about?: string
}

/** Every transition reaches everybody whom it concerns, unless a loss was declared to them [ORD3, EXT3]. */
export function checkNotices(
  readings: readonly Reading[],
  facts: Facts,
  startedAt: number,
  patience: Patience,
  report: Report,
): void {
  const byUser = new Map(readings.map((reading) => [reading.user, reading]))
  const isRingDue = createDueRings(byUser, patience)
  const seconds = secondCalls(facts)
  for (const fact of facts.values()) {
    for (const event of fact.events) {
      for (const owed of owedFor(event, fact, seconds.get(event.call_uuid)?.row.call_uuid)) {
        const reading = byUser.get(owed.user)
        const at = event.at - startedAt
        if (reading === undefined) continue
        if ([at, patience.storedBy(at)].some((due) => isHeard(reading, owed, event, due, patience))) continue
        if (event.type === 'connected' && showsInSnapshot(reading, event, at)) continue
        // The end goes to all sessions.
        if (!overStatuses.includes(event.type) && isWithAnother(reading, fact, at, startedAt)) continue
        const turn = event.type === 'turn' && turnsOf(fact).find(({ began }) => began === event)
        const isDue = turn ? isTurnDue(reading, turn, startedAt, patience) : isRingDue(fact, owed.user, at)
        if (owed.pushes.includes('call.ringing') && !isDue) continue
        const where = { user: owed.user, call: event.call_uuid, at }
        report('untold', `${owed.user} never got ${owed.pushes} of version ${event.version}`, where)
      }
    }
  }
}

/** `second`: the second one of two answered calls that became this one. */
function owedFor(event: EventRow, fact: CallFacts, second: string | undefined): Owed[] {
  const { type, version, by_user: by, member } = event
  const { row, reached } = fact
  const { caller, callee, members = [callee], transferred_from: first } = row
  if (type === 'invited') {
    // One that rings in turn rings at nobody yet.
    const rung = turnsOf(fact).length > 0 ? [] : members.map((user) => ({ user, pushes: ['call.ringing'] }))
    return first === undefined ? rung : [...rung, { user: caller, pushes: ['call.transferring'], about: first }]
  }
  if (type === 'turn') return member === undefined ? [] : [{ user: member, pushes: ['call.ringing'] }]
  if (type === 'transfer_failed') return [caller, callee].map((user) => ({ user, pushes: ['call.transfer_failed'] }))
  if (isJoined(fact) && version === 1) {
    const sides = [
      [caller, first],
      [callee, second],
    ] as const
    return sides.flatMap(([user, about]) =>
      about === undefined ? [] : [{ user, pushes: ['call.transferring'], about }],
    )
  }
  if (type === 'accepted') return [{ user: caller, pushes: ['call.accepted'] }]
  if (type === 'connected') return [{ user: by === caller ? callee : caller, pushes: ['call.status'] }]
  // Nobody hears of a call that a backend refused, or its caller withdrew: it never rang [HOOK5].
  if (!overStatuses.includes(type) || type === 'busy' || version === 1) return []
  // Nobody hung up a call that was transferred.
  const others = [caller, callee].filter((user) => user !== by || row.end_reason === 'transferred')
  if (type === 'rejected') return others.map((user) => ({ user, pushes: ['call.rejected'] }))
  const wasAnswered = reached.has('accepted')
  // A phone that was away while it rang has nothing to hear of.
  const heard = wasAnswered ? others : others.filter((user) => user === caller)
  return heard.map((user) => ({ user, pushes: [`call.${type}`] }))
}

function isHeard(reading: Reading, { pushes, about }: Owed, event: EventRow, at: number, patience: Patience): boolean {
  const first = reading.stretches.findLastIndex(({ from }) => from + clockSlackMs < at)
  const stretch = reading.stretches[first]
  if (stretch === undefined || patience.excuses(reading, stretch, at)) return true
  // Only the end of a call may also be sent to the session that comes after a loss [WS4].
  const isEnd = overStatuses.includes(event.type)
  if (!isEnd && patience.timedOut(reading, stretch, at)) return true
  const told = isEnd ? reading.stretches.slice(first) : [stretch]
  const came = told.flatMap((each) => each.pushes)
  const call = about ?? event.call_uuid
  // Each turn rings anew.
  const least = event.type === 'turn' ? event.version : 0
  return came.some(
    ({ frame }) =>
      frame.data?.call_uuid === call && pushes.includes(frame.event) && (least === 0 || (frame.version ?? 0) >= least),
  )
}

/** A session that had no place yet when its call was connected finds that in the snapshot when it has one [PLACE2, EXT1]. */
function showsInSnapshot({ states }: Reading, { call_uuid: call }: EventRow, at: number): boolean {
  const listedIn = (state: SeenState | undefined) =>
    state?.frame.data?.active_calls?.find(({ call_uuid }) => call_uuid === call)
  const hadNoPlace = listedIn(states.findLast((state) => state.at <= at))?.holds_place === false
  return hadNoPlace && states.some((state) => state.at > at && listedIn(state)?.status === 'connected')
}
