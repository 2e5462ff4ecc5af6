import type { ClientEventName } from '@ringwire/protocol/client-events'
import { type ErrorBody, errorBody } from '@ringwire/protocol/errors'
import type { MessageRate } from '../config/config.ts'
import { Bucket } from './bucket.ts'
import type { Sender } from './senders.ts'

/**
 * Events that have to get through however much their sender sent: the end of a call, and the token without which all ends
 * [WS7].
 */
const unlimited = ['call.cancel', 'call.reject', 'call.end', 'auth.refresh'] as const

export function isUnlimited(event: ClientEventName): boolean {
  return (unlimited as readonly string[]).includes(event)
}

/** What becomes of a message [WS7]. */
export type Clearance =
  | { readonly kind: 'passes' }
  /** It is refused in its turn; `mayBeUnlimited`: unless it turns out to be a request without a limit. */
  | { readonly kind: 'refused'; readonly retryAfterMs: number; readonly mayBeUnlimited: boolean }
  /** Nobody reads it. `isTold`: the sender hears so now. */
  | { readonly kind: 'unread'; readonly retryAfterMs: number; readonly isTold: boolean }
  | { readonly kind: 'closes' }

/** A look without a parse: who escapes the name is not found, and may write it as everybody does. */
const namesUnlimited = new RegExp(`"(?:${unlimited.join('|').replaceAll('.', '\\.')})"`)

const passes: Clearance = { kind: 'passes' }
const closes: Clearance = { kind: 'closes' }

/** A message counts once for each of these that it begins: what it costs to read grows with it. */
const unitBytes = 4 * 1024
/** Over the rate for this long a socket is closed. */
const patienceMs = 10_000
/** Events without a limit have this one, or a flood would only need their names. */
const unlimitedRate: MessageRate = { perSecond: 2, burst: 20 }
/** The sender of what nobody reads hears so at most this often. */
const tellingMs = 1_000

/**
 * What one socket may send [WS7]. Within `rate` messages pass. As many again are refused, each by its name. Further
 * messages are not even read, nor are those beyond the rate of all sockets of the participant together: only the messages
 * that the participant's rate counts are parsed.
 */
export class RateGate {
  private readonly rate: MessageRate
  /** Its participant. */
  readonly sender: Sender
  private readonly messages: Bucket
  /** These are made when they are needed: hardly any socket is ever over the rate. */
  private refusals: Bucket | undefined
  private named: Bucket | undefined
  private overSince: number | undefined
  private refusedAt = 0
  private toldAt = Number.NEGATIVE_INFINITY
  /** Nothing refused for this long: the socket is within the rate again. At least as long as half a burst takes. */
  private readonly pauseMs: number

  constructor(rate: MessageRate, sender: Sender, now: number) {
    this.rate = rate
    this.sender = sender
    this.messages = new Bucket(rate, now)
    this.pauseMs = Math.max(1_000, (rate.burst / 2 / rate.perSecond) * 1000)
  }

  message(message: string | Uint8Array, now: number): Clearance {
    const cost = costOf(message)
    return this.messages.take(cost, now) && this.sender.reads(message, now) ? passes : this.over(message, cost, now)
  }

  /** A ping, or a pong that answers none of ours. False: it was one too many. */
  control(now: number): boolean {
    return this.sender.bears(1, now)
  }

  private over(message: string | Uint8Array, cost: number, now: number): Clearance {
    // Somebody who floods on gets a message through now and then, too: that ends nothing.
    if (this.overSince === undefined || now - this.refusedAt >= this.pauseMs) this.overSince = now
    this.refusedAt = now
    if (now - this.overSince >= patienceMs || !this.sender.bears(cost, now)) return closes
    const retryAfterMs = Math.max(this.messages.waitMs(), this.sender.waitMs())
    if (cost === 1 && namesUnlimited.test(textOf(message))) {
      this.named ??= new Bucket(unlimitedRate, now)
      if (this.named.take(1, now)) return { kind: 'refused', retryAfterMs, mayBeUnlimited: true }
    }
    this.refusals ??= new Bucket(this.rate, now)
    if (this.refusals.take(cost, now) && this.sender.reads(message, now))
      return { kind: 'refused', retryAfterMs, mayBeUnlimited: false }
    const isTold = now - this.toldAt >= tellingMs
    if (isTold) this.toldAt = now
    return { kind: 'unread', retryAfterMs, isTold }
  }
}

function costOf(message: string | Uint8Array): number {
  return Math.max(1, Math.ceil(message.length / unitBytes))
}

function textOf(message: string | Uint8Array): string {
  return typeof message === 'string' ? message : new TextDecoder().decode(message)
}

/** The error that answers a message over the rate. */
export function rateLimited(retryAfterMs: number): ErrorBody {
  return errorBody('RATE_LIMITED', { retry_after_ms: retryAfterMs, limit: 'messages' })
}
