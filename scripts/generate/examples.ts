// Over 350 lines: it is one list of examples, which tell of the same people and calls.
import type {
  CallPage,
  CallShown,
  DeliveryPage,
  Disconnected,
  GroupPage,
  GroupRequest,
  GroupShown,
  ParticipantErased,
  ParticipantExport,
  ParticipantView,
  ProductChange,
  ProductChanged,
  ProductShown,
  TimelineShown,
  TransferBegun,
  TransferRequest,
  Webhook,
  WebhookPage,
  WebhookQueued,
  WebhookRotated,
  WebhookWithSecret,
} from '@ringwire/protocol/backend'
import type { ErrorBody, ErrorCode } from '@ringwire/protocol/errors'
import type { ActiveCall, AuthOk, AuthRefreshed, ExtendedAuthOk, SessionReset } from '@ringwire/protocol/events/auth'
import type {
  CallAccepted,
  CallAck,
  CallAlertingBy,
  CallInvite,
  CallInvited,
  CallMedia,
  CallMissed,
  CallOver,
  CallPeerAway,
  CallRinging,
  CallStatusChanged,
} from '@ringwire/protocol/events/call'
import type { WebrtcAnswer, WebrtcIceCandidate, WebrtcOffer } from '@ringwire/protocol/events/webrtc'
import type { DeviceRequest, DeviceResponse } from '@ringwire/protocol/push'
import type {
  IceServersResponse,
  JsonWebKeySet,
  RingChanged,
  RingResponse,
  TokenRequest,
  TokenResponse,
} from '@ringwire/protocol/rest'
import { allowedActions, type Health, type HistoryResponse } from '@ringwire/protocol/rest'

/** One story in all documents: Ann, a customer, calls Ben, an agent, about order 1042. */
const call_uuid = '0b9f7a4e-6a52-4f0e-9d3c-2f1b6c1d7e55'
/** Of a transferred call: the one with the target. */
const new_call_uuid = '7c2d1f63-90ab-4c1e-8a55-4f6f2b7f9a10'
/** The call in which Ben asks Eva first. */
const to_call_uuid = '3f0c6a1d-5b7e-4e0f-9a2c-8d6b5c4e3f21'
const ann = { user_id: 'ann', role: 'customer' }
const ben = { user_id: 'ben', role: 'agent' }
const context = { context_type: 'order', context_id: '1042' }
const caller = { caller_user_id: ann.user_id, caller_role: ann.role }
const at = (time: string) => `2026-03-02T${time}Z`
const origin = { from_user_id: ann.user_id, from_role: ann.role }

export const tokenRequest: TokenRequest = {
  ...context,
  ...ann,
  display_name: 'Ann',
  device_id: 'ann-phone',
  app_version: '4.2.0',
  allowed_peer_role: ben.role,
}

/** The keys of RFC 8037 appendix A.2 and RFC 7517 appendix A.1. */
export const jwks: JsonWebKeySet = {
  keys: [
    {
      ...{ kty: 'OKP', crv: 'Ed25519', x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo' },
      ...{ kid: 'k2', alg: 'EdDSA', use: 'sig' },
    },
    {
      ...{ kty: 'EC', crv: 'P-256', x: 'MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4' },
      ...{ y: '4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM', kid: 'k1', alg: 'ES256', use: 'sig' },
    },
  ],
}

/** Shortened: a token is one line of three parts. */
export const token = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbm4ifQ.c2lnbmF0dXJl'

export const tokenResponse: TokenResponse = {
  token,
  expires_at: at('10:00:00.000'),
  ws_url: 'wss://calls.example.com/v1/ws',
  ice_servers: [
    { urls: ['stun:stun.example.com:3478'] },
    {
      urls: ['turn:turn.example.com:3478?transport=udp', 'turns:turn.example.com:5349?transport=tcp'],
      username: '1772460000:Zm9yIHRoZSBleGFtcGxlIDog',
      credential: 'bm90IGEgcmVhbCBjcmVkZW50aWFs',
    },
  ],
  user: { ...ann, display_name: 'Ann' },
  allowed_actions: [...allowedActions],
}

export const iceServersResponse: IceServersResponse = {
  ice_servers: tokenResponse.ice_servers,
  expires_at: at('14:00:00.000'),
}

/** No TURN server, or one with fixed credentials. */
export const lastingIceServers: IceServersResponse = {
  ice_servers: tokenResponse.ice_servers.slice(0, 1),
  expires_at: null,
}

export const historyResponse: HistoryResponse = {
  success: true,
  data: [
    {
      call_uuid,
      status: 'connected',
      ...context,
      started_at: at('09:05:00.000'),
      ended_at: null,
      end_reason: null,
      direction: 'outgoing',
      peer: { ...ben, display_name: 'Ben' },
      call_type: 'audio',
      accepted_at: at('09:05:04.210'),
      connected_at: at('09:05:05.020'),
      duration_ms: null,
    },
    {
      call_uuid: '5f0d5b0e-93f1-4a53-8f0e-6b7d1f7f8c10',
      status: 'missed',
      ...context,
      started_at: at('09:01:00.000'),
      ended_at: at('09:01:45.000'),
      end_reason: 'no_answer',
      direction: 'outgoing',
      peer: { ...ben, display_name: null },
      call_type: 'audio',
      accepted_at: null,
      connected_at: null,
      duration_ms: null,
    },
  ],
  next_cursor: null,
}

export const callShown: CallShown = {
  success: true,
  call: {
    call_uuid,
    version: 3,
    status: 'connected',
    end_reason: null,
    caller: { ...ann, display_name: 'Ann' },
    callee: { ...ben, display_name: 'Ben' },
    call_type: 'audio',
    ...context,
    metadata: { priority: 'high' },
    started_at: at('09:05:00.000'),
    accepted_at: at('09:05:04.210'),
    connected_at: at('09:05:05.020'),
    ended_at: null,
    by: ann,
  },
}

export const timelineShown: TimelineShown = {
  success: true,
  call: {
    ...callShown.call,
    version: 2,
    status: 'missed',
    end_reason: 'no_answer',
    callee: { ...ben, display_name: null },
    accepted_at: null,
    connected_at: null,
    ended_at: at('09:05:45.000'),
    by: null,
  },
  entries: [
    {
      at: at('09:05:00.000'),
      what: 'invited',
      who: ann,
      session_id: 'a1bXh4Zk0Q2yT7sV9uWcJdEfG',
      detail: { version: 1 },
    },
    {
      at: at('09:05:00.210'),
      what: 'push',
      who: ben,
      device_id: 'ben-phone',
      detail: { type: 'call.wake', platform: 'fcm', result: 'accepted', reason: '200', after_ms: 190 },
    },
    {
      at: at('09:05:45.000'),
      what: 'missed',
      detail: { version: 2, status: 'missed', end_reason: 'no_answer' },
    },
  ],
  summary: "Agent ben's phone was offline; push accepted by FCM after 0.2 s, no client came within 45 s.",
}

export const callEnded: CallShown = {
  success: true,
  call: {
    ...callShown.call,
    version: 4,
    status: 'ended',
    end_reason: 'ended_by_server',
    ended_at: at('09:11:00.000'),
    by: null,
  },
}

export const transferRequest: TransferRequest = { by: 'callee', to: { role: 'agent', group: 'billing' } }

export const transferBegun: TransferBegun = {
  success: true,
  call_uuid: callShown.call.call_uuid,
  new_call_uuid: '5d2b9c10-7a4e-4c55-8f6b-3e0d9a1c2b47',
}

export const participantView: ParticipantView = {
  success: true,
  online: true,
  sessions: [
    {
      session_id: 'a1bXh4Zk0Q2yT7sV9uWcJdEfG',
      device_id: 'ann-phone',
      connected_at: at('09:00:00.000'),
      extended: true,
      app_version: '4.2.0',
    },
  ],
  devices: [{ device_id: 'ann-phone', platform: 'fcm', registered_at: at('09:00:00.000') }],
  live_calls: [callShown.call],
}

export const disconnected: Disconnected = { success: true, tokens_from: at('10:00:00.000') }

export const participantErased: ParticipantErased = {
  success: true,
  tokens_from: at('10:00:00.000'),
  calls: 12,
  devices: 1,
  timeline_entries: 40,
  webhook_deliveries: 6,
}

export const participantExport: ParticipantExport = {
  success: true,
  ...ann,
  exported_at: at('10:00:00.000'),
  tokens_from: null,
  sessions: [],
  devices: participantView.devices,
  groups: [],
  calls: [
    {
      call: callShown.call,
      entries: [{ at: callShown.call.started_at, what: 'invited', who: ann, detail: { version: 1 } }],
    },
  ],
  refused: [],
  changes: [{ at: at('09:30:00.000'), action: 'participant.disconnect', by: 'operator' }],
}

export const webhookRequest = { url: 'https://backend.example.com/webhooks', events: ['call.ended', 'call.missed'] }

export const webhook: Webhook = {
  id: 'we_5f0c1d2e3a4b5c6d7e8f9a0b',
  url: webhookRequest.url,
  events: ['call.ended', 'call.missed'],
  description: null,
  enabled: true,
  created_at: at('09:00:00.000'),
}

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
export const webhookMade: WebhookWithSecret = { ...webhook, secret }
export const webhookRotated: WebhookRotated = { ...webhookMade, old_secret_valid_until: '2026-03-03T09:05:00.000Z' }
export const webhookPage: WebhookPage = { success: true, data: [webhook], next_cursor: null }
export const webhookQueued: WebhookQueued = { delivery_id: 'msg_0195f3a07e4c7c3a9d2b5e8f1a6c4b7d' }

export const productShown: ProductShown = {
  product: 'shop',
  busy: 'reject',
  reveal_busy: false,
  ring_timeout_ms: null,
  media: 'all',
  presence: 'peers',
  take: true,
  invite_url: 'https://backend.example.com/invites',
  invite_failure: 'refuse',
}
export const productChange: ProductChange = { invite_url: productShown.invite_url, invite_failure: 'refuse' }
export const productChanged: ProductChanged = { ...productShown, invite_secret: secret }

export const groupRequest: GroupRequest = { members: ['ben', 'eve'], strategy: 'all', ring_ms: 60_000 }
export const groupShown: GroupShown = {
  ...{ role: 'agent', group: 'support' },
  ...{ members: ['ben', 'eve'], strategy: 'all', member_ring_ms: 15_000, ring_ms: 60_000 },
}
export const groupPage: GroupPage = {
  success: true,
  data: [
    {
      ...{ role: 'agent', group: 'support', member_count: 2 },
      ...{ strategy: 'all', member_ring_ms: 15_000, ring_ms: 60_000 },
    },
  ],
  next_cursor: null,
}

export const deliveryPage: DeliveryPage = {
  success: true,
  data: [
    {
      id: webhookQueued.delivery_id,
      type: 'call.ended',
      status: 'pending',
      attempts: 2,
      created_at: at('09:07:31.402'),
      next_attempt_at: at('09:08:07.120'),
      ended_at: null,
      response_status: 503,
      response: 'Service Unavailable',
    },
  ],
  next_cursor: null,
}

export const callPage: CallPage = { success: true, data: [callShown.call], next_cursor: null }
export const deviceRequests: Record<'browser' | 'Android' | 'iOS', DeviceRequest> = {
  browser: {
    platform: 'webpush',
    subscription: {
      endpoint: 'https://push.example.net/send/dGhlIGVuZHBvaW50',
      keys: {
        p256dh: 'BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4',
        auth: 'BTBZMqHH6r4Tts7J_aSIgg',
      },
    },
  },
  Android: { platform: 'fcm', token: 'dGhlIHJlZ2lzdHJhdGlvbg:APA91bExample' },
  iOS: { platform: 'apns', token: '0badf00d'.repeat(8), voip: true, environment: 'production' },
}
export const deviceResponse: DeviceResponse = { device_id: 'ann-phone', platform: 'webpush', pushes: true }

export const ringResponse: RingResponse = {
  call_uuid,
  status: 'ringing',
  caller: { ...ann, display_name: 'Ann' },
  call_type: 'audio',
  ...context,
  expires_at: at('09:05:45.000'),
}

export const ringRejected: RingChanged = { call_uuid, status: 'rejected', end_reason: 'declined' }
export const ringAlerting: RingChanged = { call_uuid, status: 'ringing', end_reason: null }

export const health: Record<'live' | 'draining' | 'ready' | 'databaseAway', Health> = {
  live: { ok: true, database: 'unchecked', redis: 'unchecked', service_ready: true },
  draining: { ok: true, database: 'unchecked', redis: 'unchecked', service_ready: false },
  ready: { ok: true, database: 'ok', redis: 'ok', service_ready: true },
  databaseAway: { ok: false, database: 'error', redis: 'ok', service_ready: false },
}

const invite: CallInvite = { callee_user_id: ben.user_id, callee_role: ben.role, ...context }
const offer: WebrtcOffer = { call_uuid, sdp: { type: 'offer', sdp: 'v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\n…' } }
const answer: WebrtcAnswer = { call_uuid, sdp: { type: 'answer', sdp: 'v=0\r\no=- 2 1 IN IP4 192.0.2.2\r\n…' } }
const candidate: WebrtcIceCandidate = {
  call_uuid,
  candidate: {
    candidate: 'candidate:1 1 udp 2122260223 192.0.2.1 50000 typ host',
    sdpMid: '0',
    sdpMLineIndex: 0,
  },
}

const muted: CallMedia = { call_uuid, audio: false, video: true, screen: false }

export const clientData = {
  'call.invite': {
    invite,
    'invite with options': { ...invite, call_type: 'video', call_uuid, ring_timeout_ms: 30_000 },
  },
  'call.accept': { accept: { call_uuid } },
  'call.reject': { reject: { call_uuid }, 'this device is busy': { call_uuid, reason: 'busy' } },
  'call.cancel': { cancel: { call_uuid } },
  'call.end': { end: { call_uuid }, 'end with a reason': { call_uuid, reason: 'call_quality' } },
  'call.connected': { connected: { call_uuid } },
  'webrtc.offer': { offer },
  'webrtc.answer': { answer },
  'webrtc.ice_candidate': { candidate, 'end of candidates': { call_uuid, candidate: null } },
  'call.alerting': { alerting: { call_uuid } },
  'call.media': { muted },
  'call.take': { take: { call_uuid } },
  'call.list': { list: {} },
  'call.transfer': {
    transfer: { call_uuid, to_role: 'agent', to_user_id: 'eva', metadata: { topic: 'delivery' } },
    'to another call of this session': { call_uuid, to_call_uuid },
  },
  'presence.watch': {
    'two colleagues': {
      participants: [
        { role: 'agent', user_id: 'ben' },
        { role: 'agent', user_id: 'eva' },
      ],
    },
    nobody: { participants: [] },
  },
  'call.stats': {
    'after 30 s': {
      call_uuid,
      stats: {
        ...{ rtt_ms: 48, jitter_ms: 6, loss: 0.004, bitrate: 41_000, frames_dropped: 0 },
        candidate_pair: { local: 'srflx', remote: 'host' },
        codec: 'audio/opus',
      },
    },
  },
  'auth.refresh': { refresh: { token } },
}

const authOk: AuthOk = { ...ann, display_name: 'Ann', socket_id: 'aK4q5Xc0mX9T3uYb1cQm1V8wA' }
const invited: CallInvited = {
  call_uuid,
  status: 'ringing',
  call_type: 'audio',
  ring_timeout_ms: 45_000,
  expires_at: at('09:05:45.000'),
  delivered: true,
}
const ringing: CallRinging = {
  call_uuid,
  ...caller,
  display_name: 'Ann',
  ...context,
  call_type: 'audio',
  ring_timeout_ms: 44_990,
  expires_at: at('09:05:45.000'),
}
const accepted: CallAccepted = { call_uuid, status: 'accepted' }
const absence = { since: at('09:06:00.000'), ends_at: at('09:08:00.000') }
const away: CallPeerAway = { call_uuid, ...absence }
const rejected: CallOver = {
  call_uuid,
  status: 'rejected',
  reason: 'declined',
  by: ben,
  ended_at: at('09:05:04.210'),
}
const cancelled: CallOver = {
  call_uuid,
  status: 'cancelled',
  reason: 'caller_cancelled',
  by: ann,
  ended_at: at('09:05:20.000'),
}
const elsewhere: CallOver = { call_uuid, status: 'accepted', reason: 'answered_elsewhere', by: ben, ended_at: null }
const ended: CallOver = { call_uuid, status: 'ended', reason: 'hangup', by: ben, ended_at: at('09:12:40.000') }
const peerLost: CallOver = { ...ended, reason: 'peer_lost', by: null }
const missed: CallMissed = {
  call_uuid,
  status: 'missed',
  reason: 'no_answer',
  ...caller,
  callee_user_id: ben.user_id,
  callee_role: ben.role,
  display_name: 'Ann',
  ...context,
  call_type: 'audio',
  started_at: at('09:05:00.000'),
  ended_at: at('09:05:45.000'),
}

const activeCall: ActiveCall = {
  call_uuid,
  status: 'accepted',
  version: 2,
  direction: 'outgoing',
  peer: { ...ben, display_name: 'Ben' },
  call_type: 'audio',
  ...context,
  started_at: at('09:05:00.000'),
  expires_at: at('09:05:45.000'),
  holds_place: true,
}
const extendedAuthOk: ExtendedAuthOk = {
  ...authOk,
  session_id: 'aK4Jm2dY0wXhQz4c1uKkq7V3g',
  epoch: 'x1cQm2dY0wU',
  active_calls: [],
  resume_window_ms: 120_000,
  server_time: at('09:04:58.000'),
  recovered: false,
  handled: 0,
}
const resumed: ExtendedAuthOk = {
  ...extendedAuthOk,
  socket_id: 'aK4b1cQm1V8wAq5Xc0mX9T3uY',
  server_time: at('09:05:10.000'),
  active_calls: [activeCall],
  recovered: true,
  handled: 3,
}
const reset: SessionReset = {
  session_id: extendedAuthOk.session_id,
  epoch: 'Kkq7V3gJm2c',
  active_calls: [{ ...activeCall, peer: { ...activeCall.peer, away: absence } }],
}
const acknowledged: CallAck = { call_uuid, status: 'accepted' }
const connected: CallStatusChanged = { call_uuid, status: 'connected', by: ben }
const alerting: CallAlertingBy = { call_uuid, by: ben }
const refreshed: AuthRefreshed = { expires_at: at('11:00:00.000') }

export const serverData = {
  'auth.ok': { authenticated: authOk, 'extended session': extendedAuthOk, 'extended session, resumed': resumed },
  'call.invited': { invited, 'nobody was reached': { ...invited, delivered: false } },
  'call.ringing': { ringing, 'with metadata': { ...ringing, metadata: { topic: 'delivery' } } },
  'call.accepted': { accepted, 'extended session': { ...accepted, display_name: 'Ben' } },
  'call.rejected': { rejected },
  'call.cancelled': { cancelled, 'answered elsewhere': elsewhere },
  'call.ended': { ended, 'the peer was lost': peerLost },
  'call.missed': { missed },
  'webrtc.offer': { offer: { ...offer, ...origin } },
  'webrtc.answer': { answer: { ...answer, from_user_id: ben.user_id, from_role: ben.role } },
  'webrtc.ice_candidate': { candidate: { ...candidate, ...origin } },
  'call.ack': { acknowledged },
  'call.status': { connected },
  'call.alerting': { alerting },
  'call.media': { muted: { ...muted, ...origin } },
  'call.peer_away': { away },
  'call.peer_back': { back: { call_uuid } },
  'call.peer_moved': { moved: { call_uuid } },
  'call.listed': {
    'a call at another device': { active_calls: [{ ...activeCall, holds_place: false, elsewhere: true }] },
    'no call': { active_calls: [] },
  },
  'call.transfer_started': { started: { call_uuid, new_call_uuid } },
  'call.transferring': {
    'it rings at the target': {
      ...{ call_uuid, new_call_uuid, status: 'ringing', direction: 'outgoing' },
      to: { user_id: 'eva', role: 'agent', display_name: null },
    },
    'two calls became one': {
      ...{ call_uuid, new_call_uuid, status: 'accepted', direction: 'outgoing' },
      to: { user_id: 'eva', role: 'agent', display_name: 'Eva' },
    },
  },
  'call.transfer_failed': {
    declined: { call_uuid, new_call_uuid, status: 'rejected', end_reason: 'declined' },
  },
  'presence.state': {
    'one is there': {
      participants: [
        { role: 'agent', user_id: 'ben', online: true, in_call: true },
        { role: 'agent', user_id: 'eva', online: false, in_call: false },
      ],
    },
  },
  'presence.changed': { gone: { participants: [{ role: 'agent', user_id: 'ben', online: false, in_call: false }] } },
  'ice.servers': { renewed: iceServersResponse },
  'auth.refreshed': { refreshed },
  'session.reset': { reset },
}

/** The fields of an error besides code and message, if it has any. */
export const errorDetails: Partial<Record<ErrorCode, Partial<ErrorBody>>> = {
  INVALID_PAYLOAD: { field: 'callee_user_id', message: 'callee_user_id is required' },
  PAYLOAD_TOO_LARGE: { field: 'sdp.sdp', message: 'sdp.sdp must have at most 49152 bytes' },
  CALL_TYPE_INVALID: { field: 'call_type' },
  CALL_INVALID_STATE: { status: 'ended' },
  CALL_GLARE: { call_uuid },
  RATE_LIMITED: { retry_after_ms: 1200, limit: 'invites' },
}
