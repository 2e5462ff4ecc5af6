import { type ErrorBody, errorBody } from '@ringwire/protocol/errors'
import type { CallTransfer, CallTransferStarted } from '@ringwire/protocol/events/call'
import { type AnsweredCall, type CallRef, otherSide, type Participant, placeOf, type Side } from '../call/call.ts'
import type { Decision } from '../call/command.ts'
import { checkInvite, type InviteCommand } from '../call/invite.ts'
import { checkJoin, decideJoin, leftOf } from '../call/join.ts'
import { checkTransfer, decideTransfer } from '../call/transfer.ts'
import type { InviteSituation } from '../ports/call-store.ts'
import type { ProductSettings } from '../ports/product-store.ts'
import { countedAs, createFindGroup, type Named } from './called-groups.ts'
import { type InvitesOptions, roleRefused } from './invites.ts'
import { type ClientSession, errorOf, type Outcome, type Waiter } from './request.ts'
import type { TransitionsOptions } from './transitions.ts'

export type Transfer = (
  session: ClientSession,
  data: CallTransfer,
  waiter?: Waiter,
) => Promise<Outcome<CallTransferStarted>>

export type TransfersOptions = Pick<TransitionsOptions, 'uptime' | 'durations'> &
  Pick<
    InvitesOptions,
    | 'store'
    | 'groups'
    | 'products'
    | 'transitions'
    | 'leavingSince'
    | 'limits'
    | 'withQuality'
    | 'askBackend'
    | 'clock'
    | 'ringTimeoutMs'
    | 'newUuid'
  >

/** How a call is transferred: the other side goes on from where it is, with somebody who is rung or in a second call [XFER1]. */
export function createTransfer(options: TransfersOptions): Transfer {
  const { store, uptime } = options
  const settle = createSettleTransfer(options)
  const findGroup = createFindGroup(options)

  async function ring(session: ClientSession, data: CallTransfer, waiter?: Waiter) {
    const named = readTarget(data)
    const target: Participant = { product: session.participant.product, ...named.callee }
    const unwanted = rightsRefused(session, target)
    if (unwanted !== undefined) return refused(unwanted)
    const ref = refOf(session, data.call_uuid)
    const own = checkTransfer(await store.load(ref), session, target)
    if ('ok' in own) return refused(errorOf(own))
    const given = inviteOf(own.call, otherSide(own.side), target, data.metadata)
    const called = await findGroup(given.actor.participant, named)
    if (called === 'unknown') return refused(errorBody('GROUP_NOT_FOUND'))
    const invite = called === undefined ? given : { ...given, group: called.group }
    const counted = countedAs(named, target.product)
    return settle(
      { session, ref, waiter, counted, invite, ringMs: called?.ringMs, mayRedirect: true },
      ({ sameUuid, live }, command, now) => decideTransfer(sameUuid, live, { asker: session, invite: command }, now),
    )
  }

  /** Connects the other sides of two calls of the session. */
  async function join(session: ClientSession, data: CallTransfer, named: string, waiter?: Waiter) {
    const [ref, second] = [refOf(session, data.call_uuid), refOf(session, named)]
    const pair = checkJoin(await store.load(ref), await store.load(second), session)
    if ('ok' in pair) return refused(errorOf(pair))
    const target = leftOf(pair)[1]
    const unwanted = rightsRefused(session, target)
    if (unwanted !== undefined) return refused(unwanted)
    const invite = inviteOf(pair.first, otherSide(pair.sides[0]), target, data.metadata)
    const durations = { ...options.durations, outages: uptime.outages() }
    return settle(
      { session, ref, waiter, counted: target, invite, ringMs: undefined, mayRedirect: false },
      ({ sameUuid, live }, command, now) =>
        decideJoin(sameUuid, live, { asker: session, invite: command, to: second.callUuid }, now, durations),
    )
  }

  return (session, data, waiter) =>
    data.to_call_uuid == null ? ring(session, data, waiter) : join(session, data, data.to_call_uuid, waiter)
}

export const refused = (error: ErrorBody) => ({ ok: false, error }) as const

function refOf({ participant: { product } }: ClientSession, callUuid: string): CallRef {
  return { product, callUuid: callUuid.toLowerCase() }
}

/** What the token of the asker does not permit. */
function rightsRefused(session: ClientSession, target: Participant): ErrorBody | undefined {
  const refusal = checkInvite(session, session.participant, target, null)
  if (refusal === undefined) return undefined
  return refusal.code === 'CALL_PEER_ROLE_NOT_ALLOWED' ? roleRefused(target, session) : errorOf(refusal)
}

/** Whom the request names. The parser of messages sees to it that exactly one is named, with its role. */
function readTarget({ to_role, to_user_id, to_group }: CallTransfer): Named {
  const role = to_role ?? ''
  return to_group == null
    ? { callee: { userId: to_user_id ?? '', role }, group: undefined }
    : { callee: { userId: '', role }, group: to_group }
}

export type Given = Omit<InviteCommand, 'rate' | 'ringTimeoutMs' | 'callUuid' | 'freshUuid' | 'busy' | 'maxRinging'>

/** The invite that a transfer amounts to: its caller is the side that is left, at the session that has its place. */
export function inviteOf(
  first: AnsweredCall,
  left: Side,
  { userId, role }: Participant,
  metadata: CallTransfer['metadata'],
): Given {
  const { product, contextType, contextId, callType } = first
  const { sessionId, deviceId, node } = placeOf(first, left) ?? first.callerPlace
  const { displayName, ...who } = first[left]
  return {
    actor: { participant: { product, ...who }, sessionId, deviceId, node, displayName: displayName ?? '' },
    callee: { userId, role },
    ...{ contextType, contextId, callType },
    metadata: metadata ?? first.metadata,
  }
}

/** A transfer that the asker's token permits. */
interface Asked {
  readonly session: ClientSession
  readonly ref: CallRef
  readonly waiter: Waiter | undefined
  /** For whom it counts [INV8]. */
  readonly counted: Participant
  readonly invite: Given
  /** The longest ring of the group that is called, in ms. */
  readonly ringMs: number | undefined
  readonly mayRedirect: boolean
}

/** Asks the limits and the backend, and commits what is decided. */
function createSettleTransfer(options: TransfersOptions) {
  const { products, limits, askBackend, clock, ringTimeoutMs, newUuid } = options
  const commitTransfer = createCommitTransfer(options)

  /** As with an invite, what leaves no call behind does not count [INV8]. */
  async function refund({ session, counted }: Asked, { rate }: InviteCommand): Promise<void> {
    if (rate.ok) await limits.refundInvite(session.participant, counted)
  }

  return async function settle(asked: Asked, decide: Decide): Promise<Outcome<CallTransferStarted>> {
    const { session, ref, waiter, counted, mayRedirect } = asked
    const settings = await products.settings(ref.product)
    const rate = await limits.invite(session.participant, counted)
    const ringMsFor = (groupMs: number | undefined) => groupMs ?? settings.ringTimeoutMs ?? ringTimeoutMs
    const given = withSettings(asked.invite, settings, rate, newUuid(), ringMsFor(asked.ringMs))
    const how = { mayRedirect, ringMsFor }
    const invite = await askBackend({ session, command: given, named: undefined, waiter, ...how }, settings)
    const isTokenOver = session.expiresAt !== undefined && clock.now() >= session.expiresAt
    const outcome = isTokenOver
      ? refused(errorBody('AUTH_TOKEN_INVALID'))
      : await commitTransfer(ref, invite, (situation, now) => decide(situation, invite, now))
    if (!outcome.ok) await refund(asked, invite)
    return outcome
  }
}

type Decide = (situation: InviteSituation, invite: InviteCommand, now: number) => Decision

/** Commits what is decided on a transfer, and hands it on. */
export function createCommitTransfer({ store, transitions, leavingSince, withQuality, clock }: TransfersOptions) {
  const { commit, handOn } = transitions

  return async (
    ref: CallRef,
    { actor, callee: { userId, role }, group }: InviteCommand,
    decide: (situation: InviteSituation, now: number) => Decision,
  ): Promise<Outcome<CallTransferStarted>> => {
    const caller = actor.participant
    // Other calls of a group's members do not concern its caller.
    const callee = group === undefined ? { product: ref.product, userId, role } : caller
    const decision = await withQuality<Decision>((seen) =>
      commit(store.invite(caller, callee, ref.callUuid, (situation) => seen(decide(situation, clock.now())))),
    )
    if (!decision.ok) return refused(errorOf(decision))
    const handedOn = leavingSince(
      decision.call,
      handOn(decision).then(() => {}),
    )
    return { ok: true, value: { call_uuid: ref.callUuid, new_call_uuid: decision.call.callUuid }, handedOn }
  }
}

export function withSettings(
  given: Given,
  { busy }: ProductSettings,
  rate: InviteCommand['rate'],
  callUuid: string,
  ringTimeoutMs: number,
): InviteCommand {
  return {
    ...given,
    ...{ rate, ringTimeoutMs, busy, callUuid },
    freshUuid: callUuid,
    maxRinging: Number.POSITIVE_INFINITY,
  }
}
