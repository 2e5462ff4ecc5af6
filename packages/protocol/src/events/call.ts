import Type, { type Static } from 'typebox'
import { endReasons } from '../end-reasons.ts'
import { CallStatus } from '../rest.ts'
import { boundedText, maxIdBytes, participantName, timestamp, uuid } from '../text.ts'
import { transferOrigin } from '../transfers.ts'

export type { TransferOrigin } from '../transfers.ts'

const optional = <T extends Type.TSchema>(schema: T) => Type.Optional(Type.Union([schema, Type.Null()]))
/** Hanging up never fails for its reason [END1]. */
const reason = () =>
  Type.Optional(
    Type.Unknown({
      description:
        'Why, as the client names it. It becomes [a-z0-9_]{1,64}: "User Busy" is user_busy. A value that is not a text counts as none.',
    }),
  )
const mostReasonLength = 64

/** The reason of a hang-up in the form in which others hear it; null where a client gave none [END2]. */
export function readReason(value: unknown): string | null {
  if (typeof value !== 'string') return null
  return (
    value
      .toLowerCase()
      .replaceAll(/[^a-z0-9_]+/g, '_')
      .slice(0, mostReasonLength) || null
  )
}

/** Bounds of `call.invite` [INV1]. */
export const inviteLimits = {
  metadataBytes: 1024,
  callTypePattern: '^[a-z0-9_-]{1,32}$',
  defaultCallType: 'audio',
} as const

export const CallInvite = Type.Object({
  callee_user_id: optional(participantName('Callee participant ID.')),
  callee_group: optional(participantName('Name of a group of the role, instead of callee_user_id [GROUP1].')),
  callee_role: participantName("Callee role; must be in the token's allowed_peer_roles."),
  context_type: optional(boundedText(maxIdBytes, "Application-defined context type; the token's by default.")),
  context_id: optional(boundedText(maxIdBytes, "Application-defined context ID; the token's by default.")),
  call_type: Type.Optional(Type.Unknown({ description: 'Type of call, [a-z0-9_-]{1,32}, default audio.' })),
  call_uuid: optional(uuid('Idempotency key [INV3].')),
  ring_timeout_ms: optional(Type.Integer({ minimum: 1, description: 'May only shorten the ring timeout.' })),
  metadata: optional(Type.Record(Type.String(), Type.Unknown(), { description: 'Passed on, at most 1 KiB of JSON.' })),
})
export type CallInvite = Static<typeof CallInvite>

/** Hands the other side of an answered call over to somebody else [XFER1]. */
export const CallTransfer = Type.Object({
  call_uuid: uuid('The call that is transferred.'),
  to_role: optional(
    participantName(
      "Role of the target; must be in the token's allowed_peer_roles. Required unless to_call_uuid is given.",
    ),
  ),
  to_user_id: optional(participantName('The target.')),
  to_group: optional(participantName('A group of the role as the target, instead of to_user_id [GROUP1].')),
  to_call_uuid: optional(
    uuid('Another answered call of this session: its other side is the target, and nobody rings.'),
  ),
  metadata: optional(
    Type.Record(Type.String(), Type.Unknown(), {
      description: 'Of the new call, at most 1 KiB of JSON; that of the first call by default.',
    }),
  ),
})
export type CallTransfer = Static<typeof CallTransfer>

export const CallAccept = Type.Object({ call_uuid: uuid() })
export const CallConnected = Type.Object({ call_uuid: uuid() })
/** The phone of the callee really rings [EXT5]. */
export const CallAlerting = Type.Object({ call_uuid: uuid() })
/** Goes on with an answered call here: it is at another session of the participant [TAKE1]. */
export const CallTake = Type.Object({ call_uuid: uuid() })
export const CallReject = Type.Object({ call_uuid: uuid(), reason: reason() })
export const CallCancel = Type.Object({ call_uuid: uuid(), reason: reason() })
export const CallEnd = Type.Object({ call_uuid: uuid(), reason: reason() })

const party = {
  caller_user_id: Type.String(),
  caller_role: Type.String(),
}

/** How long the other side's place has been vacant, and when the call ends for it [PEER1]. */
export const PeerAbsence = Type.Object({
  since: timestamp('When its place fell vacant.'),
  ends_at: timestamp('When the call ends unless it comes back, as far as that is known now.'),
})
export type PeerAbsence = Static<typeof PeerAbsence>

/** The two calls that every event of a transfer is about. */
const transfer = {
  call_uuid: uuid('The first call.'),
  new_call_uuid: uuid('The call with the target.'),
}
/** Reply to `call.transfer` [XFER1]. */
export const CallTransferStarted = Type.Object(transfer)
export type CallTransferStarted = Static<typeof CallTransferStarted>

/** To a side that is transferred: the new call goes on where this one ends [XFER1]. */
export const CallTransferring = Type.Object({
  ...transfer,
  status: Type.Enum(['ringing', 'accepted'], {
    description: 'Of the new call. accepted: it came from to_call_uuid, and nobody rings.',
  }),
  direction: Type.Enum(['outgoing', 'incoming'], {
    description:
      'Of the new call, as in active_calls. The side whose call is outgoing makes the offer once it is accepted.',
  }),
  to: Type.Object(
    {
      user_id: Type.Union([Type.String(), Type.Null()], { description: 'null: nobody of the group has accepted yet.' }),
      role: Type.String(),
      group: Type.Optional(Type.String({ description: 'The group that is the target [GROUP1].' })),
      display_name: Type.Union([Type.String(), Type.Null()]),
      away: Type.Optional(PeerAbsence),
    },
    {
      description:
        'With whom the new call is; display_name is null until the target answered, and away is there while it is away.',
    },
  ),
})
export type CallTransferring = Static<typeof CallTransferring>

/** To both sides of the first call, which goes on: the target did not answer [XFER1]. */
export const CallTransferFailed = Type.Object({
  ...transfer,
  status: CallStatus,
  end_reason: Type.String({ description: 'Why the new call is over, as in call.ended.' }),
})
export type CallTransferFailed = Static<typeof CallTransferFailed>

export const CallInvited = Type.Object({
  call_uuid: uuid(),
  status: CallStatus,
  call_type: Type.String(),
  ring_timeout_ms: Type.Integer({ description: 'Milliseconds until the call is missed.' }),
  expires_at: timestamp('When the call is missed.'),
  delivered: Type.Boolean({ description: 'Whether any session of the callee was reached.' }),
  callee_busy: Type.Optional(Type.Boolean()),
})
export type CallInvited = Static<typeof CallInvited>

export const CallRinging = Type.Object({
  call_uuid: uuid(),
  ...party,
  display_name: Type.String({ description: "The caller's name." }),
  context_type: Type.String(),
  context_id: Type.String(),
  call_type: Type.String(),
  ring_timeout_ms: Type.Integer({ description: 'Milliseconds that remain [RING2].' }),
  expires_at: timestamp('When the call is missed.'),
  metadata: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
  callee_group: Type.Optional(Type.String({ description: 'The group that is called [GROUP1].' })),
  ...transferOrigin,
})
export type CallRinging = Static<typeof CallRinging>

export const CallAccepted = Type.Object({
  call_uuid: uuid(),
  status: Type.Literal('accepted'),
  display_name: Type.Optional(Type.String({ description: "The callee's name; only to extended sessions." })),
  callee_user_id: Type.Optional(
    Type.String({ description: 'The member of the group who answered; only to extended sessions [GROUP1].' }),
  ),
})
export type CallAccepted = Static<typeof CallAccepted>

/** Payload of call.rejected, call.cancelled and call.ended [END2]. */
export const CallOver = Type.Object({
  call_uuid: uuid(),
  status: CallStatus,
  reason: Type.String({ description: `Why: ${Object.keys(endReasons).join(', ')}, or what a client gave [END2].` }),
  by: Type.Union([Type.Object({ user_id: Type.String(), role: Type.String() }), Type.Null()]),
  ended_at: Type.Union([timestamp('The end.'), Type.Null()], { description: 'null if the call goes on elsewhere.' }),
})
export type CallOver = Static<typeof CallOver>

export const CallMissed = Type.Object({
  call_uuid: uuid(),
  status: Type.Literal('missed'),
  reason: Type.String(),
  ...party,
  callee_user_id: Type.Union([Type.String(), Type.Null()], { description: 'null: nobody of the group answered.' }),
  callee_group: Type.Optional(Type.String()),
  callee_role: Type.String(),
  display_name: Type.String({ description: "The caller's name." }),
  context_type: Type.String(),
  context_id: Type.String(),
  call_type: Type.String(),
  started_at: timestamp('The invite.'),
  ended_at: timestamp('The end.'),
})
export type CallMissed = Static<typeof CallMissed>

const by = Type.Object({ user_id: Type.String(), role: Type.String() })

/** Reply to a request of an extended session [EXT2]. `volatile`: a relay went to the peer's socket, and is not saved [EXT3]. */
export const CallAck = Type.Object({
  call_uuid: uuid(),
  status: CallStatus,
  volatile: Type.Optional(Type.Literal(true)),
})
export type CallAck = Static<typeof CallAck>

/** The other side reported its media connected; to extended peers [EXT5]. */
export const CallStatusChanged = Type.Object({ call_uuid: uuid(), status: Type.Literal('connected'), by })
export type CallStatusChanged = Static<typeof CallStatusChanged>

/** A phone of the callee really rings; to an extended caller [EXT5]. */
export const CallAlertingBy = Type.Object({ call_uuid: uuid(), by })
export type CallAlertingBy = Static<typeof CallAlertingBy>

/** The media that a side sends at this moment: its peer sees that it is muted, and not why nothing comes [MEDIA1]. */
export const CallMedia = Type.Object({
  call_uuid: uuid(),
  audio: Type.Boolean({ description: 'The microphone is on.' }),
  video: Type.Boolean({ description: 'The camera is on.' }),
  screen: Type.Boolean({ description: 'A screen is shared.' }),
  held: Type.Optional(
    Type.Boolean({ description: 'This side has put the call on hold [HOLD1]. Not given: it has not.' }),
  ),
})
export type CallMedia = Static<typeof CallMedia>

/** What `call.stats` counts: the greatest of each, and its unit [STAT1]. */
export const statNumbers = {
  rtt_ms: { most: 60_000, description: 'Round trip of the media, ms.' },
  jitter_ms: { most: 60_000, description: 'Of what is received, ms.' },
  loss: { most: 1, description: 'Share of the packets that did not arrive, of both directions, 0 to 1.' },
  bitrate: { most: 1e10, description: 'Bits per second that are received.' },
  frames_dropped: { most: 1e9, description: 'Of the received picture, since the last report.' },
} as const

const statNumber = (name: keyof typeof statNumbers) =>
  optional(Type.Number({ minimum: 0, maximum: statNumbers[name].most, description: statNumbers[name].description }))
const candidateType = Type.Enum(['host', 'srflx', 'prflx', 'relay'])

/** How the media is at one side; the service keeps the least, the mean and the greatest [STAT1]. */
export const CallStats = Type.Object({
  call_uuid: uuid(),
  stats: Type.Object({
    rtt_ms: statNumber('rtt_ms'),
    jitter_ms: statNumber('jitter_ms'),
    loss: statNumber('loss'),
    bitrate: statNumber('bitrate'),
    frames_dropped: statNumber('frames_dropped'),
    candidate_pair: optional(
      Type.Object({ local: candidateType, remote: candidateType }, { description: 'Only types, never addresses.' }),
    ),
    codec: optional(Type.String({ pattern: '^[A-Za-z0-9./_-]{1,32}$', description: 'As audio/opus.' })),
  }),
})
export type CallStats = Static<typeof CallStats>

/** The other side lost its place; to extended peers [PEER1]. */
export const CallPeerAway = Type.Object({ call_uuid: uuid(), ...PeerAbsence.properties })
export type CallPeerAway = Static<typeof CallPeerAway>

/** The other side's place is held again [PEER1]. */
export const CallPeerBack = Type.Object({ call_uuid: uuid() })
export type CallPeerBack = Static<typeof CallPeerBack>

/** The other side goes on at another of its devices; to peers that listed `take` [TAKE1]. */
export const CallPeerMoved = Type.Object({ call_uuid: uuid() })
export type CallPeerMoved = Static<typeof CallPeerMoved>
