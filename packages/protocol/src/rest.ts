import Type, { type Static } from 'typebox'
import { endingReasons, overStatuses } from './end-reasons.ts'
import { boundedText, id, maxIdBytes, noDotSegment, participantName, timestamp, uuid } from './text.ts'
import { transferOrigin } from './transfers.ts'

/** What a token permits; the interface's list, always whole [TOK2]. */
export const allowedActions = [
  'call.invite',
  'call.accept',
  'call.reject',
  'call.cancel',
  'call.end',
  'call.connected',
  'webrtc.offer',
  'webrtc.answer',
  'webrtc.ice_candidate',
] as const
export type AllowedAction = (typeof allowedActions)[number]

export const headers = {
  keyId: 'X-SVC-Product-Key-ID',
  secret: 'X-SVC-Product-Secret',
} as const

/** How many roles a token may allow beside `allowed_peer_role` [TOK2]. */
const maxMorePeerRoles = 8

const tokenRequestFields = {
  product: 'Product namespace. Required when the key maps to several products.',
  context_type: 'Application-defined context type.',
  context_id: 'Application-defined context ID.',
  user_id: 'Participant ID from the application.',
  role: "Participant's role.",
  display_name: 'Name shown in the call UI.',
  device_id: 'Client device ID.',
  app_version: 'Client application version.',
  allowed_peer_role: 'Receiver role this participant may call.',
  more_peer_roles: `Further receiver roles this participant may call; at most ${maxMorePeerRoles}.`,
}

const given = (description: string) => Type.Optional(Type.Union([boundedText(maxIdBytes, description), Type.Null()]))

const givenName = (description: string) =>
  Type.Optional(Type.Union([noDotSegment(boundedText(maxIdBytes, description)), Type.Null()]))

const moreRoles = Type.Optional(
  Type.Union([
    Type.Array(participantName('A role.'), {
      maxItems: maxMorePeerRoles,
      description: tokenRequestFields.more_peer_roles,
    }),
    Type.Null(),
  ]),
)

/** POST /v1/call/session-token, as an application backend should send it: what is required is there, and not blank. */
export const TokenRequest = Type.Object({
  product: given(tokenRequestFields.product),
  context_type: id(tokenRequestFields.context_type),
  context_id: id(tokenRequestFields.context_id),
  user_id: participantName(tokenRequestFields.user_id),
  role: participantName(tokenRequestFields.role),
  display_name: id(tokenRequestFields.display_name),
  device_id: given(tokenRequestFields.device_id),
  app_version: given(tokenRequestFields.app_version),
  allowed_peer_role: participantName(tokenRequestFields.allowed_peer_role),
  more_peer_roles: moreRoles,
})
export type TokenRequest = Static<typeof TokenRequest>

/**
 * The same body for the first check: only types and lengths. A field that is missing, null or blank has a code of its
 * own, in an order of its own [TOK1].
 */
export const TokenRequestShape = Type.Object({
  product: given(tokenRequestFields.product),
  context_type: given(tokenRequestFields.context_type),
  context_id: given(tokenRequestFields.context_id),
  user_id: givenName(tokenRequestFields.user_id),
  role: givenName(tokenRequestFields.role),
  display_name: given(tokenRequestFields.display_name),
  device_id: given(tokenRequestFields.device_id),
  app_version: given(tokenRequestFields.app_version),
  allowed_peer_role: givenName(tokenRequestFields.allowed_peer_role),
  more_peer_roles: moreRoles,
})
export type TokenRequestShape = Static<typeof TokenRequestShape>

export const IceServer = Type.Object({
  urls: Type.Array(Type.String(), { description: 'STUN or TURN URLs.' }),
  username: Type.Optional(Type.String({ description: 'Present on TURN entries.' })),
  credential: Type.Optional(Type.String({ description: 'Present on TURN entries.' })),
})
export type IceServer = Static<typeof IceServer>

const iceTransportPolicy = Type.Optional(
  Type.Literal('relay', {
    description:
      'If the product only passes relayed addresses [PRIV1]: the iceTransportPolicy for an RTCPeerConnection.',
  }),
)

/** POST /v1/call/ice-servers, and the push `ice.servers` [EXT5]. */
export const IceServersResponse = Type.Object({
  ice_servers: Type.Array(IceServer),
  ice_transport_policy: iceTransportPolicy,
  expires_at: Type.Union([timestamp('When the TURN credentials run out.'), Type.Null()], {
    description: 'null where they do not.',
  }),
})
export type IceServersResponse = Static<typeof IceServersResponse>

const jwk = { kid: Type.String({ description: 'As in the header of a token.' }), use: Type.Literal('sig') }
const coordinate = Type.String({ description: 'base64url of 32 bytes.' })

/** A public key of session tokens [KEY1]. */
export const JsonWebKey = Type.Union([
  Type.Object({
    kty: Type.Literal('OKP'),
    crv: Type.Literal('Ed25519'),
    x: coordinate,
    alg: Type.Literal('EdDSA'),
    ...jwk,
  }),
  Type.Object({
    ...{ kty: Type.Literal('EC'), crv: Type.Literal('P-256'), x: coordinate, y: coordinate },
    ...{ alg: Type.Literal('ES256'), ...jwk },
  }),
])
export type JsonWebKey = Static<typeof JsonWebKey>

/** GET /.well-known/jwks.json (RFC 7517 section 5). */
export const JsonWebKeySet = Type.Object({ keys: Type.Array(JsonWebKey) })
export type JsonWebKeySet = Static<typeof JsonWebKeySet>

export const TokenResponse = Type.Object({
  token: Type.String({ description: 'Signed JWT session token.' }),
  expires_at: timestamp('Expiry of the token.'),
  ws_url: Type.String({ description: 'WebSocket URL of the signaling endpoint.' }),
  ice_servers: Type.Array(IceServer),
  ice_transport_policy: iceTransportPolicy,
  user: Type.Object({ user_id: Type.String(), role: Type.String(), display_name: Type.String() }),
  allowed_actions: Type.Array(Type.Enum([...allowedActions])),
})
export type TokenResponse = Static<typeof TokenResponse>

export const callStatuses = ['ringing', 'accepted', 'connected', ...overStatuses] as const
export const CallStatus = Type.Enum([...callStatuses], { description: 'Call status.' })
export type CallStatus = (typeof callStatuses)[number]

/** For descriptions: the service has these reasons, and a client may give another one [END2]. */
export const someEndReason = `${endingReasons.join(', ')}, or what a client gave`

const nullable = <T extends Type.TSchema>(schema: T) => Type.Union([schema, Type.Null()])

export const CallRecord = Type.Object({
  call_uuid: uuid(),
  status: CallStatus,
  context_type: Type.String(),
  context_id: Type.String(),
  started_at: timestamp('The invite.'),
  ended_at: Type.Union([timestamp('The end.'), Type.Null()], {
    description: 'null while the call is not over [HIST2].',
  }),
  end_reason: nullable(Type.String({ description: `Why the call is over: ${someEndReason}.` })),
  direction: Type.Enum(['outgoing', 'incoming']),
  peer: Type.Object({
    user_id: nullable(Type.String({ description: 'null: a group was called, and nobody has accepted [GROUP1].' })),
    role: Type.String(),
    group: Type.Optional(Type.String({ description: 'The group that was called, to its caller.' })),
    display_name: nullable(Type.String()),
  }),
  callee_group: Type.Optional(
    Type.String({
      description: 'The called group, for its members: for the one who answered, or for all who missed it.',
    }),
  ),
  call_type: Type.String(),
  accepted_at: nullable(timestamp('When the call was accepted.')),
  connected_at: nullable(timestamp('When media was first reported connected.')),
  duration_ms: nullable(Type.Integer({ description: 'Milliseconds from accepted_at to ended_at.' })),
  ...transferOrigin,
})
export type CallRecord = Static<typeof CallRecord>

/** Bounds of the history query parameter `limit` [HIST1]. */
export const historyLimit = { default: 30, min: 1, max: 100 } as const

export const HistoryResponse = Type.Object({
  success: Type.Literal(true),
  data: Type.Array(CallRecord, { description: 'Newest started_at first.' }),
  next_cursor: nullable(Type.String({ description: 'Give it as cursor for the next page; null on the last one.' })),
})
export type HistoryResponse = Static<typeof HistoryResponse>

/** GET /v1/call/ring: the call as a phone shows it that was woken [TICK1]. */
export const RingResponse = Type.Object({
  call_uuid: uuid(),
  status: Type.Literal('ringing'),
  caller: Type.Object({ user_id: Type.String(), role: Type.String(), display_name: Type.String() }),
  call_type: Type.String(),
  context_type: Type.String(),
  context_id: Type.String(),
  expires_at: timestamp('When it stops ringing.'),
})
export type RingResponse = Static<typeof RingResponse>

/** The result of a request with a ring ticket. */
export const RingChanged = Type.Object({
  call_uuid: uuid(),
  status: Type.Enum(['ringing', 'rejected']),
  end_reason: nullable(Type.String({ description: 'null while it rings.' })),
})
export type RingChanged = Static<typeof RingChanged>

/** 410 CALL_NOT_RINGING: what the call is instead. */
export const NotRinging = Type.Object({
  success: Type.Literal(false),
  error: Type.Object({
    code: Type.Literal('CALL_NOT_RINGING'),
    message: Type.String(),
    status: nullable(CallStatus),
    end_reason: nullable(Type.String({ description: 'null if it was answered.' })),
  }),
})
export type NotRinging = Static<typeof NotRinging>

export const Health = Type.Object({
  ok: Type.Boolean(),
  database: Type.Enum(['ok', 'error', 'unchecked']),
  redis: Type.Enum(['ok', 'error', 'unchecked']),
  service_ready: Type.Boolean(),
  /** There while file descriptors run out and newcomers are refused. */
  descriptors: Type.Optional(Type.Literal('low')),
})
export type Health = Static<typeof Health>

export const RestError = Type.Object({
  success: Type.Literal(false),
  error: Type.Object({ code: Type.String(), message: Type.String() }),
})
export type RestError = Static<typeof RestError>
