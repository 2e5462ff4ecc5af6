import type { EndReasonOf } from '@ringwire/protocol/end-reasons'
import type { LimitName } from '@ringwire/protocol/errors'
import { inviteLimits } from '@ringwire/protocol/events/call'
import {
  type AnsweredCall,
  type Call,
  type CallGroup,
  isLive,
  type LiveCall,
  type OverCall,
  type Participant,
  type RingingCall,
  sideOf,
  takesPartIn,
} from './call.ts'
import { type Acceptance, type Actor, byOf, type Refusal, refuse, refuseSelf, unchanged } from './command.ts'
import { type Notice, ringingData, type Step } from './effects.ts'
import { over } from './ending.ts'
import { withLinked } from './linked.ts'
import { maySpeak, noteMoves, placeFor, seat } from './places.ts'
import { firstTurn, withoutTurns } from './turns.ts'

/** The verdict of the limits that an invite counts for; the one that refuses it is named [INV8]. */
export type InviteRate =
  | { readonly ok: true }
  | { readonly ok: false; readonly limit: 'invites' | 'pair_invites'; readonly retryAfterMs: number }

/** A `call.invite` with everything that its decision depends on. */
export interface InviteCommand {
  readonly actor: Actor
  /** The user_id is blank where a group of the role is called. */
  readonly callee: { readonly userId: string; readonly role: string }
  /** The group that is called [GROUP1]. */
  readonly group?: CalledGroup
  /** The client's call_uuid in lower case, or a new one. */
  readonly callUuid: string
  /** Used instead where the client's belongs to strangers: nothing about their call may show. */
  readonly freshUuid: string
  readonly contextType: string
  readonly contextId: string
  readonly callType: string
  readonly ringTimeoutMs: number
  readonly metadata: Readonly<Record<string, unknown>> | null
  /** It counts only for an invite that is not a repeat. */
  readonly rate: InviteRate
  readonly maxRinging: number
  readonly busy: 'allow' | 'reject'
  /** The decision of the product's backend, if it decides on invites [HOOK5]. */
  readonly verdict?: InviteVerdict
  /** Then: the fingerprint of whom the client calls. */
  readonly askedFor?: string
  /** The same, if the backend chose another `callee`. */
  readonly redirectedFrom?: string
}

/** A group, as it was when it was called. */
export interface CalledGroup {
  readonly name: string
  /** Those members who can be rung: without the caller, and without members in a call. */
  readonly members: readonly string[]
  /** Somebody is a member, and all members are in calls. */
  readonly isBusy: boolean
  /** If the members ring one after another: how long each of them, in ms. Then members in a call are among them. */
  readonly memberRingMs?: number
}

/** `unasked`: the invite seemed to be a repeat or over a limit, so the backend was not asked. `withdrawn`: its caller gave it up. */
export type InviteVerdict =
  | { readonly is: 'refused'; readonly reason: string }
  | { readonly is: 'allowed' | 'withdrawn' | 'unasked' }

export type InviteAcceptance = Acceptance & {
  /** False where the reply names a call that was there before [INV3, INV7]. */
  readonly created: boolean
  /** Whether the callee is in a call with somebody else [INV2]. */
  readonly calleeBusy: boolean
}
export type InviteDecision = InviteAcceptance | Refusal

/** What a token says about inviting; checked before anything about the callee can show [INV1]. */
export interface InviteRights {
  readonly allowedActions: readonly string[]
  readonly allowedPeerRoles: readonly string[]
}

const callTypePattern = new RegExp(inviteLimits.callTypePattern)

/** The checks that need no call: action, role, self, type, in this order [INV1]. */
export function checkInvite(
  rights: InviteRights,
  caller: Participant,
  callee: { userId: string; role: string },
  callType: unknown,
): Refusal | undefined {
  if (!rights.allowedActions.includes('call.invite')) return refuse('ACTION_NOT_ALLOWED')
  if (!rights.allowedPeerRoles.includes(callee.role)) return refuse('CALL_PEER_ROLE_NOT_ALLOWED')
  if (callee.userId === caller.userId && callee.role === caller.role) return refuseSelf(callee)
  if (callType != null && (typeof callType !== 'string' || !callTypePattern.test(callType))) {
    return refuse('CALL_TYPE_INVALID', { field: 'call_type' })
  }
  return undefined
}

/** Decides on an invite: repeat, limits, the backend's verdict, glare, busy, in this order [HOOK5, INV1]. Pure, like `decide`. */
export function decideInvite(
  situation: { readonly sameUuid: LiveCall | OverCall | undefined; readonly live: readonly LiveCall[] },
  command: InviteCommand,
  now: number,
): InviteDecision {
  const { actor } = command
  const caller = actor.participant
  const callee: Participant = { product: caller.product, ...command.callee }
  const calleeBusy = command.group?.isBusy ?? situation.live.some((call) => keepsBusy(call, callee, caller))

  let callUuid = command.callUuid
  const { sameUuid } = situation
  if (sameUuid !== undefined) {
    if (sideOf(sameUuid, caller) === 'caller') {
      if (!wasInvited(sameUuid, command)) return refuse('CALL_ID_CONFLICT')
      const isOld = !isLive(sameUuid) && now - sameUuid.endedAt > repeatMs
      if (isOld) return refuse('CALL_ID_CONFLICT', { status: sameUuid.status })
      return repeat(sameUuid, actor, calleeBusy, now)
    }
    callUuid = command.freshUuid
  }

  const between = situation.live.filter(
    (call) => sideOf(call, caller) !== undefined && isBetween(call, callee, command),
  )
  const waiting = between.find((call) => call.status === 'ringing' && sideOf(call, caller) === 'caller')
  if (waiting !== undefined && isSameWish(waiting, command)) {
    const place = waiting.callerPlace
    const isLeft = place.state === 'vacant' && maySpeak(place, actor, now)
    if (isLeft || place.sessionId === actor.sessionId) return repeat(waiting, actor, calleeBusy, now)
  }
  const steps = between.flatMap((call) => withLinked(call, endStale(call, actor, now), situation.live, now))

  const others = situation.live.filter((call) => !steps.some((step) => step.call.callUuid === call.callUuid))
  if (!command.rate.ok) return limited(command.rate.limit, command.rate.retryAfterMs)
  const ringing = others.filter(
    (call): call is RingingCall =>
      call.status === 'ringing' && call.transferred === undefined && sideOf(call, caller) === 'caller',
  )
  if (ringing.length >= command.maxRinging) {
    const freeAt = Math.min(...ringing.map((call) => call.ringExpiresAt))
    return limited('ringing', Math.max(0, freeAt - now))
  }
  const unwanted = unwantedStep(command, callUuid, now)
  if (unwanted !== undefined) return unwanted
  const crossing = others.find(
    (call) => call.status === 'ringing' && sideOf(call, caller) === 'callee' && sideOf(call, callee) === 'caller',
  )
  if (crossing !== undefined) return refuse('CALL_GLARE', { call_uuid: crossing.callUuid })

  if (calleeBusy && command.busy === 'reject') {
    // An invite that is refused ends nothing.
    return refuse('CALLEE_BUSY', {}, [overAtOnce(command, callUuid, now, { status: 'busy', reason: 'busy' })])
  }
  const created = ring(command, callUuid, now)
  return { ok: true, call: created.call, steps: [...steps, created], created: true, calleeBusy }
}

/** Whether the client called this callee with it: a backend may have redirected the call. */
function wasInvited(call: LiveCall | OverCall, command: InviteCommand): boolean {
  const { askedFor } = command
  return goesTo(call, command) || (askedFor !== undefined && call.redirectedFrom === askedFor)
}

/** Whether a call was made to the same callee, or to the same group, whichever member has answered. */
function goesTo({ callee, group }: Call, command: InviteCommand): boolean {
  if (callee.role !== command.callee.role || group?.name !== command.group?.name) return false
  return group !== undefined || callee.userId === command.callee.userId
}

/**
 * Whether an invite may end the call: with a person all calls of the two, and with a group a call that rings there [INV6,
 * INV7].
 */
function isBetween(call: LiveCall, callee: Participant, command: InviteCommand): boolean {
  if (command.group === undefined) return sideOf(call, callee) !== undefined
  return call.status === 'ringing' && goesTo(call, command)
}

/** A transfer is refused as an invite is, and leaves no record: its asker is still in the first call [HOOK5, XFER1]. */
export function refuseVerdict({ verdict }: InviteCommand): Refusal | undefined {
  return verdict?.is === 'refused' ? refuse('CALL_REFUSED', { reason: verdict.reason }) : undefined
}

/** The step of an invite that must not ring; undefined if it may. It ends nothing [HOOK5]. */
function unwantedStep(command: InviteCommand, callUuid: string, now: number): InviteDecision | undefined {
  const { verdict } = command
  switch (verdict?.is) {
    case 'refused': {
      const { reason } = verdict
      const step = overAtOnce(command, callUuid, now, { status: 'rejected', reason })
      return refuse('CALL_REFUSED', { reason }, [step])
    }
    case 'withdrawn': {
      const reason: EndReasonOf<'cancelled'> = 'caller_cancelled'
      const step = overAtOnce(command, callUuid, now, { status: 'cancelled', reason })
      return { ok: true, call: step.call, steps: [step], created: true, calleeBusy: false }
    }
    case 'unasked':
      // The obstacle is gone by now: the client may ask again.
      return limited('ringing', 0)
    default:
      return undefined
  }
}

/** How long after the end of a call an invite with its `call_uuid` counts as a repeat [UUID1], in milliseconds. */
export const repeatMs = 120_000

function limited(limit: LimitName, retryAfterMs: number): Refusal {
  return refuse('RATE_LIMITED', { retry_after_ms: retryAfterMs, limit })
}

/** The same reply again. To repeat an invite is to name the call: it takes or settles the place [INV3, INV7, PLACE2]. */
function repeat(call: LiveCall | OverCall, actor: Actor, calleeBusy: boolean, now: number): InviteAcceptance {
  const speaks = isLive(call) && maySpeak(call.callerPlace, actor, now)
  const seated = speaks ? seat(call, 'caller', call.callerPlace, actor, now) : unchanged(call)
  return { ...noteMoves(call, seated), created: false, calleeBusy }
}

/** The subject and the type of the call: an invite for something else is another call [INV7]. */
function isSameWish(call: LiveCall, { contextType, contextId, callType }: InviteCommand): boolean {
  return call.contextType === contextType && call.contextId === contextId && call.callType === callType
}

/** Ends what a new invite between the two leaves behind [INV6, INV7]. */
function endStale(call: LiveCall, actor: Actor, now: number): readonly Step[] {
  const inviterIsCaller = sideOf(call, actor.participant) === 'caller'
  // The inviting session hears of the end of its own older call, too: nobody hung that up, and its client may still show it.
  if (call.status === 'ringing') {
    if (inviterIsCaller) return over(call, { status: 'cancelled', reason: 'superseded' }, byOf(actor), now, null).steps
    if (call.callerPlace.state !== 'vacant') return []
    return over(call, { status: 'cancelled', reason: 'caller_lost' }, null, now).steps
  }
  const inviterPlace = inviterIsCaller ? call.callerPlace : call.calleePlace
  // A device that came back after a crash got the place by connecting; by calling again it says that it is not in it.
  const isLeft = !inviterPlace.settled && inviterPlace.sessionId === actor.sessionId
  const isStale = inviterPlace.state === 'vacant' || isLeft
  return isStale ? over(call, { status: 'ended', reason: 'superseded' }, byOf(actor), now, null).steps : []
}

/** The callee in an answered call, or calling: with anybody but this peer [INV5]. Other calls are the caller's own. */
function keepsBusy(call: LiveCall, callee: Participant, caller: Participant): boolean {
  return sideOf(call, caller) === undefined && takesPartIn(call, callee)
}

/** The state in which every call begins; the actor's session has the caller's place. */
export function newCall(command: InviteCommand, callUuid: string, now: number) {
  const { actor, callee, redirectedFrom, group } = command
  return {
    product: actor.participant.product,
    callUuid,
    version: 1,
    caller: { userId: actor.participant.userId, role: actor.participant.role, displayName: actor.displayName },
    callee: { userId: callee.userId, role: callee.role, displayName: null },
    contextType: command.contextType,
    contextId: command.contextId,
    callType: command.callType,
    metadata: command.metadata,
    ...(redirectedFrom !== undefined && { redirectedFrom }),
    ...(group !== undefined && { group: groupOf(group, now) }),
    startedAt: now,
    ringTimeoutMs: command.ringTimeoutMs,
    ringExpiresAt: now + command.ringTimeoutMs,
    callerPlace: placeFor(actor, true),
  } as const satisfies Partial<AnsweredCall>
}

function groupOf({ name, members, memberRingMs }: CalledGroup, now: number): CallGroup {
  const group = { name, members, declined: [] }
  return memberRingMs === undefined ? group : { ...group, turns: firstTurn(memberRingMs, now) }
}

function ring(command: InviteCommand, callUuid: string, now: number): Step {
  const call: RingingCall = { ...newCall(command, callUuid, now), status: 'ringing', silenced: [] }
  return { call, event: { type: 'invited', at: now, by: byOf(command.actor), notices: firstRings(call, now) } }
}

/** The first rings of a new call; a call that rings in turn rings its first turn. */
export function firstRings(call: RingingCall, now: number): readonly Notice[] {
  if (call.group?.turns !== undefined) return []
  return [{ to: { place: 'rung', except: [] }, event: 'call.ringing', data: ringingData(call, now) }]
}

/** Members at whom it would have rung in turn are not kept. */
function neverRung<C extends Pick<Call, 'group'>>(call: C): C {
  return call.group === undefined ? call : { ...call, group: withoutTurns(call.group) }
}

type AtOnce =
  | { readonly status: 'busy'; readonly reason: EndReasonOf<'busy'> }
  | { readonly status: 'rejected' | 'cancelled'; readonly reason: string }

/** A call that never rings. The backend is nobody in it: what it refused, nobody in the call did. */
function overAtOnce(command: InviteCommand, callUuid: string, now: number, { status, reason }: AtOnce): Step {
  const call: OverCall = {
    ...neverRung(newCall(command, callUuid, now)),
    status,
    calleePlace: null,
    acceptedAt: null,
    connectedAt: null,
    endedAt: now,
    endReason: reason,
  }
  const by = status === 'rejected' ? null : byOf(command.actor)
  return { call, event: { type: status, at: now, by, notices: [] } }
}
