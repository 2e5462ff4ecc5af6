import { AuthRefresh, CallList } from './events/auth.ts'
import {
  CallAccept,
  CallAlerting,
  CallCancel,
  CallConnected,
  CallEnd,
  CallInvite,
  CallMedia,
  CallReject,
  CallStats,
  CallTake,
  CallTransfer,
} from './events/call.ts'
import { PresenceWatch } from './events/presence.ts'
import { WebrtcAnswer, WebrtcIceCandidate, WebrtcOffer } from './events/webrtc.ts'

/** What clients send: event name → the schema of its `data`. */
export const clientEvents = {
  'call.invite': CallInvite,
  'call.accept': CallAccept,
  'call.reject': CallReject,
  'call.cancel': CallCancel,
  'call.end': CallEnd,
  'call.connected': CallConnected,
  'webrtc.offer': WebrtcOffer,
  'webrtc.answer': WebrtcAnswer,
  'webrtc.ice_candidate': WebrtcIceCandidate,
  'call.alerting': CallAlerting,
  'call.media': CallMedia,
  'call.stats': CallStats,
  'call.take': CallTake,
  'call.list': CallList,
  'call.transfer': CallTransfer,
  'presence.watch': PresenceWatch,
  'auth.refresh': AuthRefresh,
} as const

export type ClientEventName = keyof typeof clientEvents

export const clientEventPurposes: Record<ClientEventName, string> = {
  'call.invite': 'Start an outgoing call.',
  'call.accept': 'Accept an incoming call.',
  'call.reject': 'Reject an incoming call.',
  'call.cancel': 'Cancel before connect.',
  'call.end': 'End an active call.',
  'call.connected': 'Mark media connected.',
  'webrtc.offer': 'SDP offer relay.',
  'webrtc.answer': 'SDP answer relay.',
  'webrtc.ice_candidate': 'ICE candidate relay.',
  'call.alerting': 'The phone of the callee really rings.',
  'call.media': 'The media that this side sends: microphone, camera, screen; and whether it has put the call on hold.',
  'call.stats': 'How the media is at this side; extended sessions only.',
  'call.take': 'Go on here with a call that is at another session; only with the capability take.',
  'call.list': 'The calls that there are now, and which can be taken; only with the capability take.',
  'call.transfer': 'Hand the other side over to somebody else; extended sessions only.',
  'presence.watch': 'The people whose comings and goings to report; extended sessions only.',
  'auth.refresh': 'Go on with a new token; extended sessions only.',
}
