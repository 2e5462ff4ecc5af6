import Type, { type Static } from 'typebox'
import { CallStatus } from './rest.ts'
import { boundedText, timestamp, uuid } from './text.ts'

/** Push services put more into their addresses than into names. */
const maxAddressBytes = 2048
const base64url = (maxLength: number, description: string) =>
  Type.String({ pattern: '^[A-Za-z0-9_-]+={0,2}$', maxLength, description })

/** PUT /v1/call/device [PUSH1]. */
export const DeviceRequest = Type.Object({
  platform: Type.Enum(['webpush', 'fcm', 'apns']),
  subscription: Type.Optional(
    Type.Object(
      {
        endpoint: boundedText(maxAddressBytes, 'URL of the push service.'),
        keys: Type.Object({
          p256dh: base64url(128, 'Public key of P-256, uncompressed, base64url.'),
          auth: base64url(64, '16 bytes, base64url.'),
        }),
      },
      { description: 'webpush: the result of PushSubscription.toJSON().' },
    ),
  ),
  token: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: maxAddressBytes,
      pattern: '^[\\x21-\\x7e]+$',
      description: 'fcm: the registration token. apns: the device token, hexadecimal.',
    }),
  ),
  voip: Type.Optional(Type.Boolean({ description: 'apns: whether the token is of PushKit.' })),
  environment: Type.Optional(Type.Enum(['production', 'sandbox'], { description: 'apns.' })),
})
export type DeviceRequest = Static<typeof DeviceRequest>

export const DeviceResponse = Type.Object({
  device_id: Type.String({ description: 'Of the session token.' }),
  platform: Type.Enum(['webpush', 'fcm', 'apns']),
  pushes: Type.Boolean({ description: 'Whether the service has credentials for this platform.' }),
})
export type DeviceResponse = Static<typeof DeviceResponse>

const calleeGroup = Type.Optional(Type.String({ description: 'The group that is called [GROUP1].' }))
const caller = Type.Object({ user_id: Type.String(), role: Type.String(), display_name: Type.String() })

/** The data that wakes a device [PUSH2]. FCM only has text: there `caller` is JSON. */
export const CallWake = Type.Object({
  type: Type.Literal('call.wake'),
  call_uuid: uuid(),
  call_type: Type.String(),
  caller,
  callee_group: calleeGroup,
  expires_at: timestamp('When it stops ringing.'),
  ring_ticket: Type.String({ description: 'For GET /v1/call/ring and the other requests of a ring [TICK1].' }),
})
export type CallWake = Static<typeof CallWake>

/** The data for a woken device when the call stopped ringing before it was answered there [PUSH2]. */
export const CallWakeCancelled = Type.Object({
  type: Type.Literal('call.wake_cancelled'),
  call_uuid: uuid(),
  call_type: Type.String(),
  caller,
  callee_group: calleeGroup,
  status: CallStatus,
  end_reason: Type.Union([Type.String(), Type.Null()]),
})
export type CallWakeCancelled = Static<typeof CallWakeCancelled>
