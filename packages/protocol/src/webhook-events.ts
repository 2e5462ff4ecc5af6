import Type, { type Static } from 'typebox'
import { CallHeld, CallQuality, CallView, callHookTypes, participantHookTypes } from './backend.ts'
import { timestamp } from './text.ts'

/** The bodies of webhooks, as an endpoint is sent them [HOOK2]. */

const { quality: _quality, held: _held, ...callFields } = CallView.properties

/** A call as it was right after a step. */
export const WebhookCall = Type.Object(callFields)
export type WebhookCall = Static<typeof WebhookCall>

/** A device of the callee: it is registered, or connected. */
export const WakeDevice = Type.Object({
  device_id: Type.Union([Type.String(), Type.Null()], { description: 'null: its token has none.' }),
  platform: Type.Union([Type.Enum(['webpush', 'fcm', 'apns']), Type.Null()], {
    description: 'null: it is not registered, but connected.',
  }),
  reached: Type.Boolean({ description: 'Whether it has a session: then it rings there.' }),
  pushed: Type.Boolean({ description: 'Whether the service pushes to it by itself.' }),
})
export type WakeDevice = Static<typeof WakeDevice>

/** A member of a called group: the event is about this one [GROUP1]. */
export const WakeMember = Type.Object({ user_id: Type.String(), role: Type.String() })
export type WakeMember = Static<typeof WakeMember>
const member = Type.Optional(
  Type.Object(WakeMember.properties, { description: 'Of a call to a group: the member. One event for each member.' }),
)

const WakeData = Type.Object({
  ...callFields,
  member,
  expires_at: timestamp('When it stops ringing.'),
  ring_ticket: Type.String({
    description: 'For GET /v1/call/ring and the other requests of a ring [TICK1]. New for each attempt.',
  }),
  devices: Type.Array(WakeDevice, { description: 'Of the callee, or of the member, as of this attempt.' }),
})
const WakeCancelledData = Type.Object({ ...callFields, member })
const EndData = Type.Object({
  ...callFields,
  quality: Type.Union([CallQuality, Type.Null()], {
    description:
      'How the media was, as it was reported until then; null: nothing was, or it could not be read in time.',
  }),
  held: Type.Union([CallHeld, Type.Null()], {
    description: 'For how long each side had the call on hold [HOLD1]; null: it could not be read in time.',
  }),
})
const ParticipantData = Type.Object({ user_id: Type.String(), role: Type.String() })
const TestData = Type.Object({ webhook_id: Type.String({ description: 'id of the endpoint.' }) })

function webhook<T extends string, D extends Type.TSchema>(type: T, data: D, description: string) {
  return Type.Object({ type: Type.Literal(type), timestamp: timestamp('When it happened.'), data }, { description })
}

/** Every type that is sent, and on request `webhook.test` [HOOK2]. */
export const webhookEventTypes = [...callHookTypes, ...participantHookTypes, 'webhook.test'] as const
export type WebhookEventType = (typeof webhookEventTypes)[number]

/** The whole body of each type. */
export const webhookEvents = {
  'call.ringing': webhook('call.ringing', WebhookCall, 'An invite began a call.'),
  'call.accepted': webhook('call.accepted', WebhookCall, 'The call was answered.'),
  'call.connected': webhook('call.connected', WebhookCall, 'Media was reported connected, the first time.'),
  'call.ended': webhook('call.ended', EndData, 'An answered call is over.'),
  'call.rejected': webhook('call.rejected', WebhookCall, 'The callee did not want the call.'),
  'call.cancelled': webhook('call.cancelled', WebhookCall, 'The caller did not want the call any more.'),
  'call.missed': webhook('call.missed', WebhookCall, 'Nobody answered the call.'),
  'call.busy': webhook(
    'call.busy',
    WebhookCall,
    'An invite met a callee in another call, and the product refuses that.',
  ),
  'call.wake': webhook('call.wake', WakeData, 'The call begins to ring: a backend that pushes by itself does it now.'),
  'call.wake_cancelled': webhook('call.wake_cancelled', WakeCancelledData, 'The call does not ring any more.'),
  'participant.online': webhook('participant.online', ParticipantData, 'Somebody has a socket now.'),
  'participant.offline': webhook('participant.offline', ParticipantData, 'Somebody has had no socket for 5 s.'),
  'webhook.test': webhook('webhook.test', TestData, 'Somebody asked for it.'),
} as const satisfies Readonly<Record<WebhookEventType, Type.TSchema>>

/** A body, by its type. */
export type WebhookBody = { [T in WebhookEventType]: Static<(typeof webhookEvents)[T]> }[WebhookEventType]

/** The headers of a request (Standard Webhooks). */
export const webhookHeaders = {
  'webhook-id': Type.String({
    description: 'Of the delivery. The same at each attempt: a receiver that has seen it may drop it.',
  }),
  'webhook-timestamp': Type.String({
    pattern: '^\\d{1,12}$',
    description: 'Of the attempt, in seconds since the epoch.',
  }),
  'webhook-signature': Type.String({
    pattern: '^v1,[A-Za-z0-9+/]{43}=( v1,[A-Za-z0-9+/]{43}=)*$',
    description: 'HMAC-SHA256 of id.timestamp.body with each secret that counts, in base64, with spaces between them.',
  }),
} as const
