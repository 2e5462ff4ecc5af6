import type { EndReasonOf, OverStatus } from '@ringwire/protocol/end-reasons'
import type {
  webhookHeaders as headers,
  WebhookBody,
  WebhookCall,
  WebhookEventType,
} from '@ringwire/protocol/webhook-events'
import { callShown, ringResponse, timelineShown, webhook, webhookQueued } from './examples.ts'

/** Of the story of the other examples: Ann, a customer, calls Ben, an agent, about order 1042. */
type BodyOf<T extends WebhookEventType> = Extract<WebhookBody, { type: T }>
type CallType = Exclude<WebhookEventType, 'call.ended' | 'call.wake' | `participant.${string}` | 'webhook.test'>

const at = (time: string) => `2026-03-02T${time}Z`
const connected: WebhookCall = callShown.call
const { caller: ann } = connected
const ben = { ...connected.callee, user_id: connected.callee.user_id ?? '' }
const by = ({ user_id, role }: typeof ann) => ({ user_id, role })

const ringing: WebhookCall = {
  ...connected,
  version: 1,
  status: 'ringing',
  callee: { ...ben, display_name: null },
  accepted_at: null,
  connected_at: null,
}
const accepted: WebhookCall = { ...connected, version: 2, status: 'accepted', connected_at: null, by: by(ben) }
const missed: WebhookCall = { ...ringing, ...timelineShown.call }
const over = <S extends OverStatus>(status: S, end_reason: EndReasonOf<S>, who: typeof ann): WebhookCall => ({
  ...missed,
  status,
  end_reason,
  ended_at: at('09:05:12.300'),
  by: by(who),
})
const busy: WebhookCall = { ...over('busy', 'busy', ann), version: 1, ended_at: ringing.started_at }
const rejected = over('rejected', 'declined', ben)
const cancelled = over('cancelled', 'caller_cancelled', ann)

/** It happened when the call came to be so. */
const told = <T extends CallType>(type: T, data: WebhookCall) => ({
  type,
  timestamp: data.ended_at ?? data.connected_at ?? data.accepted_at ?? data.started_at,
  data,
})

export const webhookBodies: { readonly [T in WebhookEventType]: BodyOf<T> } = {
  'call.ringing': told('call.ringing', ringing),
  'call.accepted': told('call.accepted', accepted),
  'call.connected': told('call.connected', connected),
  'call.ended': {
    type: 'call.ended',
    timestamp: at('09:07:31.402'),
    data: {
      ...connected,
      version: 4,
      status: 'ended',
      end_reason: 'hangup',
      ended_at: at('09:07:31.402'),
      quality: {
        caller: {
          reports: 5,
          rtt_ms: { min: 38, avg: 41.5, max: 60 },
          loss: { min: 0, avg: 0.002, max: 0.01 },
          candidate_pair: { local: 'srflx', remote: 'relay' },
          codec: 'audio/opus',
        },
        callee: null,
      },
      held: { caller_ms: 12_500, callee_ms: 0 },
    },
  },
  'call.rejected': told('call.rejected', rejected),
  'call.cancelled': told('call.cancelled', cancelled),
  'call.missed': told('call.missed', missed),
  'call.busy': told('call.busy', busy),
  'call.wake': {
    type: 'call.wake',
    timestamp: ringing.started_at,
    data: {
      ...ringing,
      expires_at: ringResponse.expires_at,
      ring_ticket: 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJiZW4ifQ.c2lnbmF0dXJl',
      devices: [
        { device_id: 'tablet', platform: 'webpush', reached: false, pushed: true },
        { device_id: 'laptop', platform: null, reached: true, pushed: false },
      ],
    },
  },
  'call.wake_cancelled': told('call.wake_cancelled', accepted),
  'participant.online': { type: 'participant.online', timestamp: at('09:00:00.000'), data: by(ann) },
  'participant.offline': { type: 'participant.offline', timestamp: at('10:00:00.000'), data: by(ann) },
  'webhook.test': { type: 'webhook.test', timestamp: at('09:00:00.000'), data: { webhook_id: webhook.id } },
}

export const webhookHeaders: Readonly<Record<keyof typeof headers, string>> = {
  'webhook-id': webhookQueued.delivery_id,
  'webhook-timestamp': '1772442451',
  'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
}
