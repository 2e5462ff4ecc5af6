import { uuidOf } from '../../src/call/call.fixture.ts'
import { isAnswered, isLive, type LiveCall } from '../../src/call/call.ts'
import type { Actor } from '../../src/call/command.ts'
import type { InviteCommand, InviteDecision } from '../../src/call/invite.ts'
import { cause, commit } from './commit.ts'
import { type Machine, violated } from './machine.ts'
import { type Draft, mayHave, newUuid, rung, type Setup, seatIn, type TrackedCall, type WorldEvent } from './world.ts'

type InviteEvent = Extract<WorldEvent, { what: 'invite' }>

/** An invite, with the situation as the store reads it: all live calls of both. */
export function applyInvite(machine: Machine, setup: Setup, draft: Draft, event: InviteEvent): boolean {
  const { actor, person } = draft.clients[event.client]!
  if (actor === undefined) return violated('world', 'a session that is not there invited')
  const callee = setup.people[event.to]!
  const live = draft.calls.flatMap(({ call, caller, callee: other }) =>
    isLive(call) && [caller, other].some((each) => each === person || each === event.to) ? [call] : [],
  )
  const named = event.uuid === 'new' ? undefined : draft.calls[event.uuid]
  const command: InviteCommand = {
    actor,
    callee: { userId: callee.userId, role: callee.role },
    callUuid: named?.call.callUuid ?? uuidOf(draft.callsMade + 1),
    freshUuid: uuidOf(draft.callsMade + 2),
    contextType: 'order',
    contextId: '1',
    callType: event.isVideo ? 'video' : 'audio',
    ringTimeoutMs: setup.ringTimeoutMs,
    metadata: null,
    rate: event.rateExceeded ? { ok: false, limit: 'invites', retryAfterMs: 1_000 } : { ok: true },
    maxRinging: setup.maxRinging,
    busy: event.busy ?? setup.busy,
  }
  const decision = machine.decideInvite({ sameUuid: named?.call, live }, command, draft.now)
  checkInvite({ setup, draft, event, person, live, named, command }, decision)
  if (decision.steps.length === 0) return false
  newUuid(draft)
  newUuid(draft)
  commit(setup, draft, decision.steps, { ...cause(draft, 'invite', event.client), callType: command.callType })
  return true
}

interface Asked {
  readonly setup: Setup
  readonly draft: Draft
  readonly event: InviteEvent
  readonly person: number
  readonly live: readonly LiveCall[]
  readonly named: TrackedCall | undefined
  readonly command: InviteCommand
}

/** What an invite must be answered, by the rules and the calls there are. */
function checkInvite(asked: Asked, decision: InviteDecision) {
  const { event, person, named, draft, command } = asked
  const mine = command.actor.sessionId
  if (named !== undefined && named.caller === person) {
    const isOld = !isLive(named.call) && draft.now - named.call.endedAt > 120_000
    if (isOld || named.callee !== event.to) return mustRefuse(decision, 'CALL_ID_CONFLICT')
    return mustRepeat(decision, named, command.actor, 'INV3', draft.now)
  }
  const calls = draft.calls.filter(({ call }) => isLive(call))
  const waiting = calls.find(
    (each) => each.call.status === 'ringing' && each.caller === person && each.callee === event.to,
  )
  const left =
    waiting?.call.callerPlace.state === 'vacant' && mayHave(waiting.call.callerPlace, command.actor, draft.now)
  const isSame = waiting?.call.callType === command.callType
  if (waiting !== undefined && isSame && (left || waiting.call.callerPlace.sessionId === mine)) {
    return mustRepeat(decision, waiting, command.actor, 'INV7', draft.now)
  }
  const ringing = calls.filter((each) => each.call.status === 'ringing' && each.caller === person && each !== waiting)
  if (!command.rate.ok || ringing.length >= command.maxRinging) return mustRefuse(decision, 'RATE_LIMITED')
  const crossing = calls.find(
    (each) => each.call.status === 'ringing' && each.caller === event.to && each.callee === person,
  )
  if (crossing?.call.callerPlace.state === 'held') return checkGlare(asked, decision, crossing)
  const engaged = calls.some((each) => keepsBusy(each, event.to, person))
  if (engaged && command.busy === 'reject') return mustRefuse(decision, 'CALLEE_BUSY')
  checkRings(asked, decision, engaged)
}

function mustRefuse(decision: InviteDecision, code: string) {
  if (decision.ok || decision.code !== code) return violated('INV1', `an invite is not refused with ${code}`)
  if (code === 'CALLEE_BUSY') {
    if (decision.steps.at(-1)?.call.status !== 'busy') violated('INV5', 'no record of a busy callee')
  } else if (decision.steps.length > 0) violated('INV1', `an invite refused with ${code} changed something`)
}

function mustRepeat(decision: InviteDecision, tracked: TrackedCall, actor: Actor, rule: string, now: number) {
  if (!decision.ok) return violated(rule, `a repeated invite is refused: ${decision.code}`)
  if (decision.created || decision.call.callUuid !== tracked.call.callUuid)
    violated(rule, 'a repeated invite made a call')
  if (decision.call.status !== tracked.call.status) violated(rule, 'a repeated invite changed the status')
  const { callerPlace: was } = tracked.call
  const { callerPlace: is } = decision.call
  const { sessionId: mine, node } = actor
  const hears = isLive(tracked.call) && mayHave(was, actor, now)
  if (hears && !(is.state === 'held' && is.settled && is.sessionId === mine && is.node === node))
    violated('PLACE2', 'it did not take the place')
}

function checkGlare({ event }: Asked, decision: InviteDecision, crossing: TrackedCall) {
  mustRefuse(decision, 'CALL_GLARE')
  if (!decision.ok && decision.details.call_uuid !== crossing.call.callUuid)
    violated('INV6', 'glare names another call')
  if (!(crossing.told[event.client]! & rung)) violated('INV6', 'the waiting call did not ring at who is refused')
}

function keepsBusy({ call, caller, callee }: TrackedCall, person: number, inviter: number): boolean {
  if ((caller !== person && callee !== person) || caller === inviter || callee === inviter) return false
  return isAnswered(call) || caller === person
}

function checkRings({ draft, event, person, named, command }: Asked, decision: InviteDecision, engaged: boolean) {
  if (!decision.ok) return violated('INV1', `an invite is refused: ${decision.code}`)
  const { call } = decision
  if (!decision.created || call.status !== 'ringing') violated('INV1', 'an invite did not ring')
  if (decision.calleeBusy !== engaged) violated('INV5', 'callee_busy is wrong')
  if (call.callUuid !== (named === undefined ? command.callUuid : command.freshUuid))
    violated('INV3', 'the wrong call_uuid')
  if (decision.steps.at(-1)?.call !== call) violated('INV7', 'what ends does not end before the new call')
  for (const { call: old, caller, callee } of draft.calls) {
    if (!isLive(old) || decision.steps.some((step) => step.call.callUuid === old.callUuid)) continue
    const side = caller === event.to && callee === person ? 'callee' : 'caller'
    if (side === 'caller' && !(caller === person && callee === event.to)) continue
    if (isAnswered(old) && seatIn(old, side)?.state === 'vacant') {
      violated('INV7', 'an answered call whose inviter is gone goes on')
    }
  }
}
