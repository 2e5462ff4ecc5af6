import Type from 'typebox'
import { limitNames } from './errors.ts'
import { AuthOk, AuthRefreshed, CallListed, ExtendedAuthOk, SessionReset } from './events/auth.ts'
import {
  CallAccepted,
  CallAck,
  CallAlertingBy,
  CallInvited,
  CallMedia,
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
} from './events/call.ts'
import { PresenceState } from './events/presence.ts'
import { RelayOrigin, WebrtcAnswer, WebrtcIceCandidate, WebrtcOffer } from './events/webrtc.ts'
import { IceServersResponse } from './rest.ts'

/** The error object inside `call.error`, at the top level and again in `data` [ENV2]. */
export const WsError = Type.Object({
  code: Type.String(),
  message: Type.String(),
  field: Type.Optional(Type.String()),
  status: Type.Optional(Type.String()),
  call_uuid: Type.Optional(Type.String()),
  retryable: Type.Optional(Type.Boolean()),
  retry_after_ms: Type.Optional(Type.Integer({ minimum: 0 })),
  limit: Type.Optional(Type.Enum([...limitNames], { description: 'RATE_LIMITED: which limit was reached.' })),
  expected_n: Type.Optional(Type.Integer({ minimum: 1, description: 'The n that the next request must have [EXT4].' })),
})

/** What the service sends: event name → the schema of its `data`, and to whom it goes. */
export const serverEvents = {
  'auth.ok': {
    data: Type.Union([AuthOk, ExtendedAuthOk]),
    purpose: 'Sent after a WebSocket connection is authenticated.',
  },
  'call.invited': { data: CallInvited, purpose: 'Reply to the inviter: the call exists.' },
  'call.ringing': { data: CallRinging, purpose: 'Incoming call signal to the callee.' },
  'call.accepted': { data: CallAccepted, purpose: 'Sent to the caller after the callee accepts.' },
  'call.rejected': { data: CallOver, purpose: 'Sent to the caller after the callee rejects.' },
  'call.cancelled': { data: CallOver, purpose: 'The call no longer rings here, or was cancelled.' },
  'call.ended': { data: CallOver, purpose: 'The other peer, or the service, ended the call.' },
  'call.missed': { data: CallMissed, purpose: 'A missed-call timeout fired.' },
  'call.error': { data: Type.Object({ error: WsError }), purpose: 'A request failed.' },
  'webrtc.offer': { data: Type.Intersect([WebrtcOffer, RelayOrigin]), purpose: 'SDP offer relay.' },
  'webrtc.answer': { data: Type.Intersect([WebrtcAnswer, RelayOrigin]), purpose: 'SDP answer relay.' },
  'webrtc.ice_candidate': { data: Type.Intersect([WebrtcIceCandidate, RelayOrigin]), purpose: 'ICE candidate relay.' },
  'call.ack': { data: CallAck, purpose: 'Reply to a request of an extended session.' },
  'call.status': { data: CallStatusChanged, purpose: 'To an extended peer: the other side reported media connected.' },
  'call.alerting': { data: CallAlertingBy, purpose: 'To an extended caller: a phone of the callee really rings.' },
  'call.media': {
    data: Type.Intersect([CallMedia, RelayOrigin]),
    purpose: 'To an extended peer: the media that the other side sends at this moment.',
  },
  'call.peer_away': { data: CallPeerAway, purpose: 'To an extended peer: the other side lost its place.' },
  'call.peer_back': { data: CallPeerBack, purpose: "To an extended peer: the other side's place is held again." },
  'call.peer_moved': {
    data: CallPeerMoved,
    purpose: 'To a peer that listed take: the other side goes on at another of its devices.',
  },
  'call.listed': { data: CallListed, purpose: 'Reply to call.list: the calls that there are now.' },
  'call.transfer_started': {
    data: CallTransferStarted,
    purpose: 'Reply to call.transfer: the target rings. Also to a side whose backend transfers its call.',
  },
  'call.transferring': {
    data: CallTransferring,
    purpose: 'To an extended session with the capability transfer: its call is being transferred.',
  },
  'call.transfer_failed': {
    data: CallTransferFailed,
    purpose:
      'To extended sessions with the capability transfer: the target did not answer, and the first call goes on.',
  },
  'presence.state': { data: PresenceState, purpose: 'Reply to presence.watch: which of them are there.' },
  'presence.changed': {
    data: PresenceState,
    purpose: 'To an extended session: which of the people that it watches came or went.',
  },
  'ice.servers': { data: IceServersResponse, purpose: 'To an extended session: fresh ICE servers.' },
  'auth.refreshed': { data: AuthRefreshed, purpose: 'Reply to auth.refresh.' },
  'session.reset': { data: SessionReset, purpose: 'To an extended session: its log was lost.' },
} as const

export type ServerEventName = keyof typeof serverEvents
