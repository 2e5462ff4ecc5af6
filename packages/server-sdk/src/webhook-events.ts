import type { Call, CallHeld, CallQuality, WebhookType } from './types.ts'

/** The data of webhooks, by their type: `switch (event.type)` knows the `data` of each. */

/** A newer service may add fields. */
type Data<T> = T & Record<string, unknown>

interface Told<Type extends string, T> {
  /** The same for every attempt to deliver it: a receiver that has seen it may drop it. */
  id: string
  type: Type
  /** When it happened. ISO 8601, UTC. */
  timestamp: string
  data: Data<T>
}

/** A device of the callee: it is registered, or connected. */
export interface WakeDevice {
  device_id: string | null
  /** Null: it is not registered, but connected. */
  platform: 'webpush' | 'fcm' | 'apns' | null
  /** It has a session: it rings there. */
  reached: boolean
  /** The service pushes to it by itself. */
  pushed: boolean
}

/** The fields of `call.wake` besides the call. */
export interface Wake {
  /** When it stops ringing. */
  expires_at: string
  /** For `GET /v1/call/ring` and the other requests of a ring. New for each attempt. */
  ring_ticket: string
  devices: WakeDevice[]
}

/** The report of the media when an answered call ends. */
export interface EndQuality {
  /** How it was; null: nothing was reported, or it could not be read in time. */
  quality: CallQuality | null
  /** For how long each side had the call on hold; null: it could not be read in time. */
  held: CallHeld | null
}

type PlainType = Exclude<WebhookType, 'call.ended' | 'call.wake' | `participant.${string}`>

/** The call is as it was right after the step. */
export type CallEvent =
  | { [T in PlainType]: Told<T, Call> }[PlainType]
  | Told<'call.ended', Call & EndQuality>
  | Told<'call.wake', Call & Wake>
export type ParticipantEvent =
  | Told<'participant.online', { user_id: string; role: string }>
  | Told<'participant.offline', { user_id: string; role: string }>
/** Somebody asked for it; `webhook_id` is that of the endpoint. */
export type TestEvent = Told<'webhook.test', { webhook_id: string }>
export type KnownEvent = CallEvent | ParticipantEvent | TestEvent

declare const newer: unique symbol
/** Any text but the types above. TypeScript has no word for that: so that `===` tells them apart, this is one text. */
type NewerType = '(newer)' & { readonly [newer]: never }
/** Types that a newer service adds; `const type: string = event.type` is its type. */
export type UnknownEvent = Told<NewerType, unknown>

/** A webhook as it was sent. */
export type WebhookEvent = KnownEvent | UnknownEvent
