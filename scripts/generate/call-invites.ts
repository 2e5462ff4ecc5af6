/** Every situation of an invite for the printed table. Every answer is what `checkInvite` and `decideInvite` say. */
import type { LiveCall, Participant } from '../../packages/server/src/call/call.ts'
import type { Actor, Decision } from '../../packages/server/src/call/command.ts'
import { decide } from '../../packages/server/src/call/decide.ts'
import { checkInvite, decideInvite, type InviteCommand } from '../../packages/server/src/call/invite.ts'
import {
  answeredBy,
  defaultDurations,
  inviteOf,
  must,
  participants,
  ringingCall,
  session,
  start,
} from './call-situations.ts'

export interface InviteRow {
  readonly situation: string
  readonly decision: Decision
}

const uuid = (n: number) => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`
const now = start + 10_000
const [ann, annAgain] = [session(participants.caller, 1), session(participants.caller, 2)]
const ben = session(participants.callee, 1)
const eve = session(participants.other, 1)

const rights = {
  allowedActions: ['call.invite'],
  allowedPeerRoles: [participants.callee.role, participants.caller.role],
}

/** The checks that need no call. */
function checks(): InviteRow[] {
  const callee = participants.callee
  const run = (situation: string, given: typeof rights, to: Participant, callType: unknown): InviteRow => {
    const refusal = checkInvite(given, participants.caller, to, callType)
    if (refusal === undefined) throw new Error(`${situation} is allowed`)
    return { situation, decision: refusal }
  }
  return [
    run('the token does not permit call.invite', { ...rights, allowedActions: [] }, callee, undefined),
    run(
      "callee_role is not among the token's allowed_peer_roles",
      { ...rights, allowedPeerRoles: [] },
      callee,
      undefined,
    ),
    run('the callee is the caller', rights, participants.caller, undefined),
    run('call_type does not match its pattern', rights, callee, 'NO'),
  ]
}

function vacated(call: LiveCall, actor: Actor): LiveCall {
  const decision = decide(
    call,
    { type: 'lose', sessionId: actor.sessionId, node: actor.node },
    start + 5000,
    defaultDurations(),
  )
  return must(decision, (it): it is LiveCall => it.status !== 'ended')
}

/** Situations between the two, and what else the callee does. */
function situations(): InviteRow[] {
  const invite = inviteOf(ann, participants.callee, uuid(1))
  const run = (
    situation: string,
    live: LiveCall[],
    change: Partial<InviteCommand> = {},
    same?: LiveCall,
  ): InviteRow => ({
    situation,
    decision: decideInvite({ sameUuid: same, live }, { ...invite, ...change }, now),
  })
  const own = ringingCall(ann, participants.callee, uuid(2))
  const crossing = ringingCall(ben, participants.caller, uuid(3))
  const answered = answeredBy(own, ben)
  const elsewhere = answeredBy(ringingCall(eve, participants.callee, uuid(4)), ben)
  const otherCallee = ringingCall(ann, participants.other, uuid(1))
  const strangers = ringingCall(eve, participants.callee, uuid(1))
  const five = [5, 6, 7, 8, 9].map((n) => ringingCall(ann, { ...participants.other, userId: `person-${n}` }, uuid(n)))
  return [
    run('no call between the two', []),
    run('the call_uuid names this very call, which rings', [own], { callUuid: own.callUuid }, own),
    run('the call_uuid names this very call, which is answered', [answered], { callUuid: own.callUuid }, answered),
    run('the call_uuid names an earlier call of the caller with another callee', [], {}, otherCallee),
    run("the call_uuid names strangers' call", [], {}, strangers),
    run('over the invite limits', [], { rate: { ok: false, limit: 'invites', retryAfterMs: 1200 } }),
    run('five calls of the caller ring', five),
    run('the backend refuses it', [], { verdict: { is: 'refused', reason: 'refused' } }),
    run('the backend gives no valid answer in time', [], { verdict: { is: 'refused', reason: 'unavailable' } }),
    run('its caller hangs up before the backend has decided', [], { verdict: { is: 'withdrawn' } }),
    run('the backend refuses it, and the callee is calling the caller', [crossing], {
      verdict: { is: 'refused', reason: 'refused' },
    }),
    run('a call to the same callee rings, by the same session', [own]),
    run('a call to the same callee rings, the inviting place being vacant', [vacated(own, ann)], { actor: annAgain }),
    run('a call to the same callee rings, by another session', [own], { actor: annAgain }),
    run('the callee is calling the caller', [crossing]),
    run("the callee is calling the caller, the callee's place being vacant", [vacated(crossing, ben)]),
    run('an answered call between the two', [answered]),
    run("an answered call between the two, the inviter's place being vacant", [vacated(answered, ann)], {
      actor: annAgain,
    }),
    run('the callee is in a call with somebody else', [elsewhere]),
    run('the same, and the product is set to reject', [elsewhere], { busy: 'reject' }),
  ]
}

export function inviteRows(): InviteRow[] {
  return [...checks(), ...situations()]
}
