import type { CallHeld, CallQuality } from '@ringwire/protocol/backend'
import type { Capability } from '@ringwire/protocol/capabilities'
import type { ElsewhereReason } from '@ringwire/protocol/end-reasons'
import type {
  CallAccepted,
  CallMissed,
  CallOver,
  CallPeerAway,
  CallPeerBack,
  CallPeerMoved,
  CallRinging,
  CallStatusChanged,
  CallTransferFailed,
  CallTransferring,
  CallTransferStarted,
  TransferOrigin,
} from '@ringwire/protocol/events/call'
import { type Call, type OverCall, type Participant, type RingingCall, rungBy, type Side } from './call.ts'

/**
 * The receivers: the holder of a place, or every session of the callee that was rung, but for some [PLACE1]. `member`: of
 * a group only this one, by its user_id; else all who did not decline [GROUP1].
 */
export type Address = { readonly place: Side } | RungAddress
interface RungAddress {
  readonly place: 'rung'
  readonly except: readonly string[]
  readonly member?: string
}

/** The participants of an address that is not a place. */
export function rungTo(call: Call, to: Address): readonly Participant[] {
  if (!('member' in to) || to.member === undefined) return rungBy(call)
  return [{ product: call.product, role: call.callee.role, userId: to.member }]
}

/**
 * One push that a transition causes. Notices are stored with the transition, so that any node can deliver them. `needs`: only
 * for sessions that listed this [EXT6].
 */
export type Notice = { readonly needs?: Capability } & (
  | { readonly to: Address; readonly event: 'call.ringing'; readonly data: CallRinging }
  | { readonly to: Address; readonly event: 'call.accepted'; readonly data: CallAccepted }
  | { readonly to: Address; readonly event: 'call.missed'; readonly data: CallMissed }
  | { readonly to: Address; readonly event: 'call.status'; readonly data: CallStatusChanged }
  | { readonly to: Address; readonly event: 'call.transfer_started'; readonly data: CallTransferStarted }
  | { readonly to: Address; readonly event: 'call.transfer_failed'; readonly data: CallTransferFailed }
  | {
      readonly to: Address
      readonly event: 'call.rejected' | 'call.cancelled' | 'call.ended'
      readonly data: CallOver
    }
)

/** Who did it; null where time or a loss did. */
export interface By {
  readonly userId: string
  readonly role: string
  readonly sessionId: string
}

/** What happened to a call in one transition: the row of `call_events` beside the call's new version. */
export interface CallEvent {
  readonly type:
    | 'invited'
    | 'busy'
    | 'accepted'
    | 'silenced'
    | 'declined'
    | 'left'
    | 'turn'
    | 'passed'
    | 'round_over'
    | 'connected'
    | 'rejected'
    | 'cancelled'
    | 'ended'
    | 'missed'
    | 'place_taken'
    | 'place_settled'
    | 'place_lost'
    | 'clock_shifted'
    | 'transferring'
    | 'transfer_failed'
  readonly at: number
  readonly by: By | null
  readonly notices: readonly Notice[]
  /** Places that passed on to another session, which gets the messages that waited for the previous one [PLACE2]. */
  readonly moved?: readonly PlaceMove[]
  /** News of the other's absence for one side, in addition to the notices [PEER1]. */
  readonly peers?: readonly PeerNews[]
  /** How the media was, as far as it was reported when the call ended: told to endpoints, and stored elsewhere [STAT1]. */
  readonly quality?: CallQuality | null
  /** For how long each side had the call on hold; the same holds for it [HOLD1]. */
  readonly held?: CallHeld | null
  /** Why a backend ended the call, in its own words; nobody in the call is shown it [SRV2]. */
  readonly note?: string
}

/**
 * News of the other side, in addition to the notices; for the extended session that has the place of `to`. The other's
 * place fell vacant, or is held again [PEER1]; or the other has transferred the call, and this is the new one [XFER1].
 */
export type PeerNews =
  | { readonly to: Side; readonly event: 'call.peer_away'; readonly data: CallPeerAway }
  | { readonly to: Side; readonly event: 'call.peer_back'; readonly data: CallPeerBack }
  /**
   * It also says that the side is back, if it was away: a session that gets it gets nothing else of the same version
   * [TAKE1].
   */
  | { readonly to: Side; readonly event: 'call.peer_moved'; readonly data: CallPeerMoved; readonly needs: 'take' }
  | {
      readonly to: Side
      readonly event: 'call.transferring'
      readonly needs: Capability
      readonly data: CallTransferring
    }

export interface PlaceMove {
  readonly side: Side
  /** The session that had it. */
  readonly from: string
  /** The place was vacant: nobody takes it from a session that may still be there. */
  readonly lost?: true
  /** The new holder asked for it, and the place may have been held [TAKE1]. */
  readonly taken?: true
  /** Its device, if another one has the place, or took it: a client that comes back on it hears of that. */
  readonly leftDevice?: string | null
}

/** One call's new version and what happened. A decision may hold several, committed together. */
export interface Step {
  readonly call: Call
  readonly event: CallEvent
}

const iso = (at: number) => new Date(at).toISOString()

/** Data of `call.ringing`; the remaining time counts from the moment it is sent [RING2]. */
export function ringingData(call: RingingCall, now: number): CallRinging {
  return {
    call_uuid: call.callUuid,
    caller_user_id: call.caller.userId,
    caller_role: call.caller.role,
    display_name: call.caller.displayName ?? '',
    context_type: call.contextType,
    context_id: call.contextId,
    call_type: call.callType,
    ring_timeout_ms: Math.max(0, ringsUntil(call) - now),
    expires_at: iso(ringsUntil(call)),
    ...(call.metadata === null ? {} : { metadata: call.metadata }),
    ...(call.group !== undefined && { callee_group: call.group.name }),
    ...transferOriginOf(call),
  }
}

/** How long a call rings at its callee, or at the member of a group whose turn it is. In ms since the epoch. */
export function ringsUntil({ group, ringExpiresAt }: Call): number {
  return group?.turns?.until ?? ringExpiresAt
}

/** Null: nobody of the group has accepted [GROUP1]. */
export function calleeIdOf(call: Call): string | null {
  return call.group !== undefined && (call.status === 'ringing' || call.acceptedAt === null) ? null : call.callee.userId
}

/** The origin of a call that began as a transfer, as it is shown; undefined for any other call [XFER1]. */
export function transferOriginOf({ transferred }: Pick<Call, 'transferred'>): TransferOrigin {
  if (transferred === undefined) return {}
  const { userId, role, displayName } = transferred.by
  const transferred_by = { user_id: userId, role, display_name: displayName }
  return { transferred_from: transferred.from, transferred_by }
}

/** For every session: extended ones also get the callee's name, which the delivery adds [EXT5]. */
export function acceptedData({ callUuid }: Call): CallAccepted {
  return { call_uuid: callUuid, status: 'accepted' }
}

export function missedData(call: OverCall): CallMissed {
  return {
    call_uuid: call.callUuid,
    status: 'missed',
    reason: call.endReason,
    caller_user_id: call.caller.userId,
    caller_role: call.caller.role,
    callee_user_id: calleeIdOf(call),
    ...(call.group !== undefined && { callee_group: call.group.name }),
    callee_role: call.callee.role,
    display_name: call.caller.displayName ?? '',
    context_type: call.contextType,
    context_id: call.contextId,
    call_type: call.callType,
    started_at: iso(call.startedAt),
    ended_at: iso(call.endedAt),
  }
}

/** Data of `call.rejected`, `call.cancelled` and `call.ended` of a call that is over [END2]. */
export function overData(call: OverCall, by: By | null): CallOver {
  return { ...heading(call, call.endReason, by), ended_at: iso(call.endedAt) }
}

/** The uuid of the new call, if this step says what became of a transfer. The steps of the new call are told before it [XFER1]. */
export function alsoToldOf({ call, event }: Step): string | undefined {
  const failed = event.notices.find((notice) => notice.event === 'call.transfer_failed')
  return failed?.event === 'call.transfer_failed' ? failed.data.new_call_uuid : call.transferredTo
}

/** Data of `call.cancelled` for a session where the call stops ringing while it goes on elsewhere. */
export function elsewhereData(call: Call, reason: ElsewhereReason, by: By | null): CallOver {
  return { ...heading(call, reason, by), ended_at: null }
}

function heading(call: Call, reason: string, by: By | null) {
  return {
    call_uuid: call.callUuid,
    status: call.status,
    reason,
    by: by === null ? null : { user_id: by.userId, role: by.role },
  }
}
