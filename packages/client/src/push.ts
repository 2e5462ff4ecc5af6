/** Being woken: registering a device, and what can be said with a ring ticket before there is a session. */
import type { DeviceRequest, DeviceResponse } from '@ringwire/protocol/push'
import type { CallStatus, NotRinging, RingChanged, RingResponse } from '@ringwire/protocol/rest'
import { errorFromWire, RingwireError } from './error.ts'
import { type NoRing, type Ring, type Rung, ringAt } from './ring.ts'
import type { CallClient, Participant } from './types.ts'

export type { NoRing, Ring, Rung } from './ring.ts'

/** A ring ticket in use [TICK1]. Each method rejects with a `RingwireError` if the service cannot be reached. */
export interface Ticket {
  /** The call, while it rings. */
  look(): Promise<Ring>
  /** Rejects the call; `status` is `rejected` where it did, or was rejected before. */
  reject(): Promise<NoRing>
  /** Says that this device shows the call: the caller hears that it rings. */
  alerting(): Promise<{ readonly ringing: true } | NoRing>
  /**
   * Connects the client, where it is not connected, and gives the call once it rings there: `accept()` answers it. The client
   * stays connected, whatever comes of it. While the call does not come, it asks for the ring every 5 s, and when the
   * ring is to end: it ends with the ring. One failure is not enough to reject: a phone that wakes may have no network
   * yet. Rejects also with `TOKEN_FAILED` or `AUTH_TOKEN_INVALID` if twice in a row there was no token, or none that the
   * service takes; with `CALL_NOT_PARTICIPANT` if the client belongs to another participant than the ticket; and with
   * `CONNECTION_CLOSED`, or the reason for it, if the client is closed.
   */
  connect(client: CallClient): Promise<Rung | NoRing>
}

/** After the first look of `connect` has failed. In ms. */
const againMs = 1_000

export interface TicketOptions {
  /** The origin of the service, as `https://calls.example.com`. */
  readonly url: string
  /** For an answer, in ms. Default: 10 000. */
  readonly requestTimeoutMs?: number
}

/** Uses the `ring_ticket` of a `call.wake`. All but `connect` needs no session, so a service worker can do it. */
export function answerTicket(ticket: string, { url, requestTimeoutMs }: TicketOptions): Ticket {
  const ask = async <T>(method: string, path = ''): Promise<T | NoRing> => {
    const response = await request(`${url}/v1/call/ring${path}`, method, ticket, { timeoutMs: requestTimeoutMs })
    const body = readJson<T & NotRinging>(response)
    if (response.ok) return body
    if (response.status === 410) return noRing(body.error.status, body.error.end_reason)
    // The ring is over for long, and the ticket is not known any more.
    if (response.status === 401) return noRing(null, null)
    throw failure(body)
  }
  async function look(): Promise<Ring> {
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
  }
  return {
    look,
    async reject() {
      const changed = await ask<RingChanged>('POST', '/reject')
      return 'ringing' in changed ? changed : noRing(changed.status, changed.end_reason)
    },
    async alerting() {
      const changed = await ask<RingChanged>('POST', '/alerting')
      return 'ringing' in changed ? changed : { ringing: true }
    },
    async connect(client) {
      client.connect()
      // The device may have slept: its socket can be dead, and there is no time for a pause.
      client.wake()
      const ring = await look().catch(async (error: RingwireError) => {
        // A phone that wakes may have no network yet.
        if (!error.retryable) throw error
        await new Promise((resolve) => setTimeout(resolve, againMs))
        return look()
      })
      return ring.ringing ? ringAt(client, calleeOf(ticket), ring, look) : ring
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
  return register(url, token, {
    platform: 'webpush',
    subscription: { endpoint, keys: { p256dh: keys?.p256dh ?? '', auth: keys?.auth ?? '' } },
  })
}

/** The token of a phone: of FCM, or the hexadecimal one of APNs, where `voip` says that it is PushKit's. */
export type PushToken =
  | { readonly platform: 'fcm'; readonly token: string }
  | {
      readonly platform: 'apns'
      readonly token: string
      readonly voip: boolean
      /** `sandbox` for a build from Xcode. */
      readonly environment: 'production' | 'sandbox'
    }

export interface PhoneDeviceOptions extends DeviceOptions {
  readonly pushToken: PushToken
}

/**
 * Registers a phone by its push token. To be called at each start of the application, and when the token changes. False: the
 * service has no credentials for its platform.
 */
export function registerPhone({ url, token, pushToken }: PhoneDeviceOptions): Promise<boolean> {
  return register(url, token, pushToken)
}

async function register(url: string, token: string, body: DeviceRequest): Promise<boolean> {
  const response = await request(`${url}/v1/call/device`, 'PUT', token, { body: JSON.stringify(body) })
  const answer = readJson<DeviceResponse & NotRinging>(response)
  if (!response.ok) throw failure(answer)
  return answer.pushes
}

/** Forgets the device of the token: somebody logs out. */
export async function forgetDevice({ url, token }: DeviceOptions): Promise<void> {
  const response = await request(`${url}/v1/call/device`, 'DELETE', token)
  if (!response.ok) throw failure(readJson(response))
}

interface Answer extends Pick<Response, 'ok' | 'status'> {
  readonly text: string
}

interface RequestOptions {
  readonly body?: string
  readonly timeoutMs?: number | undefined
}

async function request(url: string, method: string, token: string, options: RequestOptions = {}): Promise<Answer> {
  const { body, timeoutMs = 10_000 } = options
  const headers: Record<string, string> = { Authorization: `Bearer ${token}` }
  if (body !== undefined) headers['Content-Type'] = 'application/json'
  // A network may swallow a request, and say nothing. A request that failed must not go out later.
  const limit = new AbortController()
  const timer = setTimeout(() => limit.abort(new Error(`There was no answer in ${timeoutMs} ms.`)), timeoutMs)
  try {
    const response = await fetch(url, { method, headers, signal: limit.signal, ...(body !== undefined && { body }) })
    return { ok: response.ok, status: response.status, text: await response.text() }
  } catch (cause) {
    throw new RingwireError('REQUEST_FAILED', 'The service could not be reached.', { retryable: true, cause })
  } finally {
    clearTimeout(timer)
  }
}

function readJson<T>({ text, status }: Answer): T {
  try {
    return JSON.parse(text) as T
  } catch (cause) {
    throw new RingwireError('REQUEST_FAILED', 'The answer is no JSON.', { httpStatus: status, cause })
  }
}

const failure = (body: unknown) => errorFromWire((body as { error?: unknown } | null)?.error)

function noRing(status: CallStatus | null, endReason: string | null): NoRing {
  return { ringing: false, status, endReason }
}

/** Whom the ticket is for, as the service has written it: it has just taken the ticket. */
function calleeOf(ticket: string): Participant {
  const [, claims = ''] = ticket.split('.')
  // Not every runtime has a TextDecoder.
  const text = Array.from(bytesOf(claims), (byte) => `%${byte.toString(16).padStart(2, '0')}`).join('')
  const { sub: userId, role } = JSON.parse(decodeURIComponent(text))
  return { userId, role }
}

function bytesOf(base64url: string): Uint8Array<ArrayBuffer> {
  const text = atob(base64url.replaceAll('-', '+').replaceAll('_', '/'))
  return Uint8Array.from(text, (char) => char.charCodeAt(0))
}

function sameBytes(one: ArrayBuffer | null, other: Uint8Array): boolean {
  const bytes = new Uint8Array(one ?? new ArrayBuffer(0))
  return bytes.length === other.length && bytes.every((byte, i) => byte === other[i])
}
