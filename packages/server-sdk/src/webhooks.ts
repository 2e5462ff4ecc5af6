import { createHmac, timingSafeEqual } from 'node:crypto'
import type { InviteQuestion } from './types.ts'
import type { WebhookEvent } from './webhook-events.ts'

export interface VerifyOptions {
  /** The body as it came, before anything parsed it. */
  payload: string | Uint8Array
  /** The headers of the request: of fetch, or of Node. */
  headers: Headers | Readonly<Record<string, string | readonly string[] | undefined>>
  /** `whsec_…`; several where a secret is being rotated. */
  secret: string | readonly string[]
  /** In ms since the epoch; the machine's clock where it is not given. */
  now?: number
}

/** A request that is no webhook of ours, or an old one. */
export class WebhookVerificationError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'WebhookVerificationError'
  }
}

/** How far the clocks of two machines may be apart, and how old a webhook may be, in seconds (Standard Webhooks). */
const toleranceS = 5 * 60

/**
 * Verifies a webhook by Standard Webhooks: HMAC-SHA256 over `id.timestamp.body`, compared in constant time with each
 * signature of the header, for each secret. Throws a `WebhookVerificationError` if none matches, the timestamp is more
 * than 5 min away, or the body is not an event; a `TypeError` if a secret is not valid.
 */
export function verify({ payload, headers, secret, now = Date.now() }: VerifyOptions): WebhookEvent {
  const keys = (Array.isArray(secret) ? secret : [secret]).map(keyOf)
  if (keys.length === 0) throw new TypeError('secret is an empty list: give the whsec_… secret of the endpoint')
  const id = headerOf(headers, 'webhook-id')
  const timestamp = headerOf(headers, 'webhook-timestamp')
  const signatures = headerOf(headers, 'webhook-signature').split(' ')
  if (!/^\d{1,12}$/.test(timestamp)) throw new WebhookVerificationError('webhook-timestamp must be a number of seconds')
  if (Math.abs(now / 1000 - Number(timestamp)) > toleranceS)
    throw new WebhookVerificationError('webhook-timestamp is more than 5 minutes from the clock of this machine')
  if (typeof payload !== 'string' && !(payload instanceof Uint8Array))
    throw new TypeError('payload must be the body as it came, a text or bytes: parsed JSON cannot be verified')
  const body = Buffer.from(payload as Uint8Array)
  const signed = Buffer.concat([Buffer.from(`${id}.${timestamp}.`), body])
  const expected = keys.map((key) => createHmac('sha256', key).update(signed).digest())
  const given = signatures.filter((each) => each.startsWith('v1,')).map((each) => Buffer.from(each.slice(3), 'base64'))
  // All are compared, whichever matches.
  const matches = expected.flatMap((one) =>
    given.map((other) => one.length === other.length && timingSafeEqual(one, other)),
  )
  if (!matches.includes(true))
    throw new WebhookVerificationError(
      'no signature matches: is secret that of this endpoint, and payload the body before anything parsed it?',
    )
  return eventOf(id, body.toString())
}

/**
 * The same for the question about an invite: `secret` is the `invite_secret` of the product, and the answer is what to decide on.
 * A signed event of another kind is refused, too.
 */
export function verifyInvite(options: VerifyOptions): InviteQuestion {
  const event: { readonly type: string } = verify(options)
  if (event.type !== 'call.invite')
    throw new WebhookVerificationError(`the body is ${event.type}, no question about an invite`)
  return event as InviteQuestion
}

/** No message holds the secret. */
function keyOf(secret: unknown): Buffer {
  const what = 'give the whsec_… secret of the endpoint: ringwire webhooks create prints it'
  if (typeof secret !== 'string' || secret === '') throw new TypeError(`secret is missing: ${what}`)
  const encoded = secret.startsWith('whsec_') ? secret.slice('whsec_'.length) : ''
  const key = Buffer.from(encoded, 'base64')
  if (key.length === 0) throw new TypeError(`secret must be whsec_ and base64: ${what}`)
  return key
}

function headerOf(headers: VerifyOptions['headers'], name: string): string {
  const value = headers instanceof Headers ? headers.get(name) : ofRecord(headers, name)
  if (value === null || value === undefined || value === '') throw new WebhookVerificationError(`${name} is missing`)
  return value
}

function ofRecord(headers: Readonly<Record<string, string | readonly string[] | undefined>>, name: string) {
  const found = Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1]
  return typeof found === 'string' ? found : found?.join(' ')
}

/** The signature says that the service wrote it: a type that is known has the data of that type. */
function eventOf(id: string, text: string): WebhookEvent {
  let event: unknown
  try {
    event = JSON.parse(text)
  } catch {
    throw new WebhookVerificationError('the body is not JSON')
  }
  const { type, timestamp, data } = (event ?? {}) as Partial<Record<keyof WebhookEvent, unknown>>
  if (typeof type !== 'string' || typeof timestamp !== 'string' || typeof data !== 'object' || data === null)
    throw new WebhookVerificationError('the body is no event')
  return { id, type, timestamp, data } as WebhookEvent
}
