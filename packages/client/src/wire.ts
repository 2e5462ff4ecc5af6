import type { AuthRefreshed, CallListed, ExtendedAuthOk, SessionReset } from '@ringwire/protocol/events/auth'
import type {
  CallAccepted,
  CallAck,
  CallAlertingBy,
  CallInvited,
  CallMedia,
  CallMissed,
  CallOver,
  CallPeerAway,
  CallPeerBack,
  CallPeerMoved,
  CallRinging,
  CallStatusChanged,
  CallTransferFailed,
  CallTransferring,
  CallTransferStarted,
} from '@ringwire/protocol/events/call'
import type { WebrtcAnswer, WebrtcIceCandidate, WebrtcOffer } from '@ringwire/protocol/events/webrtc'
import type { IceServersResponse } from '@ringwire/protocol/rest'
import { errorFromWire, type RingwireError } from './error.ts'
import { isObject, parseJson } from './json.ts'

/** What the service pushes to an extended session, by event. */
export interface Pushes {
  'call.ringing': CallRinging
  'call.accepted': CallAccepted
  'call.rejected': CallOver
  'call.cancelled': CallOver
  'call.ended': CallOver
  'call.missed': CallMissed
  'call.status': CallStatusChanged
  'call.alerting': CallAlertingBy
  'call.media': CallMedia
  'call.peer_away': CallPeerAway
  'call.peer_back': CallPeerBack
  'call.peer_moved': CallPeerMoved
  'call.transfer_started': CallTransferStarted
  'call.transferring': CallTransferring
  'call.transfer_failed': CallTransferFailed
  'webrtc.offer': WebrtcOffer
  'webrtc.answer': WebrtcAnswer
  'webrtc.ice_candidate': WebrtcIceCandidate
  'ice.servers': IceServersResponse
  'session.reset': SessionReset
}
export type Push = { [E in keyof Pushes]: { readonly event: E; readonly data: Pushes[E] } }[keyof Pushes]

/** Replies that are not errors. */
export type ReplyData = CallInvited | CallAck | CallListed | CallTransferStarted | AuthRefreshed

export interface Envelope {
  readonly event: string
  readonly request_id?: string
  readonly seq?: number
  /** Of `call.error`, and of nothing else. */
  readonly error: RingwireError | undefined
  readonly data: Readonly<Record<string, unknown>>
}

/** Reads a message of the service; undefined if it is not a message. The contents of `data` are the service's word. */
export function readEnvelope(text: string): Envelope | undefined {
  const value = parseJson(text)
  if (!isObject(value) || typeof value.event !== 'string') return undefined
  const error = value.event === 'call.error' ? errorFromWire(value.error) : undefined
  return { ...value, error, data: isObject(value.data) ? value.data : {} } as unknown as Envelope
}

/** `auth.ok` of an extended session; undefined where the service knows base sessions only. */
export function readAuthOk({ data }: Envelope): ExtendedAuthOk | undefined {
  return typeof data.session_id === 'string' ? (data as unknown as ExtendedAuthOk) : undefined
}

/**
 * The most bytes of UTF-8 that a text can have: JSON escapes control characters, and the rest takes three for a UTF-16
 * unit.
 */
export function utf8Length(json: string): number {
  return json.replace(/[^ -~]/g, '...').length
}
