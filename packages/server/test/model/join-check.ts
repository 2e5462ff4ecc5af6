import {
  actorOf,
  alice,
  answeredCall,
  between,
  bob,
  carol,
  dave,
  durations,
  heldBy,
  leftBy,
  overCall,
  ringingCall,
  start,
  uuidOf,
} from '../../src/call/call.fixture.ts'
import type { AnsweredCall, Call, LiveCall, Place, Side } from '../../src/call/call.ts'
import type { Actor } from '../../src/call/command.ts'
import type { Step } from '../../src/call/effects.ts'
import type { InviteCommand } from '../../src/call/invite.ts'
import { type Outcome, parseOutcome } from './command-table.ts'
import { difference, transitionOf } from './expected.ts'
import { commandOf, toSelf } from './invite-check.ts'
import { type Machine, strict, violated } from './machine.ts'
import { beganFor } from './transfer-check.ts'

/**
 * Part A for consultations. Bob talks to alice in one call and to carol in another, and connects the two. The expected decision
 * is written down here from [XFER1].
 */

const now = start + 20_000
const [firstUuid, secondUuid, next] = [uuidOf(1), uuidOf(90), uuidOf(91)]
const can = ['take', 'transfer'] as const
const asker = actorOf(bob, 'b-1', 'desk')
const alices = { ...actorOf(alice, 'a-1', 'phone'), can }
const carols = { ...actorOf(carol, 'c-1', 'tablet'), can }
const otherOf = (side: Side): Side => (side === 'caller' ? 'callee' : 'caller')
const placeName = (side: Side) => (side === 'caller' ? 'callerPlace' : 'calleePlace')
type To = Extract<Outcome, { kind: 'to' }>
const ended = parseOutcome('ended transferred > caller callee') as To

const party = ({ participant: { userId, role }, displayName }: Actor) => ({ userId, role, displayName })

/** A call of bob's, who has the side `by`, with somebody. */
function callWith(other: Actor, by: Side, callUuid: string, changes: Partial<AnsweredCall> = {}): AnsweredCall {
  const [caller, callee] = by === 'caller' ? [asker, other] : [other, asker]
  return answeredCall({
    ...{ callUuid, caller: party(caller), callee: party(callee) },
    ...{ callerPlace: heldBy(caller), calleePlace: heldBy(callee) },
    ...changes,
  })
}

interface Setting {
  readonly by: readonly [Side, Side]
  readonly first: AnsweredCall
  readonly second: AnsweredCall
}

interface Situation {
  readonly name: string
  readonly first: Call | undefined
  readonly live: readonly LiveCall[]
  readonly asker: Actor
  readonly invite: InviteCommand
  /** Undefined: both calls become one. */
  readonly refused: { readonly code: string; readonly details?: object } | undefined
  /** The calls that become one. */
  readonly of: Setting
}

function inviteFor(changes: Partial<InviteCommand> = {}): InviteCommand {
  const { userId, role } = carol
  return {
    ...commandOf(next, undefined, 'allow'),
    actor: { ...alices, displayName: 'another' },
    callee: { userId, role },
    freshUuid: next,
    ...changes,
  }
}

/** What the other side reads of somebody who is away, and was not told to come back [PEER1, END5]. */
function awayOf(place: Place, other: Place): object {
  if (place.state === 'held' || place.awaitedMs !== undefined) return {}
  const isLast = place.closed && other.state === 'vacant' && other.closed && place.since >= other.since
  const { callerLostMs, peerLostMs } = durations
  const endsAt = place.since + (isLast ? callerLostMs : peerLostMs)
  return { away: { since: new Date(place.since).toISOString(), ends_at: new Date(endsAt).toISOString() } }
}

/** All three steps, whole. */
function joined({ by: [one, two], first, second }: Setting, invite: InviteCommand): readonly Step[] {
  const [left, right] = [otherOf(one), otherOf(two)]
  const { contextType, contextId, callType } = invite
  const call = answeredCall({
    ...{ callUuid: next, version: 1, metadata: invite.metadata, contextType, contextId, callType },
    ...{ caller: first[left], callee: second[right] },
    ...{ callerPlace: first[placeName(left)], calleePlace: second[placeName(right)] },
    transferred: {
      from: firstUuid,
      by: { userId: bob.userId, role: bob.role, displayName: asker.displayName },
      firstStartedAt: beganFor(first, left),
      secondStartedAt: beganFor(second, right),
    },
    ...{ startedAt: now, ringTimeoutMs: 30_000, ringExpiresAt: now + 30_000, acceptedAt: now, connectedAt: null },
  })
  const about = (
    former: string,
    direction: 'outgoing' | 'incoming',
    { userId, role, displayName }: Call['caller'],
    away: object,
  ) => ({
    ...{ call_uuid: former, new_call_uuid: next, status: 'accepted' as const, direction },
    to: { user_id: userId, role, display_name: displayName, ...away },
  })
  const news = { event: 'call.transferring', needs: 'transfer' } as const
  const peers = [
    {
      to: 'caller',
      ...news,
      data: about(firstUuid, 'outgoing', call.callee, awayOf(call.calleePlace, call.callerPlace)),
    },
    {
      to: 'callee',
      ...news,
      data: about(second.callUuid, 'incoming', call.caller, awayOf(call.callerPlace, call.calleePlace)),
    },
  ] as const
  const ends = [first, second].map((each): Step => {
    const step = transitionOf(each, ended, { actor: asker, side: null }, null, now)
    return { call: { ...step.call, transferredTo: next }, event: step.event }
  })
  return [{ call, event: { type: 'accepted', at: now, by: null, notices: [], peers } }, ...ends]
}

const field = 'to_call_uuid'
const state = (status: Call['status'], more: object = {}) => ({
  code: 'CALL_INVALID_STATE',
  details: { status, ...more },
})

function* situations(by: readonly [Side, Side]): Generator<Situation> {
  const [one, two] = by
  const first = (changes: Partial<AnsweredCall> = {}) => callWith(alices, one, firstUuid, changes)
  const second = (changes: Partial<AnsweredCall> = {}) => callWith(carols, two, secondUuid, changes)
  type Refused = Situation['refused']
  function ask(name: string, a: Call | undefined, b: LiveCall | undefined, refused?: Refused, more: object = {}) {
    const others = [between(answeredCall(), dave, alice, 92), between(ringingCall(), carol, dave, 93)]
    const of = { by, first: a as AnsweredCall, second: b as AnsweredCall }
    const live = [...others, ...(b ? [b] : [])]
    return { name: `${one} ${two}: ${name}`, first: a, live, asker, invite: inviteFor(), refused, of, ...more }
  }
  for (const status of ['accepted', 'connected'] as const) {
    yield ask(status, first({ status }), second())
    yield ask(`the second ${status}`, first(), second({ status }))
  }
  yield ask('no first', undefined, second(), { code: 'CALL_NOT_FOUND' })
  yield ask('no second', first(), undefined, { code: 'CALL_INVALID_STATE', details: { field } })
  const stranger = { asker: { ...asker, participant: dave } }
  yield ask('a stranger', first(), second(), { code: 'CALL_NOT_FOUND' }, stranger)
  const others = answeredCall({ ...second(), caller: party(alices), callee: party(carols) })
  yield ask('the second is of others', first(), others, { code: 'CALL_NOT_FOUND', details: { field } })
  yield ask('the first rings', ringingCall(), second(), state('ringing'))
  yield ask('the first is over', overCall({ status: 'ended' }), second(), state('ended'))
  const { callerPlace, caller, callee } = second()
  const rings = ringingCall({ callUuid: secondUuid, callerPlace, caller, callee })
  yield ask('the second rings', first(), rings, state('ringing', { field }))
  const elsewhere = { ...asker, sessionId: 'b-2' }
  const seat = heldBy(elsewhere)
  yield ask('no place', first({ [placeName(one)]: seat }), second(), { code: 'CALL_NOT_PARTICIPANT' })
  const noSecond = { code: 'CALL_NOT_PARTICIPANT', details: { field } }
  yield ask('no place in the second', first(), second({ [placeName(two)]: seat }), noSecond)
  yield* ofOthers(by, ask)
}

type Ask = (
  name: string,
  a: Call | undefined,
  b: LiveCall | undefined,
  refused?: Situation['refused'],
  more?: object,
) => Situation

function* ofOthers([one, two]: readonly [Side, Side], ask: Ask): Generator<Situation> {
  const first = (changes: Partial<AnsweredCall> = {}) => callWith(alices, one, firstUuid, changes)
  const second = (changes: Partial<AnsweredCall> = {}) => callWith(carols, two, secondUuid, changes)
  const [left, right] = [placeName(otherOf(one)), placeName(otherOf(two))]
  yield ask('the one is away', first({ [left]: leftBy(alices, now - 1_000) }), second())
  yield ask('the other is away', first(), second({ [right]: leftBy(carols, now - 1_000, true, true) }))
  const closed = { [left]: leftBy(alices, now - 2_000, true, true) }
  yield ask('both have closed', first(closed), second({ [right]: leftBy(carols, now - 1_000, true, true) }))
  yield ask(
    'the one was told to come back',
    first({ [left]: leftBy(alices, now - 1_000, true, false, 6_000) }),
    second(),
  )
  const deaf = { code: 'NOT_SUPPORTED_BY_PEER' }
  yield ask('the one cannot', first({ [left]: heldBy(actorOf(alice, 'a-1')) }), second(), deaf)
  const takes = heldBy({ ...carols, can: ['take'] })
  yield ask('the other cannot', first(), second({ [right]: takes }), { ...deaf, details: { field } })
  const transferring = { to: uuidOf(94), by: 'caller' } as const
  yield ask('the first rings elsewhere', first({ transferring }), second(), state('accepted'))
  yield ask('the second does', first(), second({ transferring, status: 'connected' }), state('connected', { field }))
  yield ask('with the same one', first(), callWith(alices, two, secondUuid), toSelf(alice))
  const by = { userId: 'erin', role: 'agent', displayName: null }
  const from = { from: uuidOf(95), by, firstStartedAt: start - 7, secondStartedAt: start - 9 }
  yield ask('of transfers', first({ transferred: from }), second({ transferred: from }))
  const { secondStartedAt: _, ...blind } = from
  yield ask('of blind transfers', first({ transferred: blind }), second({ transferred: blind }))
  for (const call of [between(ringingCall(), carol, alice, 96), between(answeredCall(), alice, carol, 97)]) {
    yield ask(`${call.status} between`, first(), second(), state('accepted'), { live: [call, first(), second()] })
  }
  const rate = { ok: false, limit: 'pair_invites', retryAfterMs: 1_234 } as const
  const limited = { code: 'RATE_LIMITED', details: { retry_after_ms: 1_234, limit: 'pair_invites' } }
  yield ask('limited', first(), second(), limited, { invite: inviteFor({ rate }) })
  const verdict = { is: 'refused', reason: 'closed' } as const
  const refused = { code: 'CALL_REFUSED', details: { reason: 'closed' } }
  yield ask('refused', first(), second(), refused, { invite: inviteFor({ verdict }) })
  yield ask('allowed', first(), second(), undefined, { invite: inviteFor({ verdict: { is: 'allowed' } }) })
  yield ask('with metadata', first(), second(), undefined, {
    invite: inviteFor({ metadata: { a: 1 }, busy: 'reject' }),
  })
}

/** Alice and carol are connected whichever side bob has in each call. */
export function checkJoins(machine: Machine): number {
  const { decideJoin } = strict(machine)
  let cases = 0
  for (const one of ['caller', 'callee'] as const) {
    for (const two of ['caller', 'callee'] as const) {
      for (const { name, first, live, asker, invite, refused, of } of situations([one, two])) {
        const decision = decideJoin(first, live, { asker, invite, to: secondUuid }, now, durations)
        const steps = refused === undefined ? joined(of, invite) : []
        const expected =
          refused === undefined
            ? { ok: true, call: steps[0]?.call, steps }
            : { ok: false, code: refused.code, details: refused.details ?? {}, steps: [] }
        const wrong = difference(decision, expected)
        if (wrong !== undefined) violated('XFER1', `${name}\n${wrong}`)
        cases++
      }
    }
  }
  return cases + checkSelf(machine)
}

/** A call cannot be connected with itself. */
function checkSelf(machine: Machine): number {
  const first = callWith(alices, 'callee', firstUuid)
  const command = { asker, invite: inviteFor(), to: firstUuid }
  const decision = strict(machine).decideJoin(first, [first], command, now, durations)
  if (decision.ok || decision.code !== 'CALL_TO_SELF') violated('XFER1', 'a call was connected with itself')
  return 1
}
