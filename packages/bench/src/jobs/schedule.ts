// Messages that leave at fixed times, at even distances, whether or not earlier ones have arrived. Each latency counts from
// the time at which its message had to leave: a server that stops for a while delays all that were due meanwhile, and a
// generator that waits for answers would not have sent them.
import { LatencyHistogram } from '../statistics.ts'

export interface Times {
  /** In nanoseconds, as `Bun.nanoseconds()` counts. */
  readonly start: number
  /** Messages that are due in this interval are recorded; none is due later. */
  readonly from: number
  readonly until: number
}

export class Schedule {
  readonly latencies = new LatencyHistogram()
  readonly lateness = new LatencyHistogram()
  #senders: number
  #distance: number
  #times: Times
  #sent = 0
  /** By sender: the number of its messages that have arrived. */
  #arrived: Uint32Array
  #all = Promise.withResolvers<void>()

  /** `perSecond`: messages of all senders together; they take turns. */
  constructor(senders: number, perSecond: number, times: Times) {
    this.#senders = senders
    this.#distance = 1e9 / perSecond
    this.#times = times
    this.#arrived = new Uint32Array(senders)
  }

  /** Resolves when every message has left. */
  get finished(): Promise<void> {
    return this.#all.promise
  }

  /** Sends what is due, and says whether that was anything. */
  sendDue(send: (sender: number) => void, clock: () => number = Bun.nanoseconds): boolean {
    const { until } = this.#times
    const now = clock()
    const before = this.#sent
    let due = this.#dueAt(this.#sent)
    while (due <= now && due < until) {
      this.#record(this.lateness, due, clock())
      send(this.#sent % this.#senders)
      due = this.#dueAt(++this.#sent)
    }
    if (due >= until) this.#all.resolve()
    return this.#sent > before
  }

  /** The next `count` messages of that sender have arrived. */
  arrived(sender: number, count: number, now: number = Bun.nanoseconds()): void {
    for (let i = 0; i < count; i++) {
      this.#record(this.latencies, this.#dueAt(this.#arrived[sender]!++ * this.#senders + sender), now)
    }
  }

  #dueAt(message: number): number {
    return this.#times.start + message * this.#distance
  }

  #record(histogram: LatencyHistogram, due: number, now: number): void {
    if (due >= this.#times.from) histogram.record(now - due)
  }
}
