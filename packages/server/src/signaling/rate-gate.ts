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

  constructor(rate: MessageRate, now: number) {
    this.rate = rate
    this.tokens = rate.burst
    this.refilledAt = now
  }

  pass(now: number): Clearance {
    const { perSecond, burst } = this.rate
    this.tokens = Math.min(burst, this.tokens + ((now - this.refilledAt) * perSecond) / 1000)
    this.refilledAt = now
    // Only a pause ends it: somebody who floods on gets a token now and then, too.
    if (this.tokens >= Math.max(1, burst / 2)) this.overSince = undefined
    if (this.tokens >= 1) {
      this.tokens--
      return cleared
    }
    this.overSince ??= now
    const retryAfterMs = Math.ceil(((1 - this.tokens) * 1000) / perSecond)
    return { ok: false, retryAfterMs, tooLong: now - this.overSince >= patienceMs }
  }
}
