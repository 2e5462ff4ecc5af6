import { type ErrorBody, errorBody } from '@ringwire/protocol/errors'
import type { CallTransfer, CallTransferStarted } from '@ringwire/protocol/events/call'
import { type AnsweredCall, type CallRef, otherSide, type Participant, placeOf, type Side } from '../call/call.ts'
import type { Decision } from '../call/command.ts'
import { checkInvite, type InviteCommand } from '../call/invite.ts'
import { checkJoin, decideJoin, leftOf } from '../call/join.ts'
import { checkTransfer, decideTransfer } from '../call/transfer.ts'
import type { InviteSituation } from '../ports/call-store.ts'
import type { ProductSettings } from '../ports/product-store.ts'
import { type InvitesOptions, roleRefused } from './invites.ts'
import { type ClientSession, errorOf, type Outcome, type Waiter } from './request.ts'

export type Transfer = (
  session: ClientSession,
  data: CallTransfer,
  waiter?: Waiter,
) => Promise<Outcome<CallTransferStarted>>

type Options = Pick<
  InvitesOptions,
  'store' | 'products' | 'transitions' | 'limits' | 'withQuality' | 'askBackend' | 'clock' | 'ringTimeoutMs' | 'newUuid'
>

/** How a call is transferred: the other side goes on from where it is, with somebody who is rung or in a second call [XFER1]. */
export function createTransfer(options: Options): Transfer {
  const { store } = options
  const settle = createSettleTransfer(options)

  async function ring(session: ClientSession, data: CallTransfer, waiter?: Waiter) {
    const target = targetOf(session.participant, data)
    if ('code' in target) return refused(target)
    const unwanted = rightsRefused(session, target)
    if (unwanted !== undefined) return refused(unwanted)
    const ref = refOf(session, data.call_uuid)
    const own = checkTransfer(await store.load(ref), session, target)
    if ('ok' in own) return refused(errorOf(own))
    const invite = inviteOf(own.call, otherSide(own.side), target, data)
    return settle(
      { session, data, ref, waiter, target, invite, mayRedirect: true },
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
    const invite = inviteOf(pair.first, otherSide(pair.sides[0]), target, data)
    return settle(
      { session, data, ref, waiter, target, invite, mayRedirect: false },
      ({ sameUuid, live }, command, now) =>
        decideJoin(sameUuid, live, { asker: session, invite: command, to: second.callUuid }, now),
    )
  }

  return (session, data, waiter) =>
    data.to_call_uuid == null ? ring(session, data, waiter) : join(session, data, data.to_call_uuid, waiter)
}

const refused = (error: ErrorBody) => ({ ok: false, error }) as const

function refOf({ participant: { product } }: ClientSession, callUuid: string): CallRef {
  return { product, callUuid: callUuid.toLowerCase() }
}

/** What the token of the asker does not permit. */
function rightsRefused(session: ClientSession, target: Participant): ErrorBody | undefined {
  const refusal = checkInvite(session, session.participant, target, null)
  if (refusal === undefined) return undefined
  return refusal.code === 'CALL_PEER_ROLE_NOT_ALLOWED' ? roleRefused(target, session) : errorOf(refusal)
}

/** Whom the request names; an error for what cannot be a target. */
function targetOf(
  { product }: Participant,
  { to_role: role, to_user_id, to_group }: CallTransfer,
): Participant | ErrorBody {
  if (to_group != null) {
    const message = 'A call cannot be transferred to a group yet. Name a user with to_user_id.'
    return errorBody('INVALID_PAYLOAD', { field: 'to_group', message })
  }
  if (role == null || to_user_id == null) return errorBody('INVALID_PAYLOAD', { field: 'to_user_id' })
  return { product, role, userId: to_user_id }
}

type Given = Omit<InviteCommand, 'rate' | 'ringTimeoutMs' | 'callUuid' | 'freshUuid' | 'busy' | 'maxRinging'>

/** The invite that a transfer amounts to: its caller is the side that is left, at the session that has its place. */
function inviteOf(first: AnsweredCall, left: Side, { userId, role }: Participant, { metadata }: CallTransfer): Given {
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
  readonly data: CallTransfer
  readonly ref: CallRef
  readonly waiter: Waiter | undefined
  readonly target: Participant
  readonly invite: Given
  readonly mayRedirect: boolean
}

type Decide = (situation: InviteSituation, invite: InviteCommand, now: number) => Decision

/** Asks the limits and the backend, commits what is decided, and hands it on. */
function createSettleTransfer(options: Options) {
  const { store, products, transitions, limits, withQuality, askBackend, clock, ringTimeoutMs, newUuid } = options
  const { commit, handOn } = transitions

  /** As with an invite, what leaves no call behind does not count [INV8]. */
  async function refund({ session, target }: Asked, { rate }: InviteCommand): Promise<void> {
    if (rate.ok) await limits.refundInvite(session.participant, target)
  }

  return async function settle(asked: Asked, decide: Decide): Promise<Outcome<CallTransferStarted>> {
    const { session, ref, waiter, target, mayRedirect } = asked
    const settings = await products.settings(ref.product)
    const rate = await limits.invite(session.participant, target)
    const given = withSettings(asked.invite, settings, rate, newUuid(), settings.ringTimeoutMs ?? ringTimeoutMs)
    const how = { mayRedirect, mayRedirectToGroup: false, ringMsFor: () => given.ringTimeoutMs }
    const invite = await askBackend({ session, command: given, named: undefined, waiter, ...how }, settings)
    const isTokenOver = session.expiresAt !== undefined && clock.now() >= session.expiresAt
    if (isTokenOver) {
      await refund(asked, invite)
      return refused(errorBody('AUTH_TOKEN_INVALID'))
    }
    const { product } = ref
    const decision = await withQuality<Decision>((seen) =>
      commit(
        store.invite(invite.actor.participant, { product, ...invite.callee }, ref.callUuid, (situation) =>
          seen(decide(situation, invite, clock.now())),
        ),
      ),
    )
    if (!decision.ok) {
      await refund(asked, invite)
      return refused(errorOf(decision))
    }
    const handedOn = handOn(decision).then(() => {})
    return { ok: true, value: { call_uuid: ref.callUuid, new_call_uuid: decision.call.callUuid }, handedOn }
  }
}

function withSettings(
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
