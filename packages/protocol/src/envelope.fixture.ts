import type { ClientEventName } from './client-events.ts'

export const callUuid = '0b9f7a4e-6a52-4f0e-9d3c-2f1b6c1d7e55'

/** Right data for every event that a client sends. */
export const rightData: Record<ClientEventName, object> = {
  'call.invite': { callee_user_id: 'bob', callee_role: 'agent' },
  'call.accept': { call_uuid: callUuid },
  'call.reject': { call_uuid: callUuid },
  'call.cancel': { call_uuid: callUuid },
  'call.end': { call_uuid: callUuid },
  'call.connected': { call_uuid: callUuid },
  'webrtc.offer': { call_uuid: callUuid, sdp: { type: 'offer', sdp: 'v=0\r\n' } },
  'webrtc.answer': { call_uuid: callUuid, sdp: { type: 'answer', sdp: 'v=0\r\n' } },
  'webrtc.ice_candidate': { call_uuid: callUuid, candidate: { candidate: '', sdpMid: '0', sdpMLineIndex: 0 } },
  'call.alerting': { call_uuid: callUuid },
  'call.media': { call_uuid: callUuid, audio: true, video: false, screen: false },
  'call.stats': { call_uuid: callUuid, stats: { rtt_ms: 40, loss: 0 } },
  'call.take': { call_uuid: callUuid },
  'call.list': {},
  'call.transfer': { call_uuid: callUuid, to_role: 'agent', to_user_id: 'eva' },
  'presence.watch': { participants: [{ role: 'agent', user_id: 'bob' }] },
  'auth.refresh': { token: 'a.b.c' },
}
