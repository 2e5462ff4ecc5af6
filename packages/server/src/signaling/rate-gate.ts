import type { MessageRate } from '../config.ts'

export type Clearance =
  | { readonly ok: true }
  /** `tooLong`: over the rate for so long that the socket goes [WS7]. */
  | { readonly ok: false; readonly retryAfterMs: number; readonly tooLong: boolean }

const cleared: Clearance = { ok: true }
/** Over the rate for this long, a socket is closed [WS7], in ms. */
const patienceMs = 10_000

/** A token bucket for the messages of one socket [WS7]: `burst` at once, `perSecond` after that. */
export class RateGate {
  private readonly rate: MessageRate
  private tokens: number
  private refilledAt: number
  private overSince: number | undefined
  private refusedAt = 0
  /** Nothing refused for this long: the socket is within the rate again. At least as long as half a burst takes. */
  private readonly pauseMs: number

  constructor(rate: MessageRate, now: number) {
    this.rate = rate
    this.pauseMs = Math.max(1_000, (rate.burst / 2 / rate.perSecond) * 1000)
    this.tokens = rate.burst
    this.refilledAt = now
  }

  pass(now: number): Clearance {
    const { perSecond, burst } = this.rate
    this.tokens = Math.min(burst, this.tokens + ((now - this.refilledAt) * perSecond) / 1000)
    this.refilledAt = now
    if (this.tokens >= 1) {
      this.tokens--
      return cleared
    }
    // Somebody who floods on gets a token now and then, too: that ends nothing.
    if (this.overSince === undefined || now - this.refusedAt >= this.pauseMs) this.overSince = now
    this.refusedAt = now
    const retryAfterMs = Math.ceil(((1 - this.tokens) * 1000) / perSecond)
    return { ok: false, retryAfterMs, tooLong: now - this.overSince >= patienceMs }
  }
}
