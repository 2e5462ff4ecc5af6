import {
  aliceOne,
  answeredCall,
  bobOne,
  durations,
  heldBy,
  leftBy,
  ringingCall,
  start,
} from '../../src/call/call.fixture.ts'
import type { LiveCall, Place } from '../../src/call/call.ts'
import { compare } from './command-check.ts'
import { type Outcome, parseOutcome } from './command-table.ts'
import { transitionOf, withPlaces } from './expected.ts'
import { type Machine, strict } from './machine.ts'

/** Part A, clients that the service told to come back [PEER1]. */

/** After the answer, or the invite. */
const lost = start + 6_000
const same = { kind: 'same' } as const
const lostPeer = parseOutcome('ended peer_lost > caller callee') as Extract<Outcome, { kind: 'to' }>

/** Held, vacant, or vacant for so short a time after `lost` that nobody hears of it. */
const kinds = ['held', 'vacant', 1_100, 2_000, durations.peerLostMs - 1] as const
type Kind = (typeof kinds)[number]

function placeOf(kind: Kind, holder: typeof aliceOne): Place {
  if (kind === 'held') return heldBy(holder)
  return leftBy(holder, lost, true, false, kind === 'vacant' ? undefined : kind)
}

/** The time of a place is over: it stays vacant, and nothing else of it changes. */
function withoutThose(call: LiveCall, now: number): LiveCall {
  return withPlaces(call, (place) => {
    if (place.state === 'held' || place.awaitedMs === undefined || place.since + place.awaitedMs > now) return place
    const { awaitedMs: _, ...away } = place
    return away
  })
}

/** [PEER1] At its instant and not before, late as well as in time, each place for itself; the end of the call comes first. */
export function checkAwaited(machine: Machine): number {
  const { decide } = strict(machine)
  const calls = kinds.flatMap((caller) => [
    ...kinds.flatMap((callee) =>
      (['accepted', 'connected'] as const).map((status) =>
        answeredCall({ status, callerPlace: placeOf(caller, aliceOne), calleePlace: placeOf(callee, bobOne) }),
      ),
    ),
    ringingCall({ callerPlace: placeOf(caller, aliceOne), ringExpiresAt: start + 1e9 }),
  ])
  let cases = 0
  for (const call of calls) {
    const endMs = call.status === 'ringing' ? durations.callerLostMs : durations.peerLostMs
    const places = 'calleePlace' in call ? [call.callerPlace, call.calleePlace] : [call.callerPlace]
    for (const ms of [0, 1_099, 1_100, 1_101, 1_999, 2_000, 19_999, endMs - 1, endMs]) {
      const now = lost + ms
      if (call.status === 'ringing' && ms >= endMs) continue
      const event = { type: 'place_lost', at: now, by: null, notices: [] } as const
      const changed = withoutThose(call, now)
      const isOver = ms >= endMs && places.some(({ state }) => state === 'vacant')
      const isNews = places.some(
        (place) => place.state === 'vacant' && place.awaitedMs !== undefined && place.awaitedMs <= ms,
      )
      const step = isNews ? { call: { ...changed, version: call.version + 1 }, event } : undefined
      const title = `${call.status}, ${JSON.stringify(places.map((place) => ({ ...place })))}, ${ms} ms later`
      const expected = isOver ? transitionOf(call, lostPeer, null, null, now) : step
      compare(title, decide(call, { type: 'time' }, now, durations), same, call, expected)
      cases++
    }
  }
  return cases
}
