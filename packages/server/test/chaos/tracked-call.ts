import type { Timers } from '../../src/ports/clock.ts'

/** A call as one of its two people knows it. */
export class TrackedCall {
  readonly callUuid: string
  readonly side: 'caller' | 'callee'
  readonly peer: string
  /** The service has said that it exists. */
  known = false
  isAnswered = false
  isOver = false
  /** Relays that this side has sent. */
  relayed = 0
  /** How often this side has said what it sends [MEDIA1]. */
  said = 0
  /** The other side has handed it over, and the new call rings [XFER1]. */
  isHandedOver = false
  readonly over: Promise<void>
  private readonly answered: Promise<void>
  private readonly timers: Pick<Timers, 'after'>
  private readonly resolveOver: () => void
  private readonly resolveAnswered: () => void

  constructor(callUuid: string, side: 'caller' | 'callee', peer: string, timers: Pick<Timers, 'after'>) {
    this.callUuid = callUuid
    this.side = side
    this.peer = peer
    this.timers = timers
    const over = Promise.withResolvers<void>()
    const answered = Promise.withResolvers<void>()
    this.over = over.promise
    this.resolveOver = over.resolve
    this.answered = answered.promise
    this.resolveAnswered = answered.resolve
  }

  answer(): void {
    this.isAnswered = true
    this.resolveAnswered()
  }

  end(): void {
    this.isOver = true
    this.resolveOver()
  }

  /** Waits until it was answered or is over, and no longer than `ms` where that is given. */
  async answeredOrOver(ms?: number): Promise<void> {
    await this.within(Promise.race([this.answered, this.over]), ms)
  }

  async overWithin(ms: number): Promise<void> {
    await this.within(this.over, ms)
  }

  private async within(happened: Promise<void>, ms: number | undefined): Promise<void> {
    if (ms === undefined) return happened
    const { promise, resolve } = Promise.withResolvers<void>()
    const cancel = this.timers.after(ms, resolve)
    await Promise.race([happened, promise])
    cancel()
  }
}
