import {
  actorOf,
  alice,
  answeredCall,
  bob,
  durations,
  heldBy,
  leftBy,
  ringingCall,
  start,
} from '../../src/call/call.fixture.ts'
import { isAnswered, type LiveCall, type Place, type Side } from '../../src/call/call.ts'
import type { Actor, CallCommand } from '../../src/call/command.ts'
import type { Step } from '../../src/call/effects.ts'
import { compare, fromEverywhere, liveCases, overCases, sessionsOf } from './command-check.ts'
import { type Outcome, parseOutcome, stopRows, timeRows } from './command-table.ts'
import { byActor, isUpToDate, seatedStep, transitionOf, withPlaces } from './expected.ts'
import { type Machine, strict, violated } from './machine.ts'
import { seatIn } from './world.ts'

/** Part A, what the service itself does to a call: arrivals, losses, time, a restart, a jump of the clock. */

const now = start + 10_000
const same = { kind: 'same' } as const

/** An arrival names the session that it replaces, or says how it had the place itself. */
type Claim = Pick<Extract<CallCommand, { type: 'arrive' }>, 'resumes' | 'had'>

/**
 * Whether an arrival takes a place, and whether the place is settled then. A session that only has the device of a vacant place
 * takes it unsettled [PLACE2 b]. A session that resumes gets its own place back as it was [RES1]. A session that names the
 * previous one gets that session's place, if the device is the same [PLACE2 a, RES2]. Of held places an arrival takes only two
 * kinds: its own with another node or list, and one that passed on from it and whose holder has not spoken.
 */
function takesHow(place: Place | null, actor: Actor, { resumes, had }: Claim): 'not' | 'settled' | 'loose' {
  if (place === null) return 'not'
  const isOwn = actor.sessionId === place.sessionId
  if (had !== undefined && !isOwn) {
    if (place.settled || actor.deviceId !== place.deviceId) return 'not'
    return had === 'settled' ? 'settled' : 'loose'
  }
  if (place.state === 'held' && !(isOwn && !isUpToDate(place, actor))) return 'not'
  if (isOwn) return place.settled ? 'settled' : 'loose'
  if (actor.deviceId !== place.deviceId) return 'not'
  return resumes === place.sessionId ? 'settled' : 'loose'
}

/** [PLACE2 a, b] Who connects takes what it, what it names, or its device left. */
export function checkArrivals(machine: Machine): number {
  const { decide } = strict(machine)
  let cases = 0
  for (const device of ['phone', null]) {
    for (const { name, call } of liveCases(device)) {
      for (const side of ['caller', 'callee'] as const) {
        const place = seatIn(call, side)
        const [holder, ...others] = sessionsOf(side, device)
        // The one that left, on its device and on another; and others, who name nobody, it, the peer's, or a stranger's, or had
        // the place before.
        const names = ['a-1', 'b-1', 'x-1'].map((resumes): Claim => ({ resumes }))
        const before: Claim[] = [{}, { had: 'settled' }, { had: 'unsettled' }]
        for (const actor of fromEverywhere([holder!, ...others, { ...holder!, deviceId: 'tablet' }])) {
          for (const claim of actor.sessionId === holder?.sessionId ? before : [...before, ...names]) {
            const how = takesHow(place, actor, claim)
            const seated = heldBy(actor, how === 'settled')
            const step = seatedStep(call, side, seated, 'place_taken', byActor(actor), now)
            const command = { type: 'arrive', actor, ...claim } as const
            const where = `on ${actor.deviceId} to ${actor.node}`
            const title = `${name}: ${actor.sessionId} connects ${where}, ${JSON.stringify(claim)}`
            const decision = decide(call, command, now, durations)
            compare(title, decision, same, call, how === 'not' ? undefined : step)
            cases++
          }
        }
      }
    }
  }
  return cases
}

/** [END3] A loss counts for the place that the session holds on that node, and for nothing else. */
export function checkLosses(machine: Machine): number {
  const { decide } = strict(machine)
  let cases = 0
  for (const { name, call } of liveCases('phone')) {
    for (const sessionId of ['a-1', 'b-1', 'a-2', 'b-2', 'x-1']) {
      // Seen by its own node, by those of the two holders, and by one where nobody is.
      for (const node of new Set([sessionId, 'a-1', 'b-1', 'x-2'].map((each) => `node-of-${each}`))) {
        for (const how of [
          {},
          { closed: false },
          { closed: true },
          { hungUp: false },
          { closed: true, hungUp: true },
          { awaitedMs: 1_100 },
          { closed: false, awaitedMs: undefined },
        ]) {
          const step = how.hungUp ? hangUpOf(call, sessionId, node) : lossOf(call, sessionId, node, how)
          const title = `${name}: ${sessionId} is lost on ${node}, ${JSON.stringify(how)}`
          const command = { type: 'lose', sessionId, node, ...how } as const
          compare(title, decide(call, command, now, durations), same, call, step)
          cases++
        }
      }
    }
  }
  return cases
}

/** A caller that closes for good while its call rings has hung up; anybody else has only left [END6]. */
function hangUpOf(call: LiveCall, sessionId: string, node: string): Step | undefined {
  const { callerPlace } = call
  const isCaller = callerPlace.state === 'held' && callerPlace.sessionId === sessionId && callerPlace.node === node
  if (call.status !== 'ringing' || !isCaller || call.transferred !== undefined)
    return lossOf(call, sessionId, node, { closed: true })
  return transitionOf(call, hungUp, { actor: actorOf(alice, sessionId, null), side: null }, null, now)
}
const hungUp = parseOutcome('cancelled caller_cancelled > rung') as Extract<Outcome, { kind: 'to' }>

interface How {
  readonly closed?: boolean
  readonly awaitedMs?: number | undefined
}

function lossOf(call: LiveCall, sessionId: string, node: string, { closed, awaitedMs }: How): Step | undefined {
  for (const side of ['caller', 'callee'] as const) {
    const place = seatIn(call, side)
    if (place?.state !== 'held' || place.sessionId !== sessionId || place.node !== node) continue
    const { deviceId, settled, can = [] } = place
    const holder = { ...actorOf(alice, sessionId, deviceId), node, ...(can.length > 0 && { can }) }
    const vacant = leftBy(holder, now, settled, closed, awaitedMs)
    return seatedStep(call, side, vacant, 'place_lost', null, now)
  }
  return undefined
}

/**
 * [END3] A restart is a loss for a session on no node that serves, an absence for nobody; a session that waits has the
 * full time.
 */
export function checkRestarts(machine: Machine): number {
  const { decide } = strict(machine)
  let cases = 0
  for (const { name, call } of liveCases('phone')) {
    const places = [call.callerPlace, ...(isAnswered(call) ? [call.calleePlace] : [])]
    for (const nodes of [[], ['a-1'], ['b-1'], ['a-1', 'b-1'], ['x-1', 'a-1'], ['x-1']].map(nodesOf)) {
      const stays = (place: Place) => place.state === 'held' && nodes.includes(place.node)
      const next = withPlaces(call, (place) => (stays(place) ? place : { ...place, state: 'vacant', since: now }))
      const step = places.every(stays) ? undefined : serviceStep(call, next, 'place_lost')
      const title = `${name}: restart, [${nodes}] serve`
      compare(title, decide(call, { type: 'restart', nodes }, now, durations), same, call, step)
      cases++
    }
    cases++
  }
  return cases
}
const nodesOf = (sessionIds: readonly string[]) => sessionIds.map((sessionId) => `node-of-${sessionId}`)

function serviceStep(call: LiveCall, next: LiveCall, type: Step['event']['type']): Step {
  return { call: { ...next, version: call.version + 1 }, event: { type, at: now, by: null, notices: [] } }
}

/** What remained before the wall clock jumped still remains after it. */
export function checkShifts(machine: Machine): number {
  const { decide } = strict(machine)
  let cases = 0
  for (const { name, call } of liveCases('phone')) {
    for (const ms of [-3_600_000, 250]) {
      const moved = withPlaces(call, (place) =>
        place.state === 'vacant' ? { ...place, since: place.since + ms } : place,
      )
      const instants = isAnswered(call)
        ? { acceptedAt: call.acceptedAt + ms }
        : { ringExpiresAt: call.ringExpiresAt + ms }
      const next = { ...moved, ...instants }
      const decision = decide(call, { type: 'shift', ms }, now, durations)
      compare(`${name}: the clock jumps ${ms} ms`, decision, same, call, serviceStep(call, next, 'clock_shifted'))
      cases++
    }
  }
  return cases
}

/** [RING1, END3] Each time limit fires at its instant and not before, late as well as in time. */
export function checkTime(machine: Machine): number {
  const { decide } = strict(machine)
  let cases = 0
  for (const row of timeRows) {
    const from = row.from === 'ringing' ? start : start + 5_000
    const placeOf = (left: 'held' | number, side: Side) => {
      const holder = side === 'caller' ? actorOf(alice, 'a-1', 'phone') : actorOf(bob, 'b-1')
      if (left === 'held') return heldBy(holder)
      return leftBy(holder, from + left, true, row.closed === side || row.closed === 'both')
    }
    const callerPlace = placeOf(row.caller, 'caller')
    const call =
      row.from === 'ringing'
        ? ringingCall({ callerPlace, silenced: ['b-3'] })
        : answeredCall({ status: row.from, callerPlace, calleePlace: placeOf(row.callee, 'callee') })
    const outcome = parseOutcome(row.does)
    for (const [late, fires] of [
      [-1, false],
      [0, true],
      [1, true],
      [500, true],
      [1e10, true],
    ] as const) {
      const at = from + row.due + late
      const step = fires && outcome.kind === 'to' ? transitionOf(call, outcome, null, null, at) : undefined
      const title = `${row.from}, places ${row.caller} and ${row.callee}: time, ${late} ms after it is due`
      compare(title, decide(call, { type: 'time' }, at, durations), same, call, step)
      cases++
    }
  }
  return cases
}

/** [SRV2] A backend ends a call in every state, whichever session has which place. */
export function checkStops(machine: Machine): number {
  const { decide } = strict(machine)
  let cases = 0
  // A call that is over still says by which clock its instants were written [END3].
  const written = liveCases('phone').flatMap(({ name, call }) => [
    { name, call },
    { name: `${name}, after a jump`, call: { ...call, clock: { of: 'shared', jumpedMs: 250 } } },
  ])
  for (const { name, call } of written) {
    const outcome = parseOutcome(stopRows[call.status])
    if (outcome.kind !== 'to') throw new Error('a row of the table is no transition')
    for (const note of [null, '', 'the order was cancelled']) {
      const { event, ...ended } = transitionOf(call, outcome, null, null, now)
      const step = { ...ended, event: note === null ? event : { ...event, note } }
      compare(`${name}: stopped, ${note}`, decide(call, { type: 'stop', note }, now, durations), same, call, step)
      cases++
    }
  }
  return cases
}

/** Outages, in ms since a place was lost there that has as much as `lostMs` of them. */
const outagesOf = (lostMs: number): readonly (readonly (readonly [from: number, to: number])[])[] => {
  const instants = [-900, -1, 0, 1, lostMs / 2, lostMs - 1, lostMs, lostMs + 1]
  const one = instants.flatMap((from) =>
    [1, 500, lostMs, Number.POSITIVE_INFINITY].map((ms) => [from, from + ms] as const),
  )
  const lasting = one.filter(([, to]) => to < Number.POSITIVE_INFINITY)
  const then = (to: number) =>
    [1, lostMs / 2, lostMs - 1, lostMs, 2 * lostMs].map((gap) => [to + gap, to + gap + 700] as const)
  return [
    ...one.map((first) => [first]),
    ...lasting.flatMap((first) => then(first[1]).map((second) => [first, second])),
    ...lasting.flatMap((first) =>
      then(first[1]).map((second) => [first, second, [second[1] + 5, second[1] + 900] as const]),
    ),
  ]
}

/** How long after the loss the clock runs out: it stands still in an outage, and starts again after the first [END3]. */
function ranOut(outages: readonly (readonly [from: number, to: number])[], lostMs: number): number {
  let at = 0
  let left = lostMs
  let isAgain = false
  for (const [from, to] of outages.filter(([, to]) => to > 0)) {
    const runs = Math.max(0, from - at)
    if (runs >= left) break
    left = isAgain ? left - runs : lostMs
    isAgain = true
    at = to
  }
  return at + left
}

/** [END3] The lost clocks of both sides, ringing and answered, over outages before, in and after them. */
export function checkOutages(machine: Machine): number {
  const { decide } = strict(machine)
  let cases = 0
  const lost = start + 6_000
  const left = (who: 'a-1' | 'b-1') => leftBy(actorOf(who === 'a-1' ? alice : bob, who), lost)
  const closed = (who: 'a-1' | 'b-1', since: number) =>
    leftBy(actorOf(who === 'a-1' ? alice : bob, who), since, true, true)
  const awaitedMs = 1_100
  const awaited = (who: 'a-1' | 'b-1') =>
    leftBy(actorOf(who === 'a-1' ? alice : bob, who), lost, true, false, awaitedMs)
  for (const [call, lostMs] of [
    [ringingCall({ ringExpiresAt: start + 1e9, callerPlace: left('a-1') }), durations.callerLostMs],
    [answeredCall({ callerPlace: left('a-1') }), durations.peerLostMs],
    [answeredCall({ status: 'connected', calleePlace: left('b-1') }), durations.peerLostMs],
    [answeredCall({ callerPlace: closed('a-1', lost), calleePlace: closed('b-1', lost) }), durations.callerLostMs],
    [ringingCall({ ringExpiresAt: start + 1e9, callerPlace: awaited('a-1') }), awaitedMs],
    [answeredCall({ calleePlace: awaited('b-1') }), awaitedMs],
  ] as const) {
    for (const outages of outagesOf(lostMs)) {
      const due = lost + ranOut(outages, lostMs)
      const given = { ...durations, outages: outages.map(([from, to]) => ({ from: lost + from, to: lost + to })) }
      for (const [at, fires] of due === Number.POSITIVE_INFINITY
        ? ([[lost + 1e7, false]] as const)
        : ([
            [due - 1, false],
            [due, true],
          ] as const)) {
        const decision = decide(call, { type: 'time' }, at, given)
        if (!decision.ok || decision.steps.length > 0 !== fires)
          violated('END3', `${call.status}, away ${JSON.stringify(outages)}, ${at - lost} ms after the loss`)
        cases++
      }
    }
  }
  return cases
}

export function checkServiceOnOver(machine: Machine): number {
  const { decide } = strict(machine)
  let cases = 0
  for (const { name, call } of overCases()) {
    const commands = [
      { type: 'lose', sessionId: 'a-1', node: 'node-of-a-1' },
      { type: 'time' },
      { type: 'stop', note: 'x' },
      { type: 'restart', nodes: [] },
      { type: 'restart', nodes: ['node-of-a-1'] },
      { type: 'shift', ms: 5 },
    ] as const
    for (const command of commands) {
      compare(`${name}: ${command.type}`, decide(call, command, start + 1e9, durations), same, call, undefined)
      cases++
    }
  }
  return cases
}
