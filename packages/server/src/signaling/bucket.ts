import type { MessageRate } from '../config/config.ts'

/**
 * A token bucket: `burst` at once, `perSecond` after that. A message that costs more than is left takes it from the later
 * ones.
 */
export class Bucket {
  private readonly rate: MessageRate
  private tokens: number
  private refilledAt: number

  constructor(rate: MessageRate, now: number) {
    this.rate = rate
    this.tokens = rate.burst
    this.refilledAt = now
  }

  take(cost: number, now: number): boolean {
    this.refill(now)
    if (this.tokens < 1) return false
    this.tokens -= cost
    return true
  }

  /** Until the next one passes, after one that did not; not over 0 where it passes now. */
  waitMs(): number {
    return Math.ceil(((1 - this.tokens) * 1000) / this.rate.perSecond)
  }

  isFull(now: number): boolean {
    this.refill(now)
    return this.tokens === this.rate.burst
  }

  private refill(now: number): void {
    const { perSecond, burst } = this.rate
    this.tokens = Math.min(burst, this.tokens + ((now - this.refilledAt) * perSecond) / 1000)
    this.refilledAt = now
  }
}
