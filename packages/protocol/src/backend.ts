// Over 350 lines: it is one list of schemas, which share their parts.
import Type, { type Static } from 'typebox'
import { inviteLimits, statNumbers } from './events/call.ts'
import { groupLimits, groupStrategies } from './groups.ts'
import { CallStatus, someEndReason } from './rest.ts'
import { boundedText, jsonBytes, maxIdBytes, participantName, timestamp, uuid } from './text.ts'
import { transferOrigin } from './transfers.ts'

/** The data that application backends see, and their requests [SRV1, SRV2]. */

const nullable = <T extends Type.TSchema>(schema: T) => Type.Union([schema, Type.Null()])

const CallParty = Type.Object({
  user_id: Type.String(),
  role: Type.String(),
  display_name: nullable(Type.String({ description: "The callee's is known once it accepted." })),
})

const CalledParty = Type.Object({
  ...CallParty.properties,
  user_id: nullable(Type.String({ description: 'null: a group was called, and nobody has accepted [GROUP1].' })),
  group: Type.Optional(Type.String({ description: 'The group that was called.' })),
})

const Range = (description: string) =>
  Type.Optional(Type.Object({ min: Type.Number(), avg: Type.Number(), max: Type.Number() }, { description }))

/** What one side of a call reported of its media [STAT1]. */
export const SideQuality = Type.Object({
  reports: Type.Integer(),
  rtt_ms: Range(statNumbers.rtt_ms.description),
  jitter_ms: Range(statNumbers.jitter_ms.description),
  loss: Range(statNumbers.loss.description),
  bitrate: Range(statNumbers.bitrate.description),
  frames_dropped: Range(statNumbers.frames_dropped.description),
  candidate_pair: Type.Optional(
    Type.Object(
      { local: Type.String(), remote: Type.String() },
      { description: 'Types of candidates, of the last report.' },
    ),
  ),
  codec: Type.Optional(Type.String({ description: 'Of the last report.' })),
})
export type SideQuality = Static<typeof SideQuality>

export const CallQuality = Type.Object({ caller: nullable(SideQuality), callee: nullable(SideQuality) })
export type CallQuality = Static<typeof CallQuality>

/** For how long each side had the call on hold [HOLD1]. */
export const CallHeld = Type.Object({
  caller_ms: Type.Integer({ minimum: 0, description: 'Milliseconds.' }),
  callee_ms: Type.Integer({ minimum: 0, description: 'Milliseconds.' }),
})
export type CallHeld = Static<typeof CallHeld>

/** A call as the backend of its product is shown it: both sides, and what the invite said. */
export const CallView = Type.Object({
  call_uuid: uuid(),
  version: Type.Integer({ minimum: 1, description: '1 for a new call, one more with every change.' }),
  status: CallStatus,
  end_reason: nullable(Type.String({ description: `Why the call is over: ${someEndReason}; null before.` })),
  caller: CallParty,
  callee: CalledParty,
  call_type: Type.String(),
  context_type: Type.String(),
  context_id: Type.String(),
  metadata: Type.Union([Type.Record(Type.String(), Type.Unknown()), Type.Null()], {
    description: 'As the invite gave it.',
  }),
  started_at: timestamp('The invite.'),
  accepted_at: nullable(timestamp('When the call was accepted.')),
  connected_at: nullable(timestamp('When media was first reported connected.')),
  ended_at: nullable(timestamp('The end.')),
  by: Type.Union([Type.Object({ user_id: Type.String(), role: Type.String() }), Type.Null()], {
    description: 'Who brought the call into its status; null where time, a loss or a backend did.',
  }),
  ...transferOrigin,
  quality: Type.Optional(
    Type.Union([CallQuality, Type.Null()], {
      description:
        'Of one call, and in call.ended: how the media was, as it was reported until then; null: nothing was, or, in call.ended, ' +
        'it could not be read in time.',
    }),
  ),
  held: Type.Optional(
    Type.Union([CallHeld, Type.Null()], {
      description:
        'Of one call, and in call.ended: for how long each side had it on hold, until now or until the end [HOLD1]; null in ' +
        'call.ended: it could not be read in time.',
    }),
  ),
})
export type CallView = Static<typeof CallView>

/** GET /v1/server/participants/{role}/{user_id}. */
export const ParticipantView = Type.Object({
  success: Type.Literal(true),
  online: Type.Boolean({ description: 'Whether it has a session with a socket.' }),
  sessions: Type.Array(
    Type.Object({
      session_id: Type.String(),
      device_id: nullable(Type.String()),
      connected_at: timestamp('When the session was opened.'),
      extended: Type.Boolean(),
      app_version: Type.Union([Type.String(), Type.Null()], {
        description: 'From the token with which it connected; null if that has none.',
      }),
    }),
    { description: 'Sessions that have a socket, the oldest first.' },
  ),
  devices: Type.Array(
    Type.Object({
      device_id: Type.String(),
      platform: Type.Enum(['webpush', 'fcm', 'apns']),
      registered_at: timestamp('When it last registered its push address.'),
    }),
    { description: 'Devices that can be woken by a push [PUSH1].' },
  ),
  live_calls: Type.Array(CallView, { description: 'Calls that ring or go on, newest first, at most 100.' }),
})
export type ParticipantView = Static<typeof ParticipantView>

/** POST /v1/server/participants/{role}/{user_id}/disconnect; the body may be left out. */
export const DisconnectRequest = Type.Object({
  until: Type.Optional(
    Type.Union([
      boundedText(
        maxIdBytes,
        'Tokens issued before this instant do not count either. ISO 8601, no more than 3,653 days from now.',
      ),
      Type.Null(),
    ]),
  ),
})
export type DisconnectRequest = Static<typeof DisconnectRequest>

export const Disconnected = Type.Object({
  success: Type.Literal(true),
  tokens_from: timestamp('Tokens of the participant that were issued before it do not count.'),
})
export type Disconnected = Static<typeof Disconnected>

/** DELETE /v1/server/participants/{role}/{user_id}. */
export const ParticipantErased = Type.Object({
  success: Type.Literal(true),
  tokens_from: timestamp('Tokens of the participant that were issued before it do not count.'),
  calls: Type.Integer({ description: 'Calls that named it, and do not any more.' }),
  devices: Type.Integer({ description: 'Devices that could be woken.' }),
  timeline_entries: Type.Integer({ description: 'Sightings of it in calls.' }),
  webhook_deliveries: Type.Integer({ description: 'Webhooks that are kept, and named it.' }),
})
export type ParticipantErased = Static<typeof ParticipantErased>

/** GET /v1/server/calls/{call_uuid}. */
export const CallShown = Type.Object({ success: Type.Literal(true), call: CallView })
export type CallShown = Static<typeof CallShown>

/** What happened to a call, or was seen of it [TRACE1]. */
export const TimelineEntry = Type.Object({
  at: timestamp('By the clock of the service.'),
  what: Type.String({
    description:
      'A change of the call: invited, busy, accepted, silenced, connected, rejected, cancelled, ended, missed, place_taken, ' +
      'place_settled, place_lost, clock_shifted, transferring, transfer_failed. Or what was seen: rung, proven, unsure, alerting, socket_lost, socket_found, no_device, members, push, ' +
      'webhook, relays, held, resumed, quality, refused. There may be more.',
  }),
  who: Type.Optional(Type.Object({ user_id: Type.String(), role: Type.String() })),
  device_id: Type.Optional(Type.String()),
  session_id: Type.Optional(Type.String()),
  detail: Type.Record(Type.String(), Type.Unknown(), { description: 'By what it is. Never an address, SDP or token.' }),
})
export type TimelineEntry = Static<typeof TimelineEntry>

/** An invite that was refused before there was a call; `call_uuid` is the one that it named [TRACE1]. */
export const RefusedInvite = Type.Object({ call_uuid: uuid(), entry: TimelineEntry })
export type RefusedInvite = Static<typeof RefusedInvite>

/** GET /v1/server/participants/{role}/{user_id}/export. */
export const ParticipantExport = Type.Object({
  success: Type.Literal(true),
  user_id: Type.String(),
  role: Type.String(),
  exported_at: timestamp('When it was begun.'),
  tokens_from: nullable(timestamp('Tokens issued before it do not count; null: none were revoked.')),
  sessions: ParticipantView.properties.sessions,
  devices: ParticipantView.properties.devices,
  groups: Type.Array(Type.String(), { description: 'Groups of its role that it is a member of.' }),
  calls: Type.Array(
    Type.Object({
      call: CallView,
      entries: Type.Array(TimelineEntry, { description: 'Of its timeline, those of the participant.' }),
    }),
    { description: 'On either side, newest started_at first.' },
  ),
  refused: Type.Array(RefusedInvite, {
    description: 'Invites of the participant that were refused before there was a call, the latest first.',
  }),
  changes: Type.Array(
    Type.Object({
      at: timestamp('When it was made.'),
      action: Type.String(),
      by: Type.Enum(['operator', 'key', 'cli'], { description: 'An operator, a backend with its key, or a command.' }),
    }),
    { description: 'Changes to it, as the audit log has them, newest first [ADM3].' },
  ),
})
export type ParticipantExport = Static<typeof ParticipantExport>

const timelineFields = {
  call: Type.Union([CallView, Type.Null()], { description: 'null: an invite was refused before there was a call.' }),
  entries: Type.Array(TimelineEntry, { description: 'The earliest first, at most 500.' }),
  summary: Type.String({ description: 'What became of it, in one sentence for people.' }),
}
export const TimelineView = Type.Object(timelineFields)
export type TimelineView = Static<typeof TimelineView>

/** GET /v1/server/calls/{call_uuid}/timeline. */
export const TimelineShown = Type.Object({ success: Type.Literal(true), ...timelineFields })
export type TimelineShown = Static<typeof TimelineShown>

/** POST /v1/server/calls/{call_uuid}/end; the body may be left out. */
export const EndRequest = Type.Object({
  reason: Type.Optional(
    Type.Union([boundedText(maxIdBytes, 'Why; kept with the call, and shown to nobody in it.'), Type.Null()]),
  ),
})
export type EndRequest = Static<typeof EndRequest>

const transferTarget = {
  role: participantName('Role of the target.'),
  user_id: Type.Optional(nullable(participantName('The target.'))),
  group: Type.Optional(nullable(participantName('A group of the role as the target, instead of user_id [GROUP1].'))),
}
/** POST /v1/server/calls/{call_uuid}/transfer. */
export const TransferRequest = Type.Object({
  by: Type.Enum(['caller', 'callee'], {
    description:
      'For which side of the call. That side leaves it when the target answers; the other one goes on with the target.',
  }),
  to: Type.Refine(
    Type.Object(transferTarget),
    ({ user_id, group }) => (user_id == null) !== (group == null),
    () => 'must have user_id or group, and not both',
  ),
  metadata: Type.Optional(
    nullable(
      Type.Refine(
        Type.Record(Type.String(), Type.Unknown(), {
          description: 'Of the new call, at most 1 KiB of JSON; that of the first call by default.',
        }),
        (metadata) => jsonBytes(metadata) <= inviteLimits.metadataBytes,
        () => `must be at most ${inviteLimits.metadataBytes} bytes of JSON`,
      ),
    ),
  ),
})
export type TransferRequest = Static<typeof TransferRequest>

/** The answer: it rings at the target. */
export const TransferBegun = Type.Object({
  success: Type.Literal(true),
  call_uuid: uuid('The call that is transferred.'),
  new_call_uuid: uuid('The call that rings at the target.'),
})
export type TransferBegun = Static<typeof TransferBegun>

/** GET /v1/server/calls. */
export const CallPage = Type.Object({
  success: Type.Literal(true),
  data: Type.Array(CallView, { description: 'Newest started_at first.' }),
  refused: Type.Optional(
    Type.Array(RefusedInvite, {
      description: 'Only with refused=1: invites of the participant that were refused, the latest first [TRACE1].',
    }),
  ),
  next_cursor: nullable(Type.String({ description: 'Give it as cursor for the next page; null on the last one.' })),
})
export type CallPage = Static<typeof CallPage>

/** Types of webhooks about calls: what an endpoint hears of that names none [HOOK2]. */
export const callHookTypes = [
  'call.ringing',
  'call.accepted',
  'call.connected',
  'call.ended',
  'call.rejected',
  'call.cancelled',
  'call.missed',
  'call.busy',
  'call.wake',
  'call.wake_cancelled',
] as const
export type CallHookType = (typeof callHookTypes)[number]
/** Types about participants: only where an endpoint names them [HOOK2]. */
export const participantHookTypes = ['participant.online', 'participant.offline'] as const
export type ParticipantHookType = (typeof participantHookTypes)[number]
/** Types of webhooks that an endpoint may ask for [HOOK2]. */
export const hookTypes = [...callHookTypes, ...participantHookTypes] as const
export type HookType = (typeof hookTypes)[number]

const webhookFields = {
  id: Type.String(),
  url: Type.String(),
  events: Type.Array(Type.Enum([...hookTypes]), { description: 'Types that are sent.' }),
  description: nullable(Type.String()),
  enabled: Type.Boolean({ description: 'false: nothing is sent. So it is after an answer of 410.' }),
  created_at: Type.String({ format: 'date-time' }),
}
const secret = Type.String({ description: 'The secret of the signatures: whsec_ and base64. Only shown once.' })

/** A webhook endpoint of a product [HOOK1]. */
export const Webhook = Type.Object(webhookFields)
export type Webhook = Static<typeof Webhook>

/** The answer to POST /v1/server/webhooks. */
export const WebhookWithSecret = Type.Object({ ...webhookFields, secret })
export type WebhookWithSecret = Static<typeof WebhookWithSecret>

/** The answer to POST /v1/server/webhooks/{id}/rotate. */
export const WebhookRotated = Type.Object({
  ...webhookFields,
  secret,
  old_secret_valid_until: Type.String({ format: 'date-time', description: 'Until then both secrets sign.' }),
})
export type WebhookRotated = Static<typeof WebhookRotated>

/** GET /v1/server/webhooks. */
export const WebhookPage = Type.Object({
  success: Type.Literal(true),
  data: Type.Array(Webhook),
  next_cursor: Type.Null({ description: 'There is one page.' }),
})
export type WebhookPage = Static<typeof WebhookPage>

/** The body of POST /v1/server/webhooks, and of PATCH, where nothing is required. */
export const WebhookRequest = Type.Object({
  url: Type.String({ description: 'https, and a public address [HOOK4].', maxLength: 2048 }),
  events: Type.Optional(nullable(Type.Array(Type.Enum([...hookTypes]), { description: 'null: all types of calls.' }))),
  description: Type.Optional(nullable(Type.String({ maxLength: 255 }))),
  enabled: Type.Optional(Type.Boolean()),
})
export type WebhookRequest = Static<typeof WebhookRequest>
export const WebhookChange = Type.Partial(WebhookRequest)
export type WebhookChange = Static<typeof WebhookChange>

/** The answer to …/test and …/retry. */
export const WebhookQueued = Type.Object({ delivery_id: Type.String({ description: 'The webhook-id.' }) })
export type WebhookQueued = Static<typeof WebhookQueued>

/** What became of an event at an endpoint [HOOK3]. */
export const WebhookDelivery = Type.Object({
  id: Type.String({ description: 'The webhook-id.' }),
  type: Type.String(),
  status: Type.Union([Type.Literal('pending'), Type.Literal('delivered'), Type.Literal('failed')]),
  attempts: Type.Integer(),
  created_at: Type.String({ format: 'date-time' }),
  next_attempt_at: nullable(Type.String({ format: 'date-time' })),
  ended_at: nullable(Type.String({ format: 'date-time' })),
  response_status: nullable(Type.Integer({ description: 'Of the last attempt; null: no answer came.' })),
  response: nullable(Type.String({ description: 'The first KiB of the answer, or the error.' })),
})
export type WebhookDelivery = Static<typeof WebhookDelivery>

/** GET /v1/server/webhooks/{id}/deliveries. */
export const DeliveryPage = Type.Object({
  success: Type.Literal(true),
  data: Type.Array(WebhookDelivery, { description: 'The newest first.' }),
  next_cursor: nullable(Type.String()),
})
export type DeliveryPage = Static<typeof DeliveryPage>

const productFields = {
  busy: Type.Enum(['allow', 'reject'], { description: 'The effect of a callee in another call on an invite [INV5].' }),
  reveal_busy: Type.Boolean({ description: 'Whether call.invited says callee_busy [INV2].' }),
  ring_timeout_ms: nullable(
    Type.Integer({
      minimum: 5_000,
      maximum: 180_000,
      description: 'The longest time that calls ring; null: that of the service.',
    }),
  ),
  media: Type.Enum(['all', 'relay'], { description: 'relay: media only goes through the TURN server [PRIV1].' }),
  take: Type.Boolean({ description: 'Whether another device of a participant may take an answered call [TAKE1].' }),
  presence: Type.Enum(['off', 'peers'], {
    description: 'peers: participants see whether their peers are there [PRES1].',
  }),
  invite_url: nullable(
    Type.String({
      maxLength: 2048,
      description: 'The URL that decides on each invite before it rings; null: none [HOOK5].',
    }),
  ),
  invite_failure: Type.Enum(['allow', 'refuse'], { description: 'What becomes of an invite without a valid answer.' }),
}

/** The settings of a product: GET /v1/server/product. */
export const ProductShown = Type.Object({ product: Type.String(), ...productFields })
export type ProductShown = Static<typeof ProductShown>

/** The answer to PATCH /v1/server/product. */
export const ProductChanged = Type.Object({
  product: Type.String(),
  ...productFields,
  invite_secret: Type.Optional(
    Type.String({
      description: 'The secret that signs questions: whsec_ and base64. Shown if invite_url was given.',
    }),
  ),
})
export type ProductChanged = Static<typeof ProductChanged>

/** The body of PATCH /v1/server/product: what is not given stays as it is. */
export const ProductChange = Type.Partial(Type.Object(productFields))
export type ProductChange = Static<typeof ProductChange>

const groupTime = ({ min, max }: { min: number; max: number }, description: string) =>
  Type.Integer({ minimum: min, maximum: max, description })
const memberRing = groupTime(groupLimits.memberRingMs, 'How long one member rings before the next one, in ms.')
const groupRing = groupTime(groupLimits.ringMs, 'How long a call of the group rings in all, in ms.')
const strategy = Type.Enum([...groupStrategies], {
  description: 'all: every member at once. in_turn and longest_idle: one after another.',
})
const groupName = { role: Type.String(), group: Type.String() }

/** The body of PUT /v1/server/groups/{role}/{group}: the group is replaced. */
export const GroupRequest = Type.Object({
  members: Type.Array(participantName('A user_id of the role of the group.'), {
    maxItems: groupLimits.members,
    uniqueItems: true,
    description: 'In the order in which they have their turns.',
  }),
  strategy,
  member_ring_ms: Type.Optional(nullable(memberRing)),
  ring_ms: Type.Optional(nullable(groupRing)),
})
export type GroupRequest = Static<typeof GroupRequest>

/** A group: GET and PUT /v1/server/groups/{role}/{group}. */
export const GroupShown = Type.Object({
  ...groupName,
  members: Type.Array(Type.String()),
  strategy,
  member_ring_ms: memberRing,
  ring_ms: groupRing,
})
export type GroupShown = Static<typeof GroupShown>

/** The answer to GET /v1/server/groups. */
export const GroupPage = Type.Object({
  success: Type.Literal(true),
  data: Type.Array(
    Type.Object({
      ...groupName,
      member_count: Type.Integer({ minimum: 0 }),
      strategy,
      member_ring_ms: memberRing,
      ring_ms: groupRing,
    }),
  ),
  next_cursor: nullable(Type.String({ description: 'For the next page; null on the last one.' })),
})
export type GroupPage = Static<typeof GroupPage>
