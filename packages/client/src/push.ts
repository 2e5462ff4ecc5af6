/** Being woken: registering a device, and what can be said with a ring ticket before there is a session. */
import type { DeviceRequest, DeviceResponse } from '@ringwire/protocol/push'
import type { CallStatus, NotRinging, RingChanged, RingResponse } from '@ringwire/protocol/rest'
import { errorFromWire, RingwireError } from './error.ts'

/** What the ticket's call is: `ringing` with what to show, or what became of it. */
export type Ring =
  | {
      readonly ringing: true
      readonly callUuid: string
      readonly caller: { readonly userId: string; readonly role: string; readonly displayName: string }
      readonly callType: string
      readonly contextType: string
      readonly contextId: string
      /** When it stops ringing. */
      readonly expiresAt: Date
    }
  | NoRing

/** The call does not ring (any more). `status` is null where the ticket is over, or its call is unknown. */
export interface NoRing {
  readonly ringing: false
  readonly status: CallStatus | null
  readonly endReason: string | null
}

/** A ring ticket in use. Each method rejects with a `RingwireError` where the service cannot be asked. */
export interface Ticket {
  /** The call, while it rings. */
  look(): Promise<Ring>
  /** Rejects the call; `status` is `rejected` where it did, or was rejected before. */
  reject(): Promise<NoRing>
  /** Says that this device shows the call: the caller hears that it rings. */
  alerting(): Promise<{ readonly ringing: true } | NoRing>
}

export interface TicketOptions {
  /** The origin of the service, as `https://calls.example.com`. */
  readonly url: string
}

/** Uses the `ring_ticket` of a `call.wake`; it needs no session, so a service worker can do it. */
export function answerTicket(ticket: string, { url }: TicketOptions): Ticket {
  const ask = async <T>(method: string, path = ''): Promise<T | NoRing> => {
    const response = await request(`${url}/v1/call/ring${path}`, method, ticket)
    const body = await readJson<T & NotRinging>(response)
    if (response.ok) return body
    if (response.status === 410) return noRing(body.error.status, body.error.end_reason)
    // The ring is over, and with it the ticket.
    if (response.status === 401) return noRing(null, null)
    throw failure(body)
  }
  return {
    async look() {
      const ring = await ask<RingResponse>('GET')
      if ('ringing' in ring) return ring
      const { user_id: userId, role, display_name: displayName } = ring.caller
      return {
        ringing: true,
        callUuid: ring.call_uuid,
        caller: { userId, role, displayName },
        callType: ring.call_type,
        contextType: ring.context_type,
        contextId: ring.context_id,
        expiresAt: new Date(ring.expires_at),
      }
    },
    async reject() {
      const changed = await ask<RingChanged>('POST', '/reject')
      return 'ringing' in changed ? changed : noRing(changed.status, changed.end_reason)
    },
    async alerting() {
      const changed = await ask<RingChanged>('POST', '/alerting')
      return 'ringing' in changed ? changed : { ringing: true }
    },
  }
}

export interface DeviceOptions {
  /** The origin of the service. */
  readonly url: string
  /** A session token with a `device_id`. */
  readonly token: string
}

export interface BrowserDeviceOptions extends DeviceOptions {
  /** Of the service worker that gets the pushes. */
  readonly registration: ServiceWorkerRegistration
  /** The public key of the service's VAPID key, base64url. */
  readonly vapidPublicKey: string
}

/**
 * Subscribes this browser, which may ask the user, and registers it: it is woken when a call rings and it has no session.
 * To be called at each start of the application. False: the service has no key for Web Push.
 */
export async function registerDevice(options: BrowserDeviceOptions): Promise<boolean> {
  const { url, token, registration, vapidPublicKey } = options
  const { pushManager } = registration
  const key = bytesOf(vapidPublicKey)
  const known = await pushManager.getSubscription()
  const isOurs = known !== null && sameBytes(known.options.applicationServerKey, key)
  // One for another key would be refused by the push service, for ever.
  if (known !== null && !isOurs) await known.unsubscribe()
  const subscription = isOurs
    ? known
    : await pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key })
  const { endpoint = '', keys } = subscription.toJSON()
  const body: DeviceRequest = {
    platform: 'webpush',
    subscription: { endpoint, keys: { p256dh: keys?.p256dh ?? '', auth: keys?.auth ?? '' } },
  }
  const response = await request(`${url}/v1/call/device`, 'PUT', token, JSON.stringify(body))
  const answer = await readJson<DeviceResponse & NotRinging>(response)
  if (!response.ok) throw failure(answer)
  return answer.pushes
}

/** Forgets the device of the token: somebody logs out. */
export async function forgetDevice({ url, token }: DeviceOptions): Promise<void> {
  const response = await request(`${url}/v1/call/device`, 'DELETE', token)
  if (!response.ok) throw failure(await readJson(response))
}

async function request(url: string, method: string, token: string, body?: string): Promise<Response> {
  const headers: Record<string, string> = { Authorization: `Bearer ${token}` }
  if (body !== undefined) headers['Content-Type'] = 'application/json'
  try {
    return await fetch(url, { method, headers, ...(body !== undefined && { body }) })
  } catch (cause) {
    throw new RingwireError('REQUEST_FAILED', 'The service could not be reached.', { retryable: true, cause })
  }
}

async function readJson<T>(response: Response): Promise<T> {
  try {
    return (await response.json()) as T
  } catch (cause) {
    throw new RingwireError('REQUEST_FAILED', 'The answer is no JSON.', { httpStatus: response.status, cause })
  }
}

const failure = (body: unknown) => errorFromWire((body as { error?: unknown } | null)?.error)

function noRing(status: CallStatus | null, endReason: string | null): NoRing {
  return { ringing: false, status, endReason }
}

function bytesOf(base64url: string): Uint8Array<ArrayBuffer> {
  const text = atob(base64url.replaceAll('-', '+').replaceAll('_', '/'))
  return Uint8Array.from(text, (char) => char.charCodeAt(0))
}

function sameBytes(one: ArrayBuffer | null, other: Uint8Array): boolean {
  const bytes = new Uint8Array(one ?? new ArrayBuffer(0))
  return bytes.length === other.length && bytes.every((byte, i) => byte === other[i])
}
