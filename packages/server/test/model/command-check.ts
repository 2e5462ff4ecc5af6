import type { Capability } from '@ringwire/protocol/capabilities'
import {
  actorOf,
  alice,
  answeredCall,
  bob,
  durations,
  heldBy,
  leftBy,
  onNode,
  overCall,
  ringingCall,
  start,
  uuidOf,
} from '../../src/call/call.fixture.ts'
import type { Call, LiveCall, Participant, Place, Side } from '../../src/call/call.ts'
import type { Actor, CallCommand, Decision } from '../../src/call/command.ts'
import type { Step } from '../../src/call/effects.ts'
import { busyRows, commandRows, type Outcome, parseOutcome, type Row } from './command-table.ts'
import { byActor, difference, seatOf, transitionOf, withPeers } from './expected.ts'
import { type Machine, strict, violated } from './machine.ts'
import { mayHave, seatIn } from './world.ts'

/** Part A: every state, every command, every side and session, against the tables. */

const now = start + 10_000
const longAfter = 3_600_000
/**
 * `long vacant`: for just so long that another device may take it [PLACE2 c]; `vacant`: a moment less. `closed`: by its client;
 * `awaited`: by the service, which told it to come back [PEER1].
 */
const placeKinds = [
  ...(['settled', 'unsettled', 'vacant', 'vacant, unsettled', 'vacant, closed'] as const),
  ...(['vacant, awaited', 'long vacant'] as const),
]
type PlaceKind = (typeof placeKinds)[number]
const over = ['ended', 'rejected', 'cancelled', 'missed', 'busy'] as const

interface Case {
  readonly name: string
  readonly call: Call
}

function placeOfKind(kind: PlaceKind, holder: Actor): Place {
  const settled = !kind.endsWith('unsettled')
  if (kind === 'long vacant') return leftBy(holder, now - 5_000)
  if (kind === 'vacant, awaited') return leftBy(holder, now - 4_999, true, false, 6_000)
  return kind.startsWith('vacant')
    ? leftBy(holder, now - 4_999, settled, kind.endsWith('closed'))
    : heldBy(holder, settled)
}

/** The sessions of one side: the holder, and others of the same participant. */
export function sessionsOf(side: Side, device: string | null): readonly Actor[] {
  const [participant, prefix] = side === 'caller' ? [alice, 'a'] : [bob, 'b']
  return [
    actorOf(participant, `${prefix}-1`, device),
    actorOf(participant, `${prefix}-2`, device),
    actorOf(participant, `${prefix}-3`, 'tablet'),
    actorOf(participant, `${prefix}-4`, null),
  ]
}

/**
 * Each from where it is, and from another node: the holder has come there, the others are where the holder was. The holder also
 * comes with every kind of list of what its client understands [EXT6].
 */
export function fromEverywhere(actors: readonly Actor[]): readonly Actor[] {
  const holder = actors[0]!
  const elsewhere = actors.map((actor) =>
    onNode(actor, actor.sessionId === holder.sessionId ? 'node-of-x-1' : holder.node),
  )
  return [...actors, ...elsewhere, ...lists.map((can): Actor => ({ ...holder, can }))]
}
const lists: readonly (readonly Capability[])[] = [['take'], ['group'], ['transfer', 'take'], ['take', 'group']]

const clientVerbs = ['accept', 'reject', 'cancel', 'end', 'connected', 'relay'] as const

/** Nobody of the call: another user, the same user_id under the peer's role or another, another product [ID1]. */
const strangers: readonly Actor[] = [
  { ...alice, userId: 'carol' },
  { ...alice, role: 'agent' },
  { ...bob, role: 'customer' },
  { ...alice, product: 'bank' },
  { ...bob, product: 'bank' },
].map((participant: Participant) => actorOf(participant, 'x-1', 'phone'))

/** It began as a transfer, of a call that began a minute before; or it is being transferred [XFER1]. */
const by = { userId: 'erin', role: 'agent', displayName: 'ERIN' }
const transferred = { from: uuidOf(90), by, firstStartedAt: start - 60_000 }
const transferring = { to: uuidOf(91), by: 'callee' } as const

export function liveCases(device: string | null): { name: string; call: LiveCall }[] {
  const [caller, callee] = [sessionsOf('caller', device)[0]!, sessionsOf('callee', device)[0]!]
  const places = { callerPlace: heldBy(caller), calleePlace: heldBy(callee) }
  /** What a call remembers of its beginning stays in every state, the end too [UUID1]. */
  const redirectedFrom = 'dave'
  const cases: { name: string; call: LiveCall }[] = [
    { name: 'ringing, redirected', call: ringingCall({ callerPlace: places.callerPlace, redirectedFrom }) },
    { name: 'accepted, redirected', call: answeredCall({ ...places, redirectedFrom }) },
    { name: 'connected, redirected', call: answeredCall({ ...places, status: 'connected', redirectedFrom }) },
    { name: 'ringing, transferred', call: ringingCall({ callerPlace: places.callerPlace, transferred }) },
    { name: 'accepted, transferred', call: answeredCall({ ...places, transferred }) },
    {
      name: 'accepted, transferred, the caller left',
      call: answeredCall({ ...places, callerPlace: placeOfKind('vacant', caller), transferred }),
    },
    { name: 'accepted, is being transferred', call: answeredCall({ ...places, transferring, transferred }) },
    { name: 'connected, is being transferred', call: answeredCall({ ...places, status: 'connected', transferring }) },
  ]
  for (const can of lists.slice(0, 3)) {
    const callerPlace = heldBy({ ...caller, can })
    const calleePlace = heldBy({ ...callee, can })
    cases.push({ name: `ringing, its caller listed ${can}`, call: ringingCall({ callerPlace }) })
    for (const status of ['accepted', 'connected'] as const) {
      const call = answeredCall({ status, callerPlace, calleePlace })
      cases.push({ name: `${status}, both listed ${can}`, call })
    }
  }
  for (const kind of placeKinds) {
    const callerPlace = placeOfKind(kind, caller)
    for (const silenced of [[], ['b-2', 'b-9']]) {
      const call = ringingCall({ callerPlace, silenced })
      cases.push({ name: `ringing, caller ${kind}, silenced ${silenced.length}`, call })
    }
    for (const other of placeKinds) {
      const calleePlace = placeOfKind(other, callee)
      for (const status of ['accepted', 'connected'] as const) {
        const call = answeredCall({ status, callerPlace, calleePlace })
        cases.push({ name: `${status}, caller ${kind}, callee ${other}`, call })
      }
    }
  }
  return cases
}

export function overCases(): Case[] {
  return over.flatMap((status) => [
    { name: `${status}, never answered`, call: overCall({ status }) },
    {
      name: `${status}, the caller gone`,
      call: overCall({ status, callerPlace: leftBy(actorOf(alice, 'a-1', 'phone'), start) }),
    },
    {
      name: `${status}, answered`,
      call: overCall({ status, calleePlace: heldBy(actorOf(bob, 'b-1', 'desk')), acceptedAt: start + 1_000 }),
    },
  ])
}

/** Compares a decision with what is expected: a refusal, nothing, or one step. */
export function compare(
  name: string,
  decision: Decision,
  outcome: Outcome,
  call: Call,
  step: Step | undefined,
  wait: { readonly retry_after_ms?: number } = {},
) {
  const codes = { no: 'CALL_NOT_PARTICIPANT', late: 'CALL_ALREADY_ANSWERED', state: 'CALL_INVALID_STATE' } as const
  const refused = outcome.kind === 'no' || outcome.kind === 'late' || outcome.kind === 'state'
  const details = outcome.kind === 'state' ? { status: call.status } : wait
  const expected = refused
    ? { ok: false, code: codes[outcome.kind], details, steps: [] }
    : { ok: true, call: step?.call ?? call, steps: step === undefined ? [] : [withPeers(call, step)] }
  const wrong = difference(decision, expected)
  if (wrong !== undefined) violated('table', `${name}\n${wrong}`)
}

/** The verb as commands: with and without a reason, where it takes one. */
function commandsOf(verb: Row['verb'], actor: Actor): { command: CallCommand; given: string | null }[] {
  const reasons = [null, 'in_a_meeting']
  switch (verb) {
    case 'reject':
      return reasons.map((reason) => ({ command: { type: verb, actor, reason, rung: ['b-1', 'b-2'] }, given: reason }))
    case 'cancel':
    case 'end':
      return reasons.map((reason) => ({ command: { type: verb, actor, reason }, given: reason }))
    default:
      return [{ command: { type: verb, actor }, given: null }]
  }
}

function speaks(call: Call, side: Side, actor: Actor): boolean {
  const place = seatIn(call, side)
  return place === null || mayHave(place, actor, now)
}

/** A session that comes too early hears when it may have the place; a session on the wrong side never may. */
function waitOf(call: Call, side: Side, outcome: Outcome): { retry_after_ms?: number } {
  const place = seatIn(call, side)
  if (place?.state !== 'vacant' || outcome.kind === 'no') return {}
  return { retry_after_ms: place.since + 5_000 - now }
}

function stepOf(call: LiveCall, outcome: Outcome, side: Side, actor: Actor, given: string | null): Step | undefined {
  if (outcome.kind === 'seat') return seatOf(call, side, actor, now)
  return outcome.kind === 'to' ? transitionOf(call, outcome, { actor, side }, given, now) : undefined
}

/** Every verb of every session in every live state. */
export function checkVerbs(machine: Machine): number {
  const { decide } = strict(machine)
  let cases = 0
  for (const device of ['phone', null]) {
    for (const { name, call } of liveCases(device)) {
      for (const row of commandRows.filter((each) => each.from === call.status)) {
        const side = row.side as Side
        for (const actor of fromEverywhere(sessionsOf(side, device))) {
          for (const { command, given } of commandsOf(row.verb, actor)) {
            const isHeard = speaks(call, side, actor)
            const outcome = isHeard ? row.speaks : row.other
            const title = `${name}: ${row.verb} by ${actor.sessionId} of the ${side} on ${actor.node}, ${actor.can}`
            compare(
              title,
              decide(call, command, now, durations),
              outcome!,
              call,
              stepOf(call, outcome!, side, actor, given),
              isHeard ? {} : waitOf(call, side, row.speaks),
            )
            cases++
          }
        }
      }
    }
  }
  return cases
}

/** Every verb on a call that is over, early and late [END1]. */
export function checkOver(machine: Machine): number {
  const { decide } = strict(machine)
  let cases = 0
  for (const { name, call } of overCases()) {
    for (const side of ['caller', 'callee'] as const) {
      for (const actor of fromEverywhere(sessionsOf(side, 'phone'))) {
        for (const row of commandRows.filter((each) => each.from === 'over' && [side, 'either'].includes(each.side))) {
          for (const { command } of commandsOf(row.verb, actor)) {
            const decision = decide(call, command, start + longAfter, durations)
            compare(`${name}: ${row.verb} by ${actor.sessionId}`, decision, row.speaks, call, undefined)
            cases++
          }
        }
        for (const [after, kind] of [
          [0, 'same'],
          [59_999, 'same'],
          [60_000, 'state'],
          [longAfter, 'state'],
        ] as const) {
          const decision = decide(call, { type: 'relay', actor }, start + 45_000 + after, durations)
          compare(`${name}: relay ${after} ms after the end`, decision, { kind }, call, undefined)
          cases++
        }
        compare(
          `${name}: arrive`,
          decide(call, { type: 'arrive', actor }, now, durations),
          { kind: 'same' },
          call,
          undefined,
        )
      }
    }
  }
  return cases
}

/** Strangers learn nothing, whatever they ask and of whatever call. */
export function checkStrangers(machine: Machine): number {
  const { decide } = strict(machine)
  const expected = { ok: false, code: 'CALL_NOT_FOUND', details: {}, steps: [] }
  let cases = 0
  for (const { name, call } of [{ name: 'no call', call: undefined }, ...liveCases('phone'), ...overCases()]) {
    for (const actor of call === undefined ? sessionsOf('caller', null) : strangers) {
      const commands: CallCommand[] = clientVerbs.flatMap((verb) =>
        commandsOf(verb, actor).map(({ command }) => command),
      )
      const others = (['arrive', 'take'] as const).map((type) => ({ type, actor }))
      for (const command of [...commands, ...others]) {
        const wrong = difference(decide(call, command, now, durations), expected)
        if (wrong !== undefined) violated('ENV5', `${name}: ${command.type} by a stranger\n${wrong}`)
        cases++
      }
    }
  }
  return cases
}

/**
 * [WS5] A session whose token is over counts as ever, but for entering a call that began later: with what takes a place,
 * where it has none.
 */
export function checkExpiry(machine: Machine): number {
  const { decide } = strict(machine)
  const tooLate = { ok: false, code: 'AUTH_TOKEN_INVALID', details: {}, steps: [] }
  let cases = 0
  for (const { name, call } of liveCases('phone')) {
    for (const side of ['caller', 'callee'] as const) {
      const place = seatIn(call, side)
      for (const actor of sessionsOf(side, 'phone')) {
        for (const { command } of clientVerbs.flatMap((verb) => commandsOf(verb, actor))) {
          const unlimited = decide(call, command, now, durations)
          const takes = ['accept', 'relay', 'connected'].includes(command.type) && place?.sessionId !== actor.sessionId
          const enters = place === null ? command.type === 'accept' : takes && isHeard(unlimited)
          for (const ms of [-1, 0, 1]) {
            // The side that was transferred has been in the call since the first one began [XFER1].
            const begin = side === 'caller' ? (call.transferred?.firstStartedAt ?? call.startedAt) : call.startedAt
            const expiresAt = begin + ms
            const decision = decide(call, { ...command, actor: { ...actor, expiresAt } } as CallCommand, now, durations)
            const wrong = difference(decision, enters && ms <= 0 ? tooLate : unlimited)
            if (wrong !== undefined)
              violated('WS5', `${name}: ${command.type} by ${actor.sessionId}, ${ms} ms\n${wrong}`)
            cases++
          }
        }
      }
    }
  }
  return cases
}
const isHeard = (decision: Decision) =>
  decision.ok || !['CALL_NOT_PARTICIPANT', 'CALL_ALREADY_ANSWERED'].includes(decision.code)

/** Busy rejects of several sessions. */
export function checkBusy(machine: Machine): number {
  const { decide } = strict(machine)
  const actor = actorOf(bob, 'b-1', 'desk')
  for (const { silenced, rung, does, left = silenced } of busyRows) {
    const call = ringingCall({ silenced })
    const all = silenced.includes('b-1') ? silenced : [...left, 'b-1']
    const ends = transitionOf({ ...call, silenced: all }, rejectedBusy, { actor, side: 'callee' }, null, now)
    const event = { type: 'silenced', at: now, by: byActor(actor), notices: [] } as const
    const silences: Step = { call: { ...call, version: call.version + 1, silenced: all }, event }
    const step = { rejected: ends, silenced: silences, same: undefined }[does]
    const command = { type: 'reject', actor, reason: 'busy', rung } as const
    const title = `busy, said before by [${silenced}], rung [${rung}]`
    compare(title, decide(call, command, now, durations), { kind: 'same' }, call, step)
  }
  return busyRows.length
}
const rejectedBusy = parseOutcome('rejected busy > caller rung') as Extract<Outcome, { kind: 'to' }>
