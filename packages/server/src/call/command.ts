import type { Capability } from '@ringwire/protocol/capabilities'
import type { ErrorBody, ErrorCode } from '@ringwire/protocol/errors'
import type { Call, Participant } from './call.ts'
import type { By, CallEvent, Step } from './effects.ts'

/** A session that asks for something. */
export interface Actor {
  readonly participant: Participant
  readonly sessionId: string
  readonly deviceId: string | null
  readonly node: string
  readonly displayName: string
  /** When its token is over, in ms since the epoch. Undefined: never. */
  readonly expiresAt?: number | undefined
  /** Capabilities that its client listed when it connected; absent: none [EXT6]. */
  readonly can?: readonly Capability[]
}

/** The commands for one call. The first seven come from clients, the others from the service itself. */
export type CallCommand =
  | { readonly type: 'accept' | 'connected'; readonly actor: Actor; readonly isGone?: boolean }
  /** `rung`: the callee's sessions that are live now; a busy reject waits for all of them. */
  | { readonly type: 'reject'; readonly actor: Actor; readonly reason: string | null; readonly rung: readonly string[] }
  | { readonly type: 'cancel' | 'end'; readonly actor: Actor; readonly reason: string | null }
  /**
   * A `webrtc.*` message that the fast path could not place: it may take or settle a place [PLACE2]. `isGone`: its author's
   * socket was closed after it was sent.
   */
  | { readonly type: 'relay'; readonly actor: Actor; readonly isGone?: boolean }
  /** Goes on here with an answered call that another session has [TAKE1]. `isForbidden`: the product does not let it. */
  | { readonly type: 'take'; readonly actor: Actor; readonly isForbidden?: boolean; readonly isGone?: boolean }
  /**
   * A session connected: it takes what it, the session that it goes on for, or its device left behind [PLACE2 a, b]. `had`: it
   * is not new, and had the place before, `settled` where it had spoken for the call.
   */
  | {
      readonly type: 'arrive'
      readonly actor: Actor
      readonly resumes?: string
      readonly had?: 'settled' | 'unsettled'
    }
  /**
   * The close of a session's socket was observed, or its node is dead [END3]: it may have one on another by now. `closed`: its
   * client closed it; `hungUp`: for good, and said so [END6]; `awaitedMs`: the service closed it and told the client to come
   * back [PEER1].
   */
  | {
      readonly type: 'lose'
      readonly sessionId: string
      readonly node: string
      readonly closed?: boolean
      readonly hungUp?: boolean
      readonly awaitedMs?: number | undefined
    }
  /** Time passed. */
  | { readonly type: 'time' }
  /** The application backend ends the call; `note` is kept with the event [SRV2]. */
  | { readonly type: 'stop'; readonly note: string | null }
  /** These are no members any more of the group that is called, by their user_ids [GROUP1]. */
  | { readonly type: 'leave'; readonly userIds: readonly string[] }
  /** Somebody is erased, by its user_id: a live call to a group names it no more. To be repeated until nothing changes [SRV2]. */
  | { readonly type: 'forget'; readonly userId: string }
  /**
   * The next turn of a call to a group begins, with the first member who can be rung, by its user_id; null: nobody of the rest of
   * this round can be. `seen`: the version of the call on which that was found [GROUP1].
   */
  | { readonly type: 'turn'; readonly member: string | null; readonly seen: number }
  /** The service was away: sessions on none of these nodes have no socket, and the lost clocks start in full [END3]. */
  | { readonly type: 'restart'; readonly nodes: readonly string[] }
  /** Its deadlines are `ms` later; 0: they are only written down by the clock as it is now [END3]. */
  | { readonly type: 'shift'; readonly ms: number }

export type Refusal = {
  readonly ok: false
  readonly code: ErrorCode
  /** `message` replaces that of the code. */
  readonly details: Omit<ErrorBody, 'code' | 'message'> & { readonly message?: string }
  /** A refused invite may still leave a record [INV5]. */
  readonly steps: readonly Step[]
}

export type Acceptance = {
  readonly ok: true
  /** The call as it is after the steps. */
  readonly call: Call
  readonly steps: readonly Step[]
}

export type Decision = Acceptance | Refusal

export function refuse(code: ErrorCode, details: Refusal['details'] = {}, steps: readonly Step[] = []): Refusal {
  return { ok: false, code, details, steps }
}

/** Both sides would be the same participant, which the message names. */
export function refuseSelf({ userId, role }: { readonly userId: string; readonly role: string }): Refusal {
  const message = `Both sides would be ${JSON.stringify(userId)} (${role}). Call another user_id or role.`
  return refuse('CALL_TO_SELF', { message })
}

export function unchanged(call: Call): Acceptance {
  return { ok: true, call, steps: [] }
}

export function changed(call: Call, event: CallEvent): Acceptance {
  return { ok: true, call, steps: [{ call, event }] }
}

export function byOf(actor: Actor): By {
  return { userId: actor.participant.userId, role: actor.participant.role, sessionId: actor.sessionId }
}
