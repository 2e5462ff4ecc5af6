import { type ErrorBody, errorBody } from '@ringwire/protocol/errors'
import type { CallTransfer, CallTransferStarted } from '@ringwire/protocol/events/call'
import {
  type AnsweredCall,
  type CallRef,
  otherSide,
  type Participant,
  participantOf,
  placeOf,
  sideOf,
} from '../call/call.ts'
import type { Decision } from '../call/command.ts'
import { checkInvite, type InviteCommand } from '../call/invite.ts'
import { checkTransfer, decideTransfer } from '../call/transfer.ts'
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

/** How a call is transferred: the other side rings somebody else, from where it is [XFER1]. */
export function createTransfer(options: Options): Transfer {
  const { store, products, limits, askBackend, clock, ringTimeoutMs, newUuid } = options
  const settle = createSettleTransfer(options)

  return async (session, data, waiter) => {
    const target = targetOf(session.participant, data)
    if ('code' in target) return { ok: false, error: target }
    const refused = checkInvite(session, session.participant, target, null)
    if (refused?.code === 'CALL_PEER_ROLE_NOT_ALLOWED') return { ok: false, error: roleRefused(target, session) }
    if (refused !== undefined) return { ok: false, error: errorOf(refused) }
    const ref = { product: session.participant.product, callUuid: data.call_uuid.toLowerCase() }
    const first = await store.load(ref)
    const unfit = checkTransfer(first, session, target)
    if (unfit !== undefined) return { ok: false, error: errorOf(unfit) }

    const settings = await products.settings(ref.product)
    const rate = await limits.invite(session.participant, target)
    const rest = { rate, ringTimeoutMs: settings.ringTimeoutMs ?? ringTimeoutMs, callUuid: newUuid() }
    const given = inviteOf(first as AnsweredCall, session, target, data, settings, rest)
    const invite = await askBackend({ session, command: given, named: undefined, waiter }, settings)
    const isTokenOver = session.expiresAt !== undefined && clock.now() >= session.expiresAt
    if (isTokenOver) return { ok: false, error: errorBody('AUTH_TOKEN_INVALID') }
    return settle(ref, session, invite, target)
  }
}

/** Whom the request names; an error for what cannot be a target. */
function targetOf(
  { product }: Participant,
  { to_role: role, to_user_id, to_group, to_call_uuid }: CallTransfer,
): Participant | ErrorBody {
  if (to_call_uuid != null) {
    const message = 'A call cannot be transferred to another call yet. Name a user with to_user_id.'
    return errorBody('INVALID_PAYLOAD', { field: 'to_call_uuid', message })
  }
  if (to_group != null) {
    const message = 'A call cannot be transferred to a group yet. Name a user with to_user_id.'
    return errorBody('INVALID_PAYLOAD', { field: 'to_group', message })
  }
  if (role == null || to_user_id == null) return errorBody('INVALID_PAYLOAD', { field: 'to_user_id' })
  return { product, role, userId: to_user_id }
}

type Rest = Pick<InviteCommand, 'rate' | 'ringTimeoutMs' | 'callUuid'>

/** The invite that a transfer amounts to: its caller is the other side, at the session that has its place. */
function inviteOf(
  first: AnsweredCall,
  session: ClientSession,
  { userId, role }: Participant,
  { metadata }: CallTransfer,
  { busy }: ProductSettings,
  rest: Rest,
): InviteCommand {
  const other = otherSide(sideOf(first, session.participant) ?? 'caller')
  const { sessionId, deviceId, node } = placeOf(first, other) ?? first.callerPlace
  return {
    ...rest,
    ...{ freshUuid: rest.callUuid, maxRinging: Number.POSITIVE_INFINITY, busy },
    actor: {
      ...{ participant: participantOf(first, other), sessionId, deviceId, node },
      displayName: first[other].displayName ?? '',
    },
    callee: { userId, role },
    ...{ contextType: first.contextType, contextId: first.contextId, callType: first.callType },
    metadata: metadata ?? first.metadata,
  }
}

/** Commits what is decided on a transfer, and hands it on. */
function createSettleTransfer({ store, transitions, limits, withQuality, clock }: Options) {
  const { commit, handOn } = transitions

  return async function settle(
    first: CallRef,
    session: ClientSession,
    invite: InviteCommand,
    counted: Participant,
  ): Promise<Outcome<CallTransferStarted>> {
    const { product } = session.participant
    const command = { asker: session, invite }
    const decision = await withQuality<Decision>((seen) =>
      commit(
        store.invite(invite.actor.participant, { product, ...invite.callee }, first.callUuid, ({ sameUuid, live }) =>
          seen(decideTransfer(sameUuid, live, command, clock.now())),
        ),
      ),
    )
    if (!decision.ok) {
      // As with an invite, what leaves no call behind does not count [INV8].
      if (invite.rate.ok) await limits.refundInvite(session.participant, counted)
      return { ok: false, error: errorOf(decision) }
    }
    const handedOn = handOn(decision).then(() => {})
    return { ok: true, value: { call_uuid: first.callUuid, new_call_uuid: decision.call.callUuid }, handedOn }
  }
}
