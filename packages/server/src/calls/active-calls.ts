import type { ActiveCall } from '@ringwire/protocol/events/auth'
import type { PeerAbsence } from '@ringwire/protocol/events/call'
import {
  type Call,
  isAnswered,
  isLive,
  type LiveCall,
  otherSide,
  placeOf,
  ringsAt,
  type Side,
  sideOf,
} from '../call/call.ts'
import { calleeIdOf, transferOriginOf } from '../call/effects.ts'
import { isRung, type LateRings } from './late-rings.ts'
import type { ClientSession } from './request.ts'

/** The live calls of a participant, as an extended session hears of them when it connects. */
export type ReadActiveCalls = (session: Viewer) => Promise<ActiveCall[]>

/** Whose list it is. Its rights depend on what it listed when it connected [EXT6]. */
type Viewer = Pick<ClientSession, 'sessionId' | 'participant' | 'expiresAt' | 'can'>

/** `absenceOf`: of a side of a call, as it is now [PEER1]. `mayTake`: whether a product lets devices take calls [TAKE1]. */
export function createActiveCalls(
  { liveCallsOf, newest }: LateRings,
  absenceOf: (call: Call, side: Side) => PeerAbsence | undefined,
  mayTake: (product: string) => boolean,
): ReadActiveCalls {
  const isTakeable = (call: LiveCall, side: Side, { sessionId, can = [], ...session }: Viewer) =>
    can.includes('take') &&
    mayTake(call.product) &&
    isAnswered(call) &&
    placeOf(call, side)?.sessionId !== sessionId &&
    isRung(session, call)

  // A call that this lists as ringing has to ring there: the end of a call goes to the sessions where it rings.
  return async (session) => {
    const live = await liveCallsOf(session)
    return live.flatMap((call) => {
      const now = newest(call)
      const side = sideOf(now, session.participant) ?? (ringsAt(now, session.participant) ? 'callee' : undefined)
      const isTold = side === 'caller' || now.status !== 'ringing' || isRung(session, now)
      return side === undefined || !isLive(now) || !isTold
        ? []
        : [
            {
              ...activeCall(now, side, session.sessionId, absenceOf(now, otherSide(side))),
              ...(isTakeable(now, side, session) && { elsewhere: true as const }),
            },
          ]
    })
  }
}

function activeCall(call: LiveCall, side: Side, sessionId: string, away: PeerAbsence | undefined): ActiveCall {
  const peer = side === 'caller' ? call.callee : call.caller
  return {
    call_uuid: call.callUuid,
    status: call.status,
    version: call.version,
    direction: side === 'caller' ? 'outgoing' : 'incoming',
    peer: {
      user_id: side === 'caller' ? calleeIdOf(call) : peer.userId,
      role: peer.role,
      ...(side === 'caller' && call.group !== undefined && { group: call.group.name }),
      display_name: peer.displayName,
      ...(away && { away }),
    },
    call_type: call.callType,
    context_type: call.contextType,
    context_id: call.contextId,
    started_at: new Date(call.startedAt).toISOString(),
    expires_at: new Date(call.ringExpiresAt).toISOString(),
    holds_place: placeOf(call, side)?.sessionId === sessionId,
    ...(call.transferring !== undefined && { transferring_to: call.transferring.to }),
    ...transferOriginOf(call),
  }
}
