import { type Call, isAnswered, isLive, type LiveCall, type OverCall, type Side } from '../../src/call/call.ts'
import type { Actor, Decision } from '../../src/call/command.ts'
import { violated } from './machine.ts'
import { mayHave, seatIn, type TrackedCall, type Verb } from './world.ts'

/** The answer that a request about a call must get, only by the rules and the state of the call. */
export function checkAnswer(
  tracked: TrackedCall,
  side: Side | undefined,
  actor: Actor,
  verb: Verb,
  reason: string | null,
  decision: Decision,
  now: number,
  rungSessions: readonly string[],
) {
  const { call } = tracked
  if (isLive(call) && decision.ok && !isLive(decision.call)) checkEnding(call, decision.call, verb, reason)
  if (!decision.ok && decision.steps.length > 0) violated('ENV5', `${verb} was refused and changed something`)
  if (decision.ok && (decision.steps.length === 0) !== (decision.call === call)) {
    violated('pure', 'the call of the answer is not the call of the steps')
  }
  if (side === undefined) return refusedWith(decision, verb, 'CALL_NOT_FOUND')
  if (verb === 'take') return checkTaken(call, side, actor, decision)
  if (!isLive(call)) return checkLate(call, side, verb, decision, now)
  if (call.status === 'ringing' && side === 'callee') return checkRung(call, actor, verb, decision, rungSessions)
  checkSeated(call, side, actor, verb, decision, now)
}

/** An answered call goes on at the session that asks, and is otherwise as it was [TAKE1]. */
function checkTaken(call: Call, side: Side, actor: Actor, decision: Decision) {
  if (!isAnswered(call)) return refusedWith(decision, 'take', 'CALL_INVALID_STATE')
  if (!decision.ok || !holds(decision.call, side, actor)) return violated('TAKE1', 'who asked has no place')
  if (decision.call.status !== call.status) violated('call states', `take made the call ${decision.call.status}`)
  if (holds(call, side, actor) !== (decision.steps.length === 0)) violated('TAKE1', 'take of its holder is news')
}

/** Which verb leads to which end, and whose reason counts [END1]. */
function checkEnding(call: LiveCall, over: OverCall, verb: Verb, reason: string | null) {
  const ringing = call.status === 'ringing'
  const rejects = ringing && over.status === 'rejected'
  const cancels = verb === 'cancel' ? call.status !== 'connected' : verb === 'end' && ringing && !rejects
  const status = rejects ? 'rejected' : cancels ? 'cancelled' : 'ended'
  const given = verb === 'busy' ? 'busy' : reason
  const expected = cancels ? 'caller_cancelled' : (given ?? (rejects ? 'declined' : 'hangup'))
  if (over.status !== status || over.endReason !== expected) {
    violated('END1', `${verb} of a call that is ${call.status}: ${over.status}, ${over.endReason}`)
  }
}

function refusedWith(decision: Decision, verb: Verb, code: string) {
  if (decision.ok || decision.code !== code) violated('ENV5', `${verb} is not refused with ${code}`)
}

function checkLate(call: Call, side: Side, verb: Verb, decision: Decision, now: number) {
  if (verb === 'accept')
    return refusedWith(decision, verb, side === 'caller' ? 'CALL_NOT_PARTICIPANT' : 'CALL_INVALID_STATE')
  const late = !isLive(call) && now - call.endedAt >= 60_000
  if (verb === 'relay' && late) return refusedWith(decision, verb, 'CALL_INVALID_STATE')
  if (!decision.ok || decision.steps.length > 0) violated('END1', `${verb} on a call that is over`)
}

function checkRung(call: Call, actor: Actor, verb: Verb, decision: Decision, rungSessions: readonly string[]) {
  if (verb === 'cancel') return refusedWith(decision, verb, 'CALL_NOT_PARTICIPANT')
  if (verb === 'connected') return refusedWith(decision, verb, 'CALL_INVALID_STATE')
  if (!decision.ok) return violated('PLACE1', `${verb} by a session that was rung is refused: ${decision.code}`)
  const { call: next, steps } = decision
  switch (verb) {
    case 'relay':
      if (steps.length > 0) violated('REL2', 'what a rung session relays changes the call')
      return
    case 'accept':
      if (!isAnswered(next) || !holds(next, 'callee', actor)) violated('call states', 'the first accept did not win')
      return
    case 'busy': {
      const before = call.status === 'ringing' ? call.silenced : []
      const said = [...before, actor.sessionId]
      const everybody = rungSessions.every((sessionId) => said.includes(sessionId))
      if (everybody !== (next.status === 'rejected')) violated('call states', `busy of some or all: ${next.status}`)
      if (next.status !== 'ringing') return
      if (!said.every((sessionId) => next.silenced.includes(sessionId))) violated('call states', 'busy is forgotten')
      if (before.includes(actor.sessionId) !== (steps.length === 0))
        violated('call states', 'busy twice is news, or once is not')
      return
    }
    default:
      if (next.status !== 'rejected')
        violated('END1', `${verb} by a session that was rung left the call ${next.status}`)
  }
}

/** It has the place for good, and the place says where it is. */
function holds(call: Call, side: Side, actor: Actor): boolean {
  const place = seatIn(call, side)
  return place?.state === 'held' && place.sessionId === actor.sessionId && place.node === actor.node && place.settled
}

function checkSeated(call: Call, side: Side, actor: Actor, verb: Verb, decision: Decision, now: number) {
  const place = seatIn(call, side)
  const wrongSide = side === 'caller' ? verb === 'accept' || verb === 'reject' || verb === 'busy' : verb === 'cancel'
  if (wrongSide) return refusedWith(decision, verb, 'CALL_NOT_PARTICIPANT')
  if (place !== null && !mayHave(place, actor, now)) {
    return refusedWith(decision, verb, verb === 'accept' ? 'CALL_ALREADY_ANSWERED' : 'CALL_NOT_PARTICIPANT')
  }
  if (verb === 'connected' && call.status === 'ringing') return refusedWith(decision, verb, 'CALL_INVALID_STATE')
  if (!decision.ok) return violated('END1', `${verb} by who may speak is refused: ${decision.code}`)
  const { call: next, steps } = decision
  const nothing = verb === 'accept' || verb === 'relay' || (verb === 'connected' && call.status === 'connected')
  if (nothing && holds(call, side, actor) !== (steps.length === 0)) violated('PLACE2', `${verb} of its holder is news`)
  if (!holds(next, side, actor)) violated('PLACE2', `${verb} did not give its sender the place`)
  if (verb === 'accept' || verb === 'relay') {
    if (next.status !== call.status) violated('call states', `${verb} made the call ${next.status}`)
  } else if (verb === 'connected') {
    if (next.status !== 'connected') violated('call states', `connected made the call ${next.status}`)
  } else if (isLive(next)) violated('END1', `${verb} by who may hang up left the call ${next.status}`)
}
